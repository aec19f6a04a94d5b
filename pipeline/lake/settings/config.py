"""A job's settings: `job.yaml`, checked whole before anything is done.

    name: orders-lake                        # default: varve-<topic>
    source:
      location: s3://bucket/prefix           # or file:///dir; none: broker only
      store: {endpoint: ..., region: ..., path_style: true, credentials_file: ..., profile: ...}
      topic: orders
      topic_id: ...                          # an incarnation; default: the latest
      bootstrap: host:9092                   # none: bucket only
      isolation: read_committed
      start: earliest                        # or latest, offsets, times: see `start`
      fail_on_data_loss: true
      key_pairs: {id: private.pem}
      headers: false                         # a column of them
    value: {format: json, schema: file}      # raw, string, json, avro, protobuf
    key: {format: raw}                       # or none
    sink:
      type: delta                            # delta, iceberg, parquet
      table: s3://bucket/table               # Iceberg: namespace.table of `catalog`
      partition_by: [day(timestamp)]
      target_file_bytes: 128 MiB
    mode: append                             # upsert, debezium
    errors: {quarantine: table}              # table, fail
    batch: {max_bytes: 4 GiB, every: once}   # or 60 s; retries: 5, give_up_after: 24 h
    runner: {type: spark}                    # or {type: local, workers: 2}
    metrics: {port: 9464}
    maintain:                                # of `varve pipeline maintain`
      sort_by: timestamp                     # key, offset
      small_file_bytes: 64 MiB               # default: half of sink.target_file_bytes
      min_files: 5
      max_bytes: 4 GiB
      keep_snapshots: 7 d
      orphans_older_than: 3 d

All mistakes are reported in one error, with the names that are meant. Secrets are not repeated.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias
from uuid import UUID

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    SecretStr,
    ValidationError,
    model_validator,
)
from typing_extensions import override

from pipeline.lake.errors import JobConfigError
from pipeline.lake.schemas.spec import MAX_VALUE_BYTES
from pipeline.lake.settings.quantities import parse_bytes, parse_ms
from pipeline.lake.settings.start import Start, parse_start

MIB: Final = 1024 * 1024

DAY_MS: Final = 86_400_000

ONCE: Final = 0
"""`batch.every: once`: until the table has what the log had at the start, and no longer."""


def _every(given: object) -> object:
    return ONCE if given == "once" else parse_ms(given)


ByteCount: TypeAlias = Annotated[int, BeforeValidator(parse_bytes)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class StoreConfig(_Section):
    """Address and credentials of an S3 store; unset: those of the machine."""

    endpoint: str = ""
    region: str = ""
    path_style: bool = False
    credentials_file: str = ""
    profile: str = ""
    access_key_id: str = ""
    secret_access_key: SecretStr | None = None

    @model_validator(mode="after")
    def _pairs(self) -> "StoreConfig":
        if bool(self.access_key_id) != (self.secret_access_key is not None):
            raise ValueError("access_key_id and secret_access_key go together")
        return self


class SourceConfig(_Section):
    """The topic, its bucket and its brokers."""

    topic: str = Field(min_length=1, max_length=249)
    location: str = ""
    store: StoreConfig = StoreConfig()
    topic_id: UUID | None = None
    bootstrap: str = ""
    kafka: dict[str, str] = {}
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    start: Annotated[Start, PlainValidator(parse_start)] = "earliest"
    fail_on_data_loss: bool = True
    key_pairs: dict[str, str] = {}
    headers: bool = False

    @model_validator(mode="after")
    def _somewhere(self) -> "SourceConfig":
        if not self.location and not self.bootstrap:
            raise ValueError("a location, a bootstrap or both are needed")
        return self


class RegistryConfig(_Section):
    """A Confluent-compatible schema registry; user and password are two lines of a file.

    Attributes:
        subject: Whose latest schema a new table begins with; default: `<topic>-value` or `-key`.
    """

    url: str = Field(pattern=r"^https?://[^@]+$")
    credentials_file: str = ""
    ca_file: str = ""
    subject: str = ""


class FormatConfig(_Section):
    """Format of keys or values; a key's may be `none`: no column.

    Attributes:
        schema_file: With the schema; where none is given and the format is JSON, it is inferred.
        max_value_bytes: A longer value that would have to be parsed is quarantined.
    """

    format: Literal["raw", "string", "json", "avro", "protobuf", "none"] = "raw"
    schema_file: str = Field(default="", alias="schema")
    registry: RegistryConfig | None = None
    message: str = ""
    max_value_bytes: Annotated[ByteCount, Field(ge=1, le=1024 * MIB)] = MAX_VALUE_BYTES
    wire: Literal["confluent", "plain"] | None = None

    @model_validator(mode="after")
    def _fits(self) -> "FormatConfig":
        described = self.format in ("json", "avro", "protobuf")
        if self.format in ("avro", "protobuf") and not (self.schema_file or self.registry):
            raise ValueError(f"{self.format} needs a schema or a registry")
        if not described and (self.schema_file or self.registry or self.wire == "confluent"):
            raise ValueError(f"{self.format} has no schema")
        if self.registry and self.wire == "plain":
            raise ValueError("plain values do not name a registry's schema")
        if self.message and self.format != "protobuf":
            raise ValueError("message is for protobuf")
        return self

    @property
    def wire_format(self) -> Literal["confluent", "plain"]:
        """The wire format; unset, it follows from whether there is a registry."""
        return self.wire or ("confluent" if self.registry else "plain")


class PartitionField(NamedTuple):
    """A field that files are partitioned by.

    Attributes:
        transform: year, month, day, hour (of a timestamp) or identity.
        source: The column it is made of.
    """

    transform: str
    source: str

    @property
    def name(self) -> str:
        """Of the folder, and of the column where a table needs one: as Iceberg names fields."""
        return self.source if self.transform == "identity" else f"{self.source}_{self.transform}"


_FIELD: Final = re.compile(r"\s*(?:(year|month|day|hour)\(\s*(\w+)\s*\)|(\w+))\s*")


def parse_partition_field(given: object) -> PartitionField:
    """`day(timestamp)` or `partition`; ValueError with what is expected."""
    if isinstance(given, PartitionField):
        return given
    match = _FIELD.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        raise ValueError("day(timestamp), hour(timestamp), ... or a column's name is expected")
    if match[3] is not None:
        if match[3] not in ("topic", "partition"):
            raise ValueError("of plain columns, tables are partitioned by topic or partition only")
        return PartitionField("identity", match[3])
    if match[2] != "timestamp":
        raise ValueError("of times, tables are partitioned by timestamp only")
    return PartitionField(match[1], match[2])


class CatalogConfig(_Section):
    """Catalog of an Iceberg table; further properties are passed to it unchanged."""

    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)

    type: Literal["sql", "rest"]
    uri: str
    name: str = "varve"

    @override
    def __repr_args__(self) -> Iterator[tuple[str, str]]:
        """Addresses and tokens of catalogs are secrets, or have some."""
        yield "type", self.type
        yield "name", self.name

    def properties(self) -> dict[str, str]:
        """As pyiceberg takes them."""
        extra = {name: str(value) for name, value in (self.model_extra or {}).items()}
        return {"type": self.type, "uri": self.uri, **extra}


class SinkConfig(_Section):
    """The table, its kind and its partitioning."""

    type: Literal["delta", "iceberg", "parquet"]
    table: str = Field(min_length=1)
    store: StoreConfig | None = None
    catalog: CatalogConfig | None = None
    partition_by: tuple[Annotated[PartitionField, BeforeValidator(parse_partition_field)], ...] = ()
    target_file_bytes: Annotated[ByteCount, Field(ge=MIB // 4, le=1024 * MIB)] = 128 * MIB
    buckets: Annotated[int, Field(ge=1, le=4096)] = 16

    @model_validator(mode="after")
    def _fits(self) -> "SinkConfig":
        if self.type == "iceberg":
            if self.catalog is None:
                raise ValueError("an Iceberg table needs a catalog")
            if "." not in self.table.strip("."):
                raise ValueError("an Iceberg table is named namespace.table")
        else:
            if self.catalog is not None:
                raise ValueError(f"a {self.type} table has no catalog")
            if not self.table.startswith(("s3://", "file:///", "/")):
                raise ValueError("table: s3://bucket/prefix or file:///dir is expected")
        if len({field.name for field in self.partition_by}) != len(self.partition_by):
            raise ValueError("partition_by names a field twice")
        return self


class ErrorsConfig(_Section):
    """Handling of records that do not fit."""

    quarantine: Literal["table", "fail"] = "table"


class BatchConfig(_Section):
    """Size and interval of batches; `every_ms` 0: once.

    Attributes:
        retries: Of what failed, in a row.
        give_up_after_ms: A job that runs for ever retries for this long, whatever `retries` is.
    """

    max_bytes: Annotated[ByteCount, Field(ge=1)] = 4096 * MIB
    every_ms: Annotated[int, Field(ge=0), BeforeValidator(_every)] = Field(
        default=ONCE, alias="every"
    )
    retries: Annotated[int, Field(ge=0)] = 5
    give_up_after_ms: Annotated[int, Field(ge=0), BeforeValidator(parse_ms)] = Field(
        default=24 * 3_600_000, alias="give_up_after"
    )


class RunnerConfig(_Section):
    """Runner of tasks; workers 0: in the driver itself."""

    type: Literal["spark", "local"] = "spark"
    workers: Annotated[int, Field(ge=0, le=256)] = 0
    conf: dict[str, str] = {}


class MetricsConfig(_Section):
    """Port of the job's Prometheus page; 0: none."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 0


