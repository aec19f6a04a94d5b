"""Avro records to columns, a block at a time, by polars; every record ends where it ended.

Values without a header are joined to a container file in memory:

    header: magic, {"avro.schema": ..., "avro.codec": "null"}, sync
    block:  count, bytes, record mark record mark ... record mark, sync

A record does not carry its length: one that is too short would take bytes of the next, and one that
is too long would become two. So each is followed by a mark, a number that cannot be guessed, as a
last field of the schema. The first record begins where the block does; when its mark is right it
ends where it should, since nowhere else is that number; so does the next, and so all of them.

The schema that polars sees is the writer's in plainer words with the same bytes: fields by
position, enums, ints, dates and booleans as longs, maps as arrays of key and value. What they mean
is made of them here, so that a number that does not fit is an error and not another number. The
branch of a union alone is not checked: polars takes one number for null, and all others for the
value.

Unions other than with null have no such words; `avro_records` reads those.

https://avro.apache.org/docs/1.12.0/specification/#object-container-files
"""

import io
import json
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from polars.exceptions import PanicException, PolarsError

from pipeline.lake.schemas.avro_schema import (
    Array,
    Enum,
    Fixed,
    Map,
    Node,
    Primitive,
    Record,
    Union,
    is_null,
)
from pipeline.lake.values.block_parsing import BrokenBlockError
from pipeline.lake.values.decimals import decimals_of
from storage.environment.randomness import Randomness

_SYNC: Final = bytes(16)
_MARK: Final = "mark"


def has_blocks(node: Node) -> bool:
    """Whether polars can read records of a schema."""
    match node:
        case Union():
            nullable = len(node.branches) == 2 and len(node.members) == 1
            return nullable and has_blocks(node.members[0])
        case Array():
            return has_blocks(node.items)
        case Map():
            return has_blocks(node.values)
        case Record():
            return bool(node.fields) and all(has_blocks(inner) for _, inner in node.fields)
        case Fixed():
            return node.size > 0
    return not is_null(node)


class AvroBlocks:
    """Reads blocks of values that were written with one schema."""

    def __init__(self, node: Node, randomness: Randomness) -> None:
        """Prepare.

        Args:
            node: The writer's schema; `has_blocks` of it.
            randomness: For marks.
        """
        self._node = node
        self._randomness = randomness
        top = node.fields if isinstance(node, Record) else [("", node)]
        self._names = _Names()
        fields = [
            {"name": f"f{n}", "type": self._names.words(inner)} for n, (_, inner) in enumerate(top)
        ]
        fields.append({"name": _MARK, "type": "long"})
        self._words = json.dumps({"type": "record", "name": "R", "fields": fields}).encode()
        self._top = [inner for _, inner in top]

    def read(self, values: pa.BinaryArray) -> list[pa.Array]:
        """One array for each field of the record; for another schema just one.

        Raises:
            BrokenBlockError: At least one value is no record of the schema.
        """
        number = int.from_bytes(self._randomness.token_bytes(8), "big", signed=True)
        mark = _long(number)
        joined = pc.binary_join_element_wise(values, pa.scalar(mark), pa.scalar(b""))
        block = joined.buffers()[2]
        file = b"".join(
            [
                b"Obj\x01",
                _long(2),
                _bytes(b"avro.schema"),
                _bytes(self._words),
                _bytes(b"avro.codec"),
                _bytes(b"null"),
                _long(0),
                _SYNC,
                _long(len(values)),
                _long(block.size),
                block,
                _SYNC,
            ]
        )
        try:
            frame = pl.read_avro(io.BytesIO(file))
        except (PolarsError, PanicException, OSError) as error:
            raise BrokenBlockError(_message(error)) from None
        if frame.height != len(values) or not (frame[_MARK] == number).all():
            raise BrokenBlockError("the value is longer or shorter than a record of its schema")
        try:
            return [
                meant(node, _whole(frame[f"f{n}"].to_arrow())) for n, node in enumerate(self._top)
            ]
        except (pa.ArrowInvalid, OverflowError) as error:
            raise BrokenBlockError(f"Avro: {error}") from None


