"""Debezium's change events: the row after the change, or a deletion.

    {"op": "u", "before": {...}, "after": {...}, "source": {...}, "ts_ms": ...}

    op            c, r, u: the row is `after`        d: the row of the key is deleted
                  anything else (t, m) names no row and is a misfit

JSON may stand in the wrapper of Kafka Connect's converter, keys too:

    {"schema": ..., "payload": {"op": "u", ...}}

Only `op` and the fields of `after` are read; `before` and `source` may be anything. All of a row's
columns may be null, whatever the schema says: Debezium gives no value where it has none.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.lake.values.by_schema import SchemaReader
from pipeline.lake.values.json_blocks import JsonFormat
from pipeline.lake.values.parsed import Misfit, Parsed, ValueFormat

_OP: Final = "__op"
_AFTER: Final = "__after"

HIDDEN: Final = [pa.field(_OP, pa.string()), pa.field(_AFTER, pa.bool_())]
"""Behind the row's fields while an envelope is parsed: its op, and whether it has a row."""

WRITES: Final = ("c", "r", "u")
DELETES: Final = "d"


class EnvelopeFormat:
    """Change events to rows; deletions are marked."""

    bare = False

    def __init__(self, inner: ValueFormat) -> None:
        """`inner` gives the row's fields, and `HIDDEN` behind them."""
        self._inner = inner
        self.schema = pa.schema(list(inner.schema)[: -len(HIDDEN)])

    def parse(self, values: pa.BinaryArray) -> Parsed:
        """The columns of rows, null where an envelope deletes."""
        parsed = self._inner.parse(values)
        columns = parsed.columns
        ops, after = columns.column(_OP), columns.column(_AFTER)
        deletes = pc.fill_null(pc.equal(ops, DELETES), False)
        writes = pc.and_(pc.is_in(ops, pa.array(WRITES)), pc.fill_null(after, False))
        fits = pc.or_(writes, deletes)
        rows = columns.select(self.schema.names)
        if pc.all(fits, min_count=0).as_py():
            return Parsed(rows, parsed.misfits, parsed.behind, _flags(deletes))
        places = np.delete(np.arange(len(values)), [misfit.position for misfit in parsed.misfits])
        misfits = list(parsed.misfits)
        misfits += [
            Misfit(int(places[at]), _reason(ops[at].as_py()))
            for at in pc.indices_nonzero(pc.invert(fits)).to_pylist()
        ]
        kept = deletes.filter(fits)
        return Parsed(rows.filter(fits), sorted(misfits), parsed.behind, _flags(kept))


def _flags(column: pa.BooleanArray) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    return np.asarray(column.to_numpy(zero_copy_only=False), bool)


def _reason(op: str | None) -> str:
    if not op:
        return "no Debezium envelope: it has no op"
    if op in WRITES:
        return f"Debezium's op {op} without after"
    return f"Debezium's op {op[:20]} is no change of one row"


class EnvelopeReader:
    """`SchemaReader` of envelopes: the fields of `after`, and `HIDDEN`."""

    bare = False

    def __init__(self, reader: SchemaReader) -> None:
        """`reader`: of the envelope's schema; ValueError: it is of something else."""
        names = reader.written.names
        for name in ("op", "after"):
            if name not in names:
                raise ValueError(f"no Debezium envelope: its schema has no field {name}")
        self._op, self._after = names.index("op"), names.index("after")
        row = reader.written.field(self._after).type
        if not pa.types.is_struct(row):
            raise ValueError("no Debezium envelope: after has no fields")
        self._reader = reader
        self.block_bytes = reader.block_bytes
        self.written = pa.schema([*(field.with_nullable(True) for field in row), *HIDDEN])

    def read(self, values: pa.BinaryArray) -> list[pa.Array]:
        """One array for each field."""
        arrays = self._reader.read(values)
        after = arrays[self._after]
        return [*after.flatten(), arrays[self._op].cast(pa.string()), after.is_valid()]


def row_fields(written: pa.Schema) -> pa.Schema:
    """Fields of a change event that are columns."""
    return pa.schema([field for field in written if field.name not in (_OP, _AFTER)])


class JsonEnvelopes:
    """Inner format of JSON envelopes, with or without Connect's wrapper."""

    bare = False

    def __init__(self, fields: pa.Schema) -> None:
        """`fields`: of the row; ValueError: JSON values cannot have them."""
        change = [pa.field("op", pa.string()), pa.field("after", pa.struct(list(fields)))]
        self._plain = JsonUnwrapped(pa.schema(change))
        self.schema = pa.schema([*fields, *HIDDEN])

    def parse(self, values: pa.BinaryArray) -> Parsed:
        """The row's fields, and `HIDDEN`."""
        parsed = self._plain.parse(values)
        op, after = parsed.columns.columns
        columns = [*after.flatten(), op, after.is_valid()]
        return Parsed(pa.RecordBatch.from_arrays(columns, schema=self.schema), parsed.misfits)


class JsonUnwrapped:
    """JSON objects, each as it is or in Connect's wrapper."""

    bare = False

    def __init__(self, fields: pa.Schema) -> None:
        """`fields`: of the object; ValueError: JSON values cannot have them."""
        self.schema = fields
        self._has_wrapper = "payload" not in fields.names
        inner = [pa.field("payload", pa.struct(list(fields)))] if self._has_wrapper else []
        self._plain = JsonFormat(pa.schema([*fields, *inner]))

    def parse(self, values: pa.BinaryArray) -> Parsed:
        """The objects' fields."""
        parsed = self._plain.parse(values)
        if not self._has_wrapper:
            return parsed
        *bare, payload = parsed.columns.columns
        columns = bare
        if payload.null_count < len(payload):
            count = len(payload)
            wrapped = payload.is_valid().to_numpy(zero_copy_only=False)
            at = pa.array(np.arange(count) + np.where(wrapped, count, 0))
            columns = [
                pa.concat_arrays([one, other]).take(at)
                for one, other in zip(bare, payload.flatten(), strict=True)
            ]
        return Parsed(pa.RecordBatch.from_arrays(columns, schema=self.schema), parsed.misfits)


def sampled_rows(values: Iterable[bytes | None]) -> Iterator[bytes | None]:
    """Of sampled JSON envelopes the rows, to infer columns from."""
    for document in sampled_objects(values):
        found = _object(document)
        after = found.get("after") if found is not None else None
        if isinstance(after, dict):
            yield json.dumps(after).encode()


def sampled_objects(values: Iterable[bytes | None]) -> Iterator[bytes | None]:
    """Of sampled JSON objects what is in Connect's wrapper, where they have one."""
    for value in values:
        found = _object(value)
        payload = found.get("payload") if found is not None else None
        yield json.dumps(payload).encode() if isinstance(payload, dict) else value


def _object(value: bytes | None) -> dict[str, Any] | None:
    try:
        found = json.loads(value or b"")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
