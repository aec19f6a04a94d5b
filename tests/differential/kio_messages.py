"""Our messages as kio's and back.

kio has richer types: milliseconds are timedeltas and datetimes, error codes an enum, the nil UUID
is None. Values that those cannot hold are mapped to ones they can, in `representable`.
"""

import dataclasses
import datetime
import io
import sys
from functools import cache
from pkgutil import resolve_name
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.index import schema_name_map
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from protocol.codegen.schema import Field, Struct

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MILLISECOND = datetime.timedelta(milliseconds=1)
TIME_MAX_MS = 4_000_000_000_000
"""kio goes through a float of seconds, which is exact to the millisecond up to here and beyond."""


@cache
def entity(api: str, version: int, kind: str) -> Any:
    """Give kio's class of a message."""
    paths: Any = schema_name_map
    return resolve_name(paths[api][version][EntityType[kind]])


def write(value: Any) -> bytes:
    """Encode with kio."""
    with io.BytesIO() as buffer:
        entity_writer(type(value))(buffer, value)
        return buffer.getvalue()


def read(cls: Any, data: bytes) -> Any:
    """Decode with kio. Valid bytes only: a false count can end the process."""
    value, size = entity_reader(cls)(data, 0)
    assert size == len(data)
    return value


def make_representable(message: Any, struct: Struct, cls: Any) -> None:
    """Change a message of ours, in place, into one that kio's types can hold."""
    kinds = {ours.name: theirs for ours, theirs in _pairs(struct, cls)}
    for field in struct.fields:
        theirs = kinds[field.name]
        value = getattr(message, field.name)
        if field.struct is not None:
            inner = _inner_class(theirs.type)
            for each in value if field.array and value is not None else [value]:
                if each is not None:
                    make_representable(each, field.struct, inner)
            continue
        match theirs.metadata.get("kafka_type"):
            case "error_code":
                setattr(message, field.name, value % 134 - 1)
            case "timedelta_i64":
                setattr(message, field.name, value % TIME_MAX_MS)
            case "datetime_i64":
                nullable = "None" in str(theirs.type)
                small = value % TIME_MAX_MS
                setattr(message, field.name, -1 if nullable and value < 0 else small)


def to_kio(message: Any, struct: Struct, cls: Any) -> Any:
    """Give kio's twin of a message of ours."""
    values = {}
    for field, theirs in _pairs(struct, cls):
        value = getattr(message, field.name)
        if field.struct is not None:
            inner = _inner_class(theirs.type)
            if field.array and value is not None:
                value = tuple(to_kio(each, field.struct, inner) for each in value)
            elif value is None and field.tag is not None:
                # Absent with us; kio has the structure's defaults there.
                default = getattr(sys.modules[type(message).__module__], field.struct.name)()
                value = to_kio(default, field.struct, inner)
            elif value is not None:
                value = to_kio(value, field.struct, inner)
        elif field.array and value is not None:
            value = tuple(_to_kio_value(theirs, each) for each in value)
        else:
            value = _to_kio_value(theirs, value)
        values[theirs.name] = value
    return cls(**values)


def _to_kio_value(theirs: Any, value: Any) -> Any:
    match theirs.metadata.get("kafka_type"):
        case "error_code":
            return ErrorCode(value)
        case "timedelta_i32" | "timedelta_i64":
            return value * MILLISECOND
        case "datetime_i64":
            return None if value == -1 else EPOCH + value * MILLISECOND
        case "uuid":
            return None if value == UUID(int=0) else value
    return value


def _pairs(struct: Struct, cls: Any) -> list[tuple[Field, Any]]:
    return list(zip(struct.fields, dataclasses.fields(cls), strict=True))


def _inner_class(annotation: Any) -> Any:
    """Find the dataclass in an annotation such as `tuple[Topic, ...] | None`."""
    if dataclasses.is_dataclass(annotation):
        return annotation
    found = (_inner_class(each) for each in getattr(annotation, "__args__", ()))
    return next((each for each in found if each is not None), None)