class _Names:
    """A schema in polars' form; types get new names, since the same type may come twice."""

    def __init__(self) -> None:
        self._count = 0

    def words(self, node: Node) -> Any:
        match node:
            case Primitive():
                return "long" if node.name in ("boolean", "int") else node.name
            case Enum():
                return "long"
            case Fixed():
                return {"type": "fixed", "name": self._name(), "size": node.size}
            case Array():
                return {"type": "array", "items": self.words(node.items)}
            case Map():
                return {"type": "array", "items": self._record(["string", self.words(node.values)])}
            case Record():
                return self._record([self.words(inner) for _, inner in node.fields])
            case Union():
                return [
                    "null" if is_null(branch) else self.words(branch) for branch in node.branches
                ]

    def _record(self, types: list[Any]) -> dict[str, Any]:
        fields = [{"name": f"g{n}", "type": kind} for n, kind in enumerate(types)]
        return {"type": "record", "name": self._name(), "fields": fields}

    def _name(self) -> str:
        self._count += 1
        return f"N{self._count}"


def meant(node: Node, array: pa.Array) -> pa.Array:
    """Polars' plain values as an array of `node.arrow`.

    Raises:
        pyarrow.ArrowInvalid: A number that is none of the type.
    """
    match node:
        case Union():
            return meant(node.members[0], array)
        case Array():
            values = meant(node.items, array.values)
            return pa.ListArray.from_arrays(
                array.offsets.cast(pa.int32()), values, type=node.arrow, mask=_mask(array)
            )
        case Map():
            keys, values = array.values.flatten()
            return pa.MapArray.from_arrays(
                array.offsets.cast(pa.int32()),
                keys.cast(pa.string()),
                meant(node.values, values),
                type=node.arrow,
                mask=_mask(array),
            )
        case Record():
            inner = [
                meant(field, child)
                for (_, field), child in zip(node.fields, array.flatten(), strict=True)
            ]
            fields = list(node.arrow)
            return pa.StructArray.from_arrays(inner, fields=fields, mask=_mask(array))
        case Enum():
            symbols = pa.array(node.symbols, pa.string())
            if pc.any(pc.or_(pc.less(array, 0), pc.greater_equal(array, len(symbols)))).as_py():
                raise pa.ArrowInvalid(f"{node.full_name} has {len(symbols)} symbols, none of these")
            return symbols.take(array)
        case Fixed():
            return _bytes_meant(node, array)
        case Primitive():
            return _primitive(node, array)


def _primitive(node: Primitive, array: pa.Array) -> pa.Array:
    if node.name == "boolean":
        # One byte, 0 or 1: as a long, 0 or -1.
        if pc.any(pc.and_(pc.not_equal(array, 0), pc.not_equal(array, -1))).as_py():
            raise pa.ArrowInvalid("a boolean that is neither 0 nor 1")
        return pc.not_equal(array, 0)
    if node.name == "bytes":
        return _bytes_meant(node, array)
    if node.name == "int":
        array = array.cast(pa.int32())
    if node.logical.endswith("-millis"):
        array = array.cast(pa.timestamp("ms", node.arrow.tz))
    return array.cast(node.arrow)


def _bytes_meant(node: Primitive | Fixed, array: pa.Array) -> pa.Array:
    if node.logical == "decimal":
        return decimals_of(array.to_pylist(), node.arrow)
    return array.cast(node.arrow)


def _mask(array: pa.Array) -> pa.Array | None:
    return array.is_null() if array.null_count else None


def _whole(column: Any) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _message(error: BaseException) -> str:
    return f"Avro: not a record of its schema ({error})"


def _long(number: int) -> bytes:
    """Zigzag, seven bits a byte, the least first."""
    rest = ((number << 1) ^ (number >> 63)) & 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _bytes(data: bytes) -> bytes:
    return _long(len(data)) + data
