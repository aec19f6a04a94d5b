"""kafka-python's message classes, and the definitions that its wheel carries."""

import importlib
import pkgutil
import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any
from uuid import UUID

from protocol.codegen.schema import Struct

with warnings.catch_warnings():
    # kafka-python reads its definitions in a way that Python 3.11 and 3.12 warn about.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka.protocol
    from kafka.protocol.api_message import ApiMessage
    from kafka.protocol.schemas import BaseField, load_json

RENAMED = {
    "topic_authorized_operations": "authorized_operations",
    "cluster_authorized_operations": "authorized_operations",
}
"""Fields that kafka-python calls differently from Kafka, and reads as a set of operations."""

UNKNOWN = -(1 << 31)
"""Stands for "no set of operations was asked for"."""


@cache
def classes() -> dict[tuple[int, str], Any]:
    """Find kafka-python's class by API key and kind ("request" or "response")."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
            if "generate" not in module.name and ".old" not in module.name:
                importlib.import_module(module.name)
    return {
        (cls.API_KEY, cls.type): cls
        for cls in _subclasses(ApiMessage)
        # Only its own: the command line adds messages that it does not know.
        if cls.__module__.startswith("kafka.")
        and cls._class_version is None
        and cls._json["type"] in ("request", "response")
    }


def _subclasses(cls: Any) -> Iterator[Any]:
    for inner in cls.__subclasses__():
        yield inner
        yield from _subclasses(inner)


@cache
def definition(name: str) -> dict[str, Any]:
    """Read Kafka's own definition of a message, unpatched."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return load_json(name)  # type: ignore[no-any-return]  # kafka-python is not typed


def covers(versions: str | None, version: int) -> bool:
    """Say whether a range such as "3+" or "0-2" holds a version."""
    parsed = BaseField.parse_versions(versions)
    return parsed is not None and bool(parsed[0] <= version <= parsed[1])


def snake(name: str) -> str:
    """Write a name of the definitions as an attribute."""
    return str(BaseField.underscore_name(name))


def make_representable(message: Any, struct: Struct) -> None:
    """Change a message of ours, in place, into one that kafka-python's sets of bits can hold."""
    for field in struct.fields:
        value = getattr(message, field.name)
        if field.struct is not None and value is not None:
            for each in value if field.array else [value]:
                make_representable(each, field.struct)
        elif field.name.endswith("authorized_operations") and value != UNKNOWN:
            setattr(message, field.name, value & 0x7FFFFFFF or 1)


def to_kafka_python(message: Any, struct: Struct, cls: Any, version: int) -> Any:
    """Give kafka-python's twin of a message of ours."""
    values = {}
    for field in struct.fields:
        value = getattr(message, field.name)
        name = field.name if field.name in cls._struct.fields else RENAMED[field.name]
        theirs = cls._struct.fields[name]
        if field.tag is not None and _is_default(field, value):
            continue
        if field.struct is not None and value is not None:
            inner = theirs.data_class
            if field.array:
                value = [to_kafka_python(each, field.struct, inner, version) for each in value]
            else:
                value = to_kafka_python(value, field.struct, inner, version)
        if theirs.type_str == "bitfield":
            value = None if value == UNKNOWN else {bit for bit in range(31) if value & (1 << bit)}
        values[name] = value
    return cls(version=version, **values)


def _is_default(field: Any, value: Any) -> bool:
    if field.type == "uuid":
        return bool(value == UUID(int=0))
    if field.struct is not None and not field.array:
        return value is None or bool(value == type(value)())
    return value is None or value == (list(field.default) if field.array else field.default)
