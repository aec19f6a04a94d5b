"""The columns of a job's table: its settings and schema files, for `values.table_columns`."""

from collections.abc import Callable, Iterable

import pyarrow as pa

from pipeline.lake.errors import ForeignTableError, JobConfigError
from pipeline.lake.schemas.columns import check_full_names, check_partition_names
from pipeline.lake.schemas.json_schema import InferenceError
from pipeline.lake.schemas.registry import RegistryClient, RegistryError, SchemaMissingError
from pipeline.lake.schemas.spec import ConverterSpec, Envelope, RegistrySpec
from pipeline.lake.settings.config import FormatConfig, JobConfig, RegistryConfig
from pipeline.lake.values.converter import Converter
from pipeline.lake.values.table_columns import FieldSettings, TableColumns, check_settings
from storage.environment.filesystem import Filesystem
from storage.errors import DiskError


class JobColumns:
    """`Columns` of a job; see the module."""

    def __init__(
        self,
        config: JobConfig,
        filesystem: Filesystem,
        sample: Callable[[str], Iterable[bytes | None]],
    ) -> None:
        """Read the schema files.

        Args:
            config: The job.
            filesystem: Where schemas are read from.
            sample: The log's first values, or keys: called with "value" or "key".

        Raises:
            JobConfigError: A schema cannot be read, or the credentials of a registry.
        """
        mistakes: list[str] = []
        topic = config.source.topic
        is_change = config.mode == "debezium"
        value = _settings("value", config.value, topic, filesystem, mistakes, is_change=is_change)
        key = _settings("key", config.key, topic, filesystem, mistakes, is_change=is_change)
        if mistakes:
            raise JobConfigError(mistakes)
        self._columns = TableColumns(
            value or FieldSettings(),
            key,
            headers=config.source.headers,
            mode=config.mode,
            sample=sample,
        )
        self._sink = config.sink

    def spec(self, table: pa.Schema | None) -> ConverterSpec:
        """For a table of these columns.

        Raises:
            ForeignTableError: The columns are unknown, or the table cannot have them.
            RegistryError: The registry cannot be asked.
        """
        try:
            spec = self._columns.spec(table)
            if table is None:
                self._check(spec)
            return spec
        except InferenceError as error:
            raise ForeignTableError(
                f"no schema is given, and none can be inferred from the first records: {error}; "
                "name a file with it in value.schema or key.schema"
            ) from error
        except (SchemaMissingError, ValueError) as error:
            raise ForeignTableError(f"the table's columns: {error}") from error

    def evolved(self, spec: ConverterSpec, behind: frozenset[int]) -> ConverterSpec:
        """With what the registry's schemas `behind` have and the table lacks.

        Raises:
            ForeignTableError: The table cannot follow them.
            RegistryError: The registry cannot be asked.
        """
        try:
            evolved = self._columns.evolved(spec, behind)
            self._check(evolved, frozenset(Converter(spec).row_schema.names))
            return evolved
        except (SchemaMissingError, ValueError) as error:
            raise ForeignTableError(f"the table's columns: {error}") from error

    def _check(self, spec: ConverterSpec, known: frozenset[str] = frozenset()) -> None:
        """Whether a table of this kind can have them; `known` are columns it has already."""
        schema = Converter(spec).row_schema
        made = [one.name for one in self._sink.partition_by if one.transform != "identity"]
        check_partition_names([name for name in schema.names if name not in known], made)
        if self._sink.type == "iceberg":
            check_full_names(schema)


def _settings(
    side: str,
    config: FormatConfig,
    topic: str,
    filesystem: Filesystem,
    mistakes: list[str],
    *,
    is_change: bool,
) -> FieldSettings | None:
    if config.format == "none":
        return None
    definition: bytes | None = None
    registry = None if config.registry is None else _registry(side, config.registry, mistakes)
    subject = config.registry.subject if config.registry is not None else ""
    envelope: Envelope = "none"
    if is_change and side == "value":
        envelope = "change"
    elif is_change and config.format == "json":
        envelope = "wrapper"
    settings = FieldSettings(
        config.format,
        config.wire_format,
        message=config.message or None,
        registry=registry,
        subject=subject or f"{topic}-{side}",
        max_value_bytes=config.max_value_bytes,
        envelope=envelope,
    )
    if config.schema_file:
        try:
            definition = filesystem.read_bytes(config.schema_file)
            settings = settings._replace(definition=definition)
            check_settings(settings, side)
        except DiskError as error:
            mistakes.append(f"{side}.schema: {error}")
        except ValueError as error:
            mistakes.append(f"{side}.schema: {config.schema_file}: {error}")
    return settings


def _registry(side: str, given: RegistryConfig, mistakes: list[str]) -> RegistrySpec:
    spec = RegistrySpec(given.url, given.credentials_file or None, given.ca_file or None)
    try:
        RegistryClient(spec)
    except RegistryError as error:
        mistakes.append(f"{side}.registry: {error}")
    return spec
