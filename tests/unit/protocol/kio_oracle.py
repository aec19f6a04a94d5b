"""kio's typed Produce and Fetch messages, as a second opinion. Only ever fed valid bytes."""

import dataclasses
import datetime
import io
import uuid
from importlib import import_module
from types import ModuleType
from typing import Any

from kio.serial import entity_reader, entity_writer


def module(api: str, version: int, kind: str) -> ModuleType:
    """Kio's module of one API, version and kind (`request` or `response`)."""
    return import_module(f"kio.schema.{api}.v{version}.{kind}")


def make(cls: Any, **fields: Any) -> Any:
    """An entity with those of `fields` that its version has."""
    names = {field.name for field in dataclasses.fields(cls)}
    return cls(**{name: value for name, value in fields.items() if name in names})


def has(cls: Any, field: str) -> bool:
    """Whether the version of `cls` has `field`."""
    return any(it.name == field for it in dataclasses.fields(cls))


def encode(entity: Any) -> bytes:
    """Bytes of the body."""
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


def decode(cls: Any, data: bytes) -> Any:
    """Entity from bytes that are known to be valid, all of them."""
    entity, size = entity_reader(cls)(data, 0)
    assert size == len(data)
    return entity


def milliseconds(value: int) -> datetime.timedelta:
    """As kio has durations."""
    return datetime.timedelta(milliseconds=value)


def moment(timestamp_ms: int) -> datetime.datetime | None:
    """As kio has timestamps; -1 is None."""
    if timestamp_ms == -1:
        return None
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    return epoch + datetime.timedelta(milliseconds=timestamp_ms)


def topic_uuid(raw: bytes) -> uuid.UUID | None:
    """As kio has topic ids; nil is None."""
    value = uuid.UUID(bytes=raw)
    return value if value.int else None
