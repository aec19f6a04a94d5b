"""Values that are read with a schema: one for all, or the one that each value names.

    one schema     values as they are
    registry       a zero byte, the id of the writer's schema, the rest: grouped by id, each group
                   read with its schema, and put back into the values' order

A registry's schema that cannot be asked for is an error; an id that it does not have, or a schema
that no columns can be made of, is a misfit of those values: any bytes may be taken for an id.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from pipeline.lake.schemas.evolution import SchemaChangeError, followed
from pipeline.lake.schemas.fitting import fit
from pipeline.lake.schemas.registry import RegisteredSchema, RegistryClient, SchemaMissingError
from pipeline.lake.values.block_parsing import BrokenBlockError, parse_in_blocks
from pipeline.lake.values.parsed import Misfit, Parsed
from pipeline.lake.values.wire import Framed, Positions, unframe

MAX_READERS: Final = 100
"""Of schemas that were met: each holds tables of its own."""


class SchemaReader(Protocol):
    """Reads values that were written with one schema."""

    written: pa.Schema
    """The fields that it gives."""

    bare: bool
    """Whether they are none of its own: one column for the value itself."""

    block_bytes: int
    """Values that are read at once."""

    def read(self, values: pa.BinaryArray) -> list[pa.Array]:
        """One array for each field.

        Raises:
            BrokenBlockError: At least one value does not fit.
        """
        ...


OpenReader: TypeAlias = Callable[[RegisteredSchema], SchemaReader]
"""Raises ValueError: no columns can be made of the schema; a sentence."""


class FittingReader:
    """Puts what a schema gives into the fields that a table has, by name."""

    def __init__(self, reader: SchemaReader, fields: pa.Schema) -> None:
        """Prepare.

        Args:
            reader: Of the writer's schema.
            fields: Of the table; those that the schema has not are null.
        """
        self.block_bytes = reader.block_bytes
        self._reader = reader
        self._fields = fields
        self._position = {name: n for n, name in enumerate(reader.written.names)}

    def read(self, values: pa.BinaryArray) -> pa.RecordBatch:
        """One row for each value.

        Raises:
            BrokenBlockError: At least one does not fit.
        """
        arrays = self._reader.read(values)
        columns = []
        for field in self._fields:
            at = self._position.get(field.name)
            try:
                column = (
                    pa.nulls(len(values), field.type) if at is None else fit(arrays[at], field.type)
                )
            except pa.ArrowException as error:
                raise BrokenBlockError(f"{field.name}: {error}") from None
            if column.null_count and not field.nullable:
                raise BrokenBlockError(f"{field.name} must not be null")
            columns.append(column)
        return pa.RecordBatch.from_arrays(columns, schema=self._fields)


class OneSchemaFormat:
    """Values that were all written with the schema that is given."""

    def __init__(self, reader: SchemaReader, fields: pa.Schema, *, bare: bool) -> None:
        """Prepare.

        Args:
            reader: Of the schema.
            fields: Of the table.
            bare: Whether values have no fields.
        """
        self.schema = fields
        self.bare = bare
        self._reader = FittingReader(reader, fields)

    def parse(self, values: pa.BinaryArray) -> Parsed:
        """The columns of values; what is no value of the schema is a misfit."""
        parts, reasons = parse_in_blocks(values, self._reader.read, self._reader.block_bytes)
        return Parsed(one_batch(parts, self.schema), [Misfit(at, reasons[at]) for at in reasons])


class RegistryFormat:
    """Values that name their schema in Confluent's header."""

    def __init__(
        self,
        client: RegistryClient,
        open_reader: OpenReader,
        fields: pa.Schema,
        *,
        bare: bool,
        widen: bool,
    ) -> None:
        """Prepare; nothing is asked yet.

        Args:
            client: Of the registry.
            open_reader: From a schema to what reads its values.
            fields: Of the table.
            bare: Whether values have no fields.
            widen: Whether the table's types can be changed: decides what is `behind`.
        """
        self.schema = fields
        self.bare = bare
        self._client = client
        self._open_reader = open_reader
        self._widen = widen
        self._readers: OrderedDict[int, _Known | str] = OrderedDict()

    def parse(self, values: pa.BinaryArray) -> Parsed:
        """The columns of values, of whichever schema.

        Raises:
            RegistryError: It cannot be asked.
        """
        framed = unframe(values)
        misfits = list(framed.misfits)
        parts: list[pa.RecordBatch] = []
        places: list[Positions] = []
        behind = set()
        for schema_id in np.unique(framed.schema_ids).tolist():
            known = self._known(schema_id)
            inside = np.flatnonzero(framed.schema_ids == schema_id)
            if isinstance(known, str):
                reasons = dict.fromkeys(range(len(inside)), known)
            else:
                if known.behind:
                    behind.add(schema_id)
                bodies = _taken(framed, inside)
                reader = known.reader
                found, reasons = parse_in_blocks(bodies, reader.read, reader.block_bytes)
                parts += found
            positions = framed.positions[inside]
            misfits += [Misfit(int(positions[n]), why, schema_id) for n, why in reasons.items()]
            places.append(np.delete(positions, list(reasons)))
        columns = one_batch(parts, self.schema)
        if len(places) > 1:
            columns = columns.take(pa.array(np.argsort(np.concatenate(places), kind="stable")))
        return Parsed(columns, sorted(misfits), frozenset(behind))

    def _known(self, schema_id: int) -> "_Known | str":
        """The reader of a schema, or why there is none."""
        known = self._readers.get(schema_id)
        if known is None:
            known = self._readers[schema_id] = self._opened(schema_id)
            if len(self._readers) > MAX_READERS:
                self._readers.popitem(last=False)
        self._readers.move_to_end(schema_id)
        return known

    def _opened(self, schema_id: int) -> "_Known | str":
        try:
            reader = self._open_reader(self._client.by_id(schema_id))
        except SchemaMissingError as error:
            return str(error)
        except ValueError as error:
            return f"schema {schema_id}: {error}"
        if reader.bare != self.bare:
            wanted = "a value by itself" if self.bare else "a record"
            return f"schema {schema_id} is not of {wanted}, as the table's is"
        return _Known(
            FittingReader(reader, self.schema),
            _is_behind(self.schema, reader.written, widen=self._widen),
        )


class _Known:
    """A schema that was met."""

    __slots__ = ("behind", "reader")

    def __init__(self, reader: FittingReader, behind: bool) -> None:
        self.reader = reader
        self.behind = behind


def _is_behind(fields: pa.Schema, written: pa.Schema, *, widen: bool) -> bool:
    """Whether the table could follow a schema, and has not yet."""
    try:
        return not followed(fields, written, widen=widen).equals(fields)
    except SchemaChangeError:
        return False


def _taken(framed: Framed, inside: Positions) -> pa.BinaryArray:
    if len(inside) == len(framed.bodies):
        return framed.bodies
    return framed.bodies.take(pa.array(inside))


def one_batch(parts: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Batches of one schema as one, with none of them, too."""
    if len(parts) == 1:
        return parts[0]
    if parts:
        return pa.concat_batches(parts)
    return pa.RecordBatch.from_arrays([pa.array([], f.type) for f in schema], schema=schema)
