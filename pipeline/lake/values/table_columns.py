"""What the columns of a table are, or have to become: from settings, a schema, the table, a sample.

    the table is there    its columns stay; a schema may add to them (`evolution`)
    a schema is given     a file, or the registry's latest of the subject
    neither               JSON is inferred from a sample; from then on the table's columns say it

So what was inferred is fixed by the table itself, and every later run finds it there.
"""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import NamedTuple

import pyarrow as pa

from pipeline.lake.values.columns import RESERVED, field_name, plain_type
from pipeline.lake.values.ddl import parse_ddl
from pipeline.lake.values.evolution import followed
from pipeline.lake.values.json_schema import infer_json_schema
from pipeline.lake.values.spec import ConverterSpec, FieldSpec, Format, Wire


class FieldSettings(NamedTuple):
    """What somebody says of values or keys.

    Attributes:
        format: Of the bytes.
        wire: Whether a registry's id comes first.
        definition: Content of the schema's file; none: the registry or a sample tells.
    """

    format: Format = "raw"
    wire: Wire = "plain"
    definition: bytes | None = None


class TableColumns:
    """Finds the converter's spec for a table; on the driver."""

    def __init__(
        self,
        value: FieldSettings,
        key: FieldSettings | None = None,
        *,
        headers: bool = False,
        widen: bool = False,
        sample: Callable[[], Iterable[pa.RecordBatch]] = lambda: (),
    ) -> None:
        """Nothing is read yet.

        Args:
            value: Of values.
            key: Of keys; none: the table has no column for them.
            headers: Whether the table has a column for them.
            widen: Whether types of columns that are there can be changed in this table.
            sample: The first records of the topic, with columns key and value; called at most once
                for each side, and only where there is no other way to know.
        """
        self._value = value
        self._key = key
        self._headers = headers
        self._widen = widen
        self._sample = sample

    def spec(self, table: pa.Schema | None) -> ConverterSpec:
        """How records become rows of a table.

        Args:
            table: Its columns; none: it is made now.

        Raises:
            SchemaTextError, InferenceError, SchemaChangeError: All `ValueError`s, with sentences
                for whoever wrote the job.
        """
        key = None
        if self._key is not None:
            key = self._side(self._key, "key", None if table is None else _key_fields(table))
        value = self._side(self._value, "value", None if table is None else _value_fields(table))
        return ConverterSpec(value, key, self._headers)

    def _side(self, given: FieldSettings, side: str, table: pa.Schema | None) -> FieldSpec:
        if given.format in ("raw", "string"):
            return FieldSpec(given.format, given.wire)
        if given.definition is not None:
            wanted = parse_ddl(given.definition.decode())
            fields = wanted if table is None else followed(table, wanted, widen=self._widen)
        else:
            fields = table if table is not None else self._inferred(side)
        return FieldSpec(given.format, given.wire, fields)

    def _inferred(self, side: str) -> pa.Schema:
        values = (batch.column(side) for batch in self._sample())
        return infer_json_schema(value.as_py() for value in chain.from_iterable(values))


def _value_fields(table: pa.Schema) -> pa.Schema:
    """Columns of a table as fields of the value."""
    return pa.schema(
        [
            field.with_name(field_name(field.name)).with_type(plain_type(field.type))
            for field in table
            if field.name.lower() not in RESERVED
        ]
    )


def _key_fields(table: pa.Schema) -> pa.Schema | None:
    index = table.get_field_index("key")
    if index < 0 or not pa.types.is_struct(table.field(index).type):
        return None
    return pa.schema([f.with_type(plain_type(f.type)) for f in table.field(index).type])