class MaintainConfig(_Section):
    """Settings of `varve pipeline maintain`.

    Attributes:
        sort_by: Order of rows in files that are put together.
        small_file_bytes: A file below it is put together with others; 0: half of the sink's
            `target_file_bytes`.
        min_files: Fewer of them are left as they are, unless they make a whole file.
        max_bytes: Of the files that are replaced between two commits.
        keep_snapshots_ms: For how long a state of the table can still be read.
        orphans_older_than_ms: A file that no state of the table has is removed at that age; it has
            to be longer than any batch, or any commit to a table, may take.
    """

    sort_by: Literal["timestamp", "key", "offset"] = "timestamp"
    small_file_bytes: Annotated[ByteCount, Field(ge=0)] = 0
    min_files: Annotated[int, Field(ge=2)] = 5
    max_bytes: Annotated[ByteCount, Field(ge=1)] = 4096 * MIB
    keep_snapshots_ms: Annotated[int, Field(ge=0), BeforeValidator(parse_ms)] = Field(
        default=7 * DAY_MS, alias="keep_snapshots"
    )
    orphans_older_than_ms: Annotated[int, Field(ge=DAY_MS // 24), BeforeValidator(parse_ms)] = (
        Field(default=3 * DAY_MS, alias="orphans_older_than")
    )


class JobConfig(_Section):
    """A whole job; see the module."""

    source: SourceConfig
    sink: SinkConfig
    name: str = ""
    value: FormatConfig = FormatConfig()
    key: FormatConfig = FormatConfig()
    mode: Literal["append", "upsert", "debezium"] = "append"
    errors: ErrorsConfig = ErrorsConfig()
    batch: BatchConfig = BatchConfig()
    runner: RunnerConfig = RunnerConfig()
    metrics: MetricsConfig = MetricsConfig()
    maintain: MaintainConfig = MaintainConfig()

    @model_validator(mode="after")
    def _has_values(self) -> "JobConfig":
        if self.value.format == "none":
            raise ValueError("value: none is for keys")
        if self.key.format == "none" and self.maintain.sort_by == "key":
            raise ValueError("maintain.sort_by: the table has no key to sort by")
        return self

    @model_validator(mode="after")
    def _can_be_keyed(self) -> "JobConfig":
        if self.mode == "append":
            return self
        if self.mode == "debezium" and self.value.format in ("raw", "string"):
            raise ValueError("mode: debezium reads envelopes: value.format json, avro or protobuf")
        if self.key.format == "none":
            raise ValueError(f"mode: {self.mode} keeps rows by key: key.format cannot be none")
        if self.sink.partition_by:
            raise ValueError(
                f"mode: {self.mode} parts a table by key bucket, and a record may move its row: "
                "sink.partition_by is for append"
            )
        return self

    @property
    def job_name(self) -> str:
        """Under which the table knows the job."""
        return self.name or f"varve-{self.source.topic}"

    @property
    def sink_store(self) -> StoreConfig:
        """The table's store: by default as the source's."""
        return self.source.store if self.sink.store is None else self.sink.store


def small_file_bytes(config: JobConfig) -> int:
    """Below which `varve pipeline maintain` puts files together."""
    return config.maintain.small_file_bytes or config.sink.target_file_bytes // 2


def parse_job(text: str, origin: str = "job.yaml") -> JobConfig:
    """Check a job's settings.

    Raises:
        JobConfigError: All that is wrong with them.
    """
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f"line {mark.line + 1}: "
        problem = getattr(error, "problem", None) or "not YAML"
        raise JobConfigError([f"{where}{problem}"], origin) from error
    if not isinstance(found, Mapping):
        raise JobConfigError(["a mapping of sections is expected"], origin)
    try:
        return JobConfig.model_validate(found)
    except ValidationError as error:
        raise JobConfigError(list(_mistakes(error)), origin) from None


def _mistakes(error: ValidationError) -> Iterator[str]:
    reported = set()
    for mistake in error.errors(include_url=False, include_context=False, include_input=False):
        path = [str(part) for part in mistake["loc"]]
        message = mistake["msg"].removeprefix("Value error, ")
        if mistake["type"] == "extra_forbidden":
            message = "is no setting"
            if meant := _meant(path):
                message += f"; meant: {meant}"
        elif mistake["type"] == "missing":
            message = "is needed"
        line = f"{'.'.join(path)}: {message}" if path else message
        if line not in reported:
            reported.add(line)
            yield line


def _meant(path: list[str]) -> str:
    model: Any = JobConfig
    for part in path[:-1]:
        field = model.model_fields.get(part)
        annotation = None if field is None else field.annotation
        options = [annotation, *getattr(annotation, "__args__", ())]
        model = next((o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), None)
        if model is None:
            return ""
    names = [field.alias or name for name, field in model.model_fields.items()]
    close = difflib.get_close_matches(path[-1].lower(), names, n=1, cutoff=0.5)
    return close[0] if close else ", ".join(names)
