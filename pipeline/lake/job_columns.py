"""The columns of a job's table: from its settings, from the table, or from a sample.

raw, text       one column
schema given    its columns; the table gets those that it lacks
JSON without    those of the table; for a new one inferred from the log's first records, and
fixed by being the table's
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import pyarrow as pa

from pipeline.lake.config import FormatConfig, JobConfig
from pipeline.lake.errors import ForeignTableError, JobConfigError
from pipeline.lake.values.columns import COORDINATES, RESERVED
from pipeline.lake.values.ddl import SchemaTextError, parse_ddl
from pipeline.lake.values.json_schema import InferenceError, infer_json_schema
from pipeline.lake.values.spec import ConverterSpec, FieldSpec, RegistrySpec
from storage.errors import DiskError
from storage.filesystem import Filesystem

_PREFIX: Final = "value_"

_NOT_VALUES: Final = frozenset((*COORDINATES.names, "key", "headers"))


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
            sample: The log's first values, or keys: is told "value" or "key".

        Raises:
            JobConfigError: A schema cannot be read.
        """
        self._config = config
        self._sample = sample
        mistakes: list[str] = []
        self._value = _given("value", config.value, filesystem, mistakes)
        self._key = _given("key", config.key, filesystem, mistakes)
        if mistakes:
            raise JobConfigError(mistakes)

    def spec(self, table: pa.Schema | None) -> ConverterSpec:
        """For a table of these columns.

        Raises:
            ForeignTableError: Nothing tells the columns of JSON.
        """
        value, key = self._value, self._key
        assert value is not None
        if value.format == "json" and value.fields is None:
            known = None if table is None else _value_fields(table)
            value = _with(value, known or self._inferred("value"))
        if key is not None and key.format == "json" and key.fields is None:
            known = None if table is None else _key_fields(table)
            key = _with(key, known or self._inferred("key"))
        return ConverterSpec(value, key, self._config.source.headers)

    def _inferred(self, side: str) -> pa.Schema:
        try:
            return infer_json_schema(self._sample(side))
        except InferenceError as error:
            raise ForeignTableError(
                f"{side}: no schema is given, and the first records tell none: {error}; "
                f"name a file with it in {side}.schema"
            ) from error

    def evolved(self, spec: ConverterSpec, behind: frozenset[int]) -> ConverterSpec:
        """With what the registry's schemas `behind` have and the table lacks."""
        raise ForeignTableError(
            f"the table lacks fields of the registry's schemas {sorted(behind)}"
        )


def _with(spec: FieldSpec, fields: pa.Schema) -> FieldSpec:
    return FieldSpec(
        spec.format,
        spec.wire,
        fields,
        spec.definition,
        spec.message,
        spec.registry,
        spec.max_value_bytes,
    )


def _given(
    side: str, config: FormatConfig, filesystem: Filesystem, mistakes: list[str]
) -> FieldSpec | None:
    if config.format == "none":
        return None
    definition: bytes | None = None
    fields: pa.Schema | None = None
    if config.schema_file:
        try:
            definition = filesystem.read_bytes(config.schema_file)
            if config.format == "json":
                fields = parse_ddl(definition.decode())
                definition = None
        except DiskError as error:
            mistakes.append(f"{side}.schema: {error}")
        except (SchemaTextError, UnicodeDecodeError) as error:
            mistakes.append(f"{side}.schema: {config.schema_file}: {error}")
    registry = None
    if config.registry is not None:
        given = config.registry
        registry = RegistrySpec(given.url, given.credentials_file or None, given.ca_file or None)
    message = config.message or None
    return FieldSpec(config.format, config.wire_format, fields, definition, message, registry)


def _value_fields(table: pa.Schema) -> pa.Schema | None:
    """The fields of values that became the table's columns; None: it has none yet."""
    found = [
        field.with_name(_field_name(field.name)) for field in table if field.name not in _NOT_VALUES
    ]
    return pa.schema(found) if found else None


def _field_name(column: str) -> str:
    """What `columns.column_name` made a column's name of."""
    bare = column.lower()
    if not bare.startswith(_PREFIX):
        return column
    while bare.startswith(_PREFIX):
        bare = bare.removeprefix(_PREFIX)
    return column[len(_PREFIX) :] if bare in RESERVED else column


def _key_fields(table: pa.Schema) -> pa.Schema | None:
    at = table.get_field_index("key")
    if at < 0 or not pa.types.is_struct(table.field(at).type):
        return None
    kind = table.field(at).type
    fields: Sequence[pa.Field] = [kind.field(index) for index in range(kind.num_fields)]
    return pa.schema(fields)
