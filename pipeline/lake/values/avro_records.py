"""Avro records to columns one by one, by fastavro: for schemas that have no blocks.

Some ten times slower than `avro_blocks`: unions of several types need it.
"""

import io
from typing import Any, Final

import fastavro
import pyarrow as pa

from pipeline.lake.schemas.avro_schema import (
    Array,
    Enum,
    Fixed,
    Map,
    Node,
    Primitive,
    Record,
    Union,
)
from pipeline.lake.values.block_parsing import BrokenBlockError
from pipeline.lake.values.decimals import decimal_of

BLOCK_BYTES: Final = 128 * 1024
"""Values that are read at once: each of their bytes may become an object of 180."""

MAX_RECORD_BYTES: Final = 256 * 1024
"""Of one value, for the same reason."""


class AvroRecords:
    """Reads values that were written with one schema; same answers as `AvroBlocks`."""

    def __init__(self, node: Node) -> None:
        """Prepare.

        Args:
            node: The writer's schema.
        """
        self._node = node
        self._schema = fastavro.parse_schema(_Words().of(node))
        fields = list(node.arrow) if isinstance(node, Record) else [pa.field("", node.arrow)]
        self._fields: list[pa.Field] = fields

    def read(self, values: pa.BinaryArray) -> list[pa.Array]:
        """One array for each field of the record; for another schema just one.

        Raises:
            BrokenBlockError: A value is no record of the schema; with its place.
        """
        rows = []
        for at, value in enumerate(values):
            try:
                rows.append(self._row(value.as_py()))
            except BrokenBlockError as error:
                raise BrokenBlockError(error.reason, at) from None
        columns = zip(*rows, strict=True) if rows else [()] * len(self._fields)
        try:
            return [
                pa.array(column, field.type)
                for column, field in zip(columns, self._fields, strict=True)
            ]
        except (pa.ArrowException, OverflowError) as error:
            raise BrokenBlockError(f"Avro: {error}") from None

    def _row(self, data: bytes) -> list[Any]:
        if len(data) > MAX_RECORD_BYTES:
            raise BrokenBlockError(
                f"Avro: longer than {MAX_RECORD_BYTES} bytes, with a union of several types"
            )
        file = io.BytesIO(data)
        try:
            found = fastavro.schemaless_reader(
                file, self._schema, None, return_named_type=True, handle_unicode_errors="strict"
            )
            row = _plain(self._node, found)
        except (EOFError, ValueError, LookupError, TypeError, OverflowError) as error:
            problem = str(error) or type(error).__name__
            raise BrokenBlockError(f"Avro: not a record of its schema ({problem})") from None
        except pa.ArrowInvalid as error:
            raise BrokenBlockError(f"Avro: {error}") from None
        if rest := len(data) - file.tell():
            raise BrokenBlockError(f"Avro: {rest} bytes behind the record")
        return list(row.values()) if isinstance(self._node, Record) else [row]


class _Words:
    """A schema without logical types, with names of our own, which distinguish branches."""

    def __init__(self) -> None:
        self._count = 0

    def of(self, node: Node) -> Any:
        match node:
            case Primitive():
                return node.name
            case Enum():
                return {"type": "enum", "name": self._name(), "symbols": node.symbols}
            case Fixed():
                return {"type": "fixed", "name": self._name(), "size": node.size}
            case Array():
                return {"type": "array", "items": self.of(node.items)}
            case Map():
                return {"type": "map", "values": self.of(node.values)}
            case Record():
                fields = [
                    {"name": f"g{n}", "type": self.of(inner)}
                    for n, (_, inner) in enumerate(node.fields)
                ]
                return {"type": "record", "name": self._name(), "fields": fields}
            case Union():
                return [self._branch(branch, n) for n, branch in enumerate(node.branches)]

    def _branch(self, node: Node, number: int) -> Any:
        words = self.of(node)
        if isinstance(words, dict) and "name" in words:
            words["name"] = f"{words['name']}_{number}"
        return words

    def _name(self) -> str:
        self._count += 1
        return f"N{self._count}"


def _plain(node: Node, value: Any) -> Any:
    """What Arrow takes for `node.arrow`."""
    match node:
        case Union():
            return _branch(node, value)
        case Array():
            return [_plain(node.items, item) for item in value]
        case Map():
            return [(key, _plain(node.values, item)) for key, item in value.items()]
        case Record():
            return {
                name: _plain(inner, value[f"g{n}"]) for n, (name, inner) in enumerate(node.fields)
            }
        case Fixed() | Primitive() if node.logical == "decimal":
            return decimal_of(value, node.arrow)
        case Primitive() if node.logical.endswith("-millis"):
            return value * 1000
        case Primitive() if node.name == "int" and not -(1 << 31) <= value < 1 << 31:
            raise pa.ArrowInvalid(f"{value} is no int")
    return value


def _branch(node: Union, value: Any) -> Any:
    if value is None:
        return None
    number = None
    if isinstance(value, tuple):
        name, value = value
        number = node.members.index(node.branches[int(name.rpartition("_")[2])])
    if not node.is_struct:
        return _plain(node.members[0] if len(node.members) == 1 else _widest(node), value)
    if number is None:
        fitting = [n for n, member in enumerate(node.members) if _is_of(member, value)]
        number = max(fitting, key=lambda n: _width(node.members[n]))
    row: dict[str, Any] = {f"member{n}": None for n in range(len(node.members))}
    row[f"member{number}"] = _plain(node.members[number], value)
    return row


def _widest(node: Union) -> Node:
    return next(
        member
        for member in node.members
        if isinstance(member, Primitive) and member.name in ("long", "double")
    )


def _width(node: Node) -> int:
    """Of two branches that a number does not distinguish, the wider one takes it."""
    return int(isinstance(node, Primitive) and node.name in ("long", "double"))


def _is_of(node: Node, value: Any) -> bool:
    """Whether a value without a name is of a branch."""
    match value:
        case bool():
            return isinstance(node, Primitive) and node.name == "boolean"
        case int():
            return isinstance(node, Primitive) and node.name in ("int", "long")
        case float():
            return isinstance(node, Primitive) and node.name in ("float", "double")
        case str():
            return isinstance(node, Primitive) and node.name == "string"
        case bytes():
            return isinstance(node, Primitive) and node.name == "bytes"
        case list():
            return isinstance(node, Array)
    return isinstance(node, Map)
