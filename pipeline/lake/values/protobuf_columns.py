"""Protobuf's messages to columns, field by field.

    double float bool string bytes              double float boolean string binary
    int32 sint32 sfixed32                       int
    int64 sint64 sfixed64, uint32 fixed32       bigint
    uint64 fixed64                              decimal(20,0)
    enum                                        string: its name; an unknown one its number
    repeated, map                               array, map
    message, group                              struct
    google.protobuf.Timestamp                   timestamp; below a microsecond it is cut
    google.protobuf.Int32Value and the like     the value, null where there is none
    google.protobuf.Struct, Value, ListValue    string: JSON
    other messages of Google's                  struct, Duration and Any too

A field that has no value is null where Protobuf knows (messages, `optional`, `oneof`, proto2),
and its default where it cannot, as a reader of the message sees it. Recursive messages have no
columns and are refused. Fields that the schema does not know are left out.
"""

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor

from pipeline.lake.schemas.protobuf_schema import ProtobufSchemaError

MAX_DEPTH: Final = 50

_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_UINT64: Final = pa.decimal128(20, 0)

_SCALARS: Final = {
    FieldDescriptor.TYPE_DOUBLE: pa.float64(),
    FieldDescriptor.TYPE_FLOAT: pa.float32(),
    FieldDescriptor.TYPE_BOOL: pa.bool_(),
    FieldDescriptor.TYPE_STRING: pa.string(),
    FieldDescriptor.TYPE_BYTES: pa.binary(),
    FieldDescriptor.TYPE_INT32: pa.int32(),
    FieldDescriptor.TYPE_SINT32: pa.int32(),
    FieldDescriptor.TYPE_SFIXED32: pa.int32(),
    FieldDescriptor.TYPE_INT64: pa.int64(),
    FieldDescriptor.TYPE_SINT64: pa.int64(),
    FieldDescriptor.TYPE_SFIXED64: pa.int64(),
    FieldDescriptor.TYPE_UINT32: pa.int64(),
    FieldDescriptor.TYPE_FIXED32: pa.int64(),
    FieldDescriptor.TYPE_UINT64: _UINT64,
    FieldDescriptor.TYPE_FIXED64: _UINT64,
}

_JSON: Final = frozenset({f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue")})

_WRAPPERS: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)

Build: TypeAlias = Callable[[Sequence[Any], Any], pa.Array]
"""From values of a field, and a mask of those that are null or none, to an array."""


class Column(NamedTuple):
    """A field of a message.

    Attributes:
        field: Name and type.
        read: From messages to their values.
    """

    field: pa.Field
    read: Callable[[Sequence[Any]], pa.Array]


def message_columns(message: Any) -> list[Column]:
    """The columns of a message.

    Raises:
        ProtobufSchemaError: It holds itself, or has no field.
    """
    columns = _columns(message, ())
    if not columns:
        raise ProtobufSchemaError(f"{message.full_name} has no field that could be a column")
    return columns


def _columns(message: Any, path: tuple[str, ...]) -> list[Column]:
    if message.full_name in path:
        raise ProtobufSchemaError(f"{message.full_name} holds itself: it has no columns")
    if len(path) >= MAX_DEPTH:
        raise ProtobufSchemaError(f"messages are nested more than {MAX_DEPTH} deep")
    inside = (*path, message.full_name)
    columns = (_column(field, inside) for field in message.fields)
    return [column for column in columns if column is not None]


def _column(field: Any, path: tuple[str, ...]) -> Column | None:
    """None: a message without fields, for which tables have no type."""
    if _is_map(field):
        return _map(field, path)
    kind, build = _kind(field, path)
    if pa.types.is_struct(kind) and not len(kind):
        return None
    name = field.name
    if field.is_repeated:
        return Column(pa.field(name, pa.list_(kind)), _repeated(name, kind, build))
    if not field.has_presence:
        return Column(
            pa.field(name, kind), lambda found: build([getattr(m, name) for m in found], None)
        )

    def read(found: Sequence[Any]) -> pa.Array:
        unset = np.fromiter((not m.HasField(name) for m in found), bool, len(found))
        return build([getattr(m, name) for m in found], unset)

    return Column(pa.field(name, kind), read)


def _repeated(name: str, kind: pa.DataType, build: Build) -> Callable[[Sequence[Any]], pa.Array]:
    def read(found: Sequence[Any]) -> pa.Array:
        lists = [getattr(m, name) for m in found]
        values = build(list(chain.from_iterable(lists)), None)
        return pa.ListArray.from_arrays(_offsets(map(len, lists), len(lists)), values)

    return read


def _map(field: Any, path: tuple[str, ...]) -> Column | None:
    entry = field.message_type
    key_kind, build_keys = _kind(entry.fields_by_name["key"], path)
    value_kind, build_values = _kind(entry.fields_by_name["value"], path)
    if pa.types.is_struct(value_kind) and not len(value_kind):
        return None
    name = field.name

    def read(found: Sequence[Any]) -> pa.Array:
        maps = [getattr(m, name) for m in found]
        keys = [sorted(m) for m in maps]
        values = [m[key] for m, some in zip(maps, keys, strict=True) for key in some]
        return pa.MapArray.from_arrays(
            _offsets(map(len, keys), len(keys)),
            build_keys(list(chain.from_iterable(keys)), None),
            build_values(values, None),
        )

    return Column(pa.field(name, pa.map_(key_kind, value_kind)), read)


def _kind(field: Any, path: tuple[str, ...]) -> tuple[pa.DataType, Build]:
    """Type of one value of a field, and how an array of them is made."""
    scalar = _SCALARS.get(field.type)
    if scalar is not None:
        convert = Decimal if scalar == _UINT64 else None
        return scalar, _scalar(scalar, convert)
    if field.type == FieldDescriptor.TYPE_ENUM:
        names = {value.number: value.name for value in field.enum_type.values}
        return pa.string(), _scalar(pa.string(), lambda n: names.get(n) or str(n))
    message = field.message_type
    if message.full_name == "google.protobuf.Timestamp":
        return _TIMESTAMP, _scalar(_TIMESTAMP, lambda t: t.seconds * 1_000_000 + t.nanos // 1_000)
    if message.full_name in _JSON:
        return pa.string(), _scalar(pa.string(), _json)
    if message.full_name in _WRAPPERS:
        kind, build = _kind(message.fields_by_name["value"], path)
        return kind, lambda values, mask: build([v.value for v in values], mask)
    columns = _columns(message, path)
    kind = pa.struct([column.field for column in columns])
    return kind, lambda values, mask: pa.StructArray.from_arrays(
        [column.read(values) for column in columns],
        fields=list(kind),
        mask=None if mask is None else pa.array(mask),
    )


def _scalar(kind: pa.DataType, convert: Callable[[Any], Any] | None) -> Build:
    def build(values: Sequence[Any], mask: Any) -> pa.Array:
        given = values if convert is None else [convert(value) for value in values]
        return pa.array(given, kind, mask=mask)

    return build


def _json(message: Any) -> str:
    return str(json_format.MessageToJson(message, indent=None, ensure_ascii=False))


def _is_map(field: Any) -> bool:
    message = field.message_type
    return bool(field.is_repeated and message is not None and message.GetOptions().map_entry)


def _offsets(lengths: Iterable[int], count: int) -> pa.Array:
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(np.fromiter(lengths, np.int32, count), out=offsets[1:])
    return pa.array(offsets)
