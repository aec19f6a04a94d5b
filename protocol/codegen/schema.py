"""Field tables of every message and version, read from kio.

kio has one dataclass per structure and version, with Python's richer types (timedelta for
milliseconds, an enum for error codes, None for the nil UUID). Here they become plain tables of wire
types, in Kafka's own names.
"""

import dataclasses
import datetime
import types
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pkgutil import resolve_name
from typing import Any, Final, get_args, get_origin

from kio.schema.index import api_key_map, schema_name_map
from kio.static.constants import EntityType

VERSION_LIMITS: Final = {"describe_log_dirs": 4}
"""Where kio's release of Kafka is newer than 4.2, the release we follow."""

QUORUM_APIS: Final = frozenset(
    {
        "add_raft_voter",
        "allocate_producer_ids",
        "begin_quorum_epoch",
        "broker_heartbeat",
        "controller_registration",
        "end_quorum_epoch",
        "fetch_snapshot",
        "remove_raft_voter",
        "update_raft_voter",
        "vote",
    }
)
"""What the controllers of Kafka's own consensus (KRaft) say to each other; cluster metadata is in a
store here, so nothing is generated for these."""

_WIRE_TYPES: Final = {
    "error_code": "int16",
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
}
"""kio's types that are plain integers on the wire."""

_MILLISECONDS: Final = ("timedelta_i32", "timedelta_i64", "datetime_i64")
"""Types from whose field names kio has taken Kafka's suffix Ms."""

_ZERO: Final[dict[str, object]] = {
    "bool": False,
    "string": "",
    "bytes": b"",
    "records": None,
    "uuid": None,
    "float64": 0.0,
}


@dataclass(frozen=True)
class Field:
    """One field of a structure in one version.

    Attributes:
        name: Kafka's name in snake case.
        type: Wire type ("int32", "string", ...), or "struct".
        struct: The structure, when type is "struct".
        array: Whether the field is a list of its type.
        nullable: Whether null can be written.
        tag: Number of a tagged field, or None.
        default: What a message has where the field is not given; () for an empty list, None for
            null and also for the nil UUID.
    """

    name: str
    type: str
    struct: "Struct | None"
    array: bool
    nullable: bool
    tag: int | None
    default: object


@dataclass(frozen=True)
class Struct:
    """A structure in one version: fields in wire order, tagged ones by tag."""

    name: str
    fields: tuple[Field, ...]
    flexible: bool

    @property
    def plain(self) -> tuple[Field, ...]:
        """The fields that are always there."""
        return tuple(field for field in self.fields if field.tag is None)

    @property
    def tagged(self) -> tuple[Field, ...]:
        """The fields of the tag section, in ascending order of their tags."""
        tagged = [field for field in self.fields if field.tag is not None]
        return tuple(sorted(tagged, key=lambda field: field.tag or 0))

    def walk(self) -> Iterator["Struct"]:
        """Yield every structure inside and then this one, so that users follow what they use."""
        for field in self.fields:
            if field.struct is not None:
                yield from field.struct.walk()
        yield self


@dataclass(frozen=True)
class Api:
    """One API: the structures of its requests and responses by version."""

    key: int
    name: str
    requests: dict[int, Struct]
    responses: dict[int, Struct]

    @property
    def first_flexible_version(self) -> int | None:
        """First version with compact types and tags."""
        return min((v for v, struct in self.requests.items() if struct.flexible), default=None)


def load() -> list[Api]:
    """Read the tables of all APIs but those of the KRaft quorum, ordered by key."""
    return [
        _load_api(key, name) for key, name in sorted(api_key_map.items()) if name not in QUORUM_APIS
    ]


def _load_api(key: int, name: str) -> Api:
    limit = VERSION_LIMITS.get(name, 1 << 15)
    versions = [version for version in sorted(schema_name_map[name]) if version <= limit]
    requests = {v: resolve_name(schema_name_map[name][v][EntityType.request]) for v in versions}
    responses = {v: resolve_name(schema_name_map[name][v][EntityType.response]) for v in versions}
    shared = _names(requests.values()) & _names(responses.values())
    stem = next(iter(requests.values())).__name__.removesuffix("Request")
    return Api(
        key,
        name,
        {v: _load_struct(cls, f"{stem}Request", shared) for v, cls in requests.items()},
        {v: _load_struct(cls, f"{stem}Response", shared) for v, cls in responses.items()},
    )


def _names(classes: Any) -> set[str]:
    """Collect the names of all structures below some messages."""
    names: set[str] = set()
    for cls in classes:
        names.add(cls.__name__)
        names |= _names(
            inner for field in dataclasses.fields(cls) if (inner := _shape(field.type)[0])
        )
    return names


def _load_struct(cls: Any, prefix: str, shared: set[str]) -> Struct:
    """Read one structure; a name that request and response share gets the message's in front."""
    name = f"{prefix}{cls.__name__}" if cls.__name__ in shared else cls.__name__
    return Struct(
        name,
        tuple(_load_field(field, prefix, shared) for field in dataclasses.fields(cls)),
        cls.__flexible__,
    )


def _load_field(field: Any, prefix: str, shared: set[str]) -> Field:
    struct, array, nullable = _shape(field.type)
    kio_type = field.metadata.get("kafka_type", "struct")
    wire_type = _WIRE_TYPES.get(kio_type, kio_type)
    if array or wire_type not in ("string", "bytes", "records", "struct"):
        # None stands for the nil UUID or a timestamp of -1 there; neither is a null on the wire.
        nullable = nullable and array
    default = _default(field, wire_type, array, nullable)
    return Field(
        name=field.name + ("_ms" if kio_type in _MILLISECONDS else ""),
        type=wire_type,
        struct=_load_struct(struct, prefix, shared) if struct else None,
        array=array,
        nullable=nullable,
        tag=field.metadata.get("tag"),
        default=default,
    )


def _shape(annotation: Any) -> tuple[Any, bool, bool]:
    """Take an annotation apart: (dataclass or None, is it a list, may it be None)."""
    nullable = False
    if isinstance(annotation, types.UnionType):
        (annotation,) = (arg for arg in get_args(annotation) if arg is not types.NoneType)
        nullable = True
    if get_origin(annotation) is tuple:
        inner, _, _ = _shape(get_args(annotation)[0])
        return inner, True, nullable
    return (annotation if dataclasses.is_dataclass(annotation) else None), False, nullable


def _default(field: Any, wire_type: str, array: bool, nullable: bool) -> object:
    value = field.default
    if wire_type == "records" and not nullable:
        return b""
    if value is dataclasses.MISSING:
        return () if array else _ZERO.get(wire_type, None if wire_type == "struct" else 0)
    if array and value is not None:
        if value != ():
            raise NotImplementedError(f"{field.name} has a list as default: {value}")
        return ()
    if wire_type == "struct" or value is None:
        if value is None and wire_type.startswith("int") and not array:
            return -1  # a time that is not known
        return None
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, Enum):
        return int(value.value)
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str | bytes | float):
        return value
    raise NotImplementedError(f"{field.name} has the default {value!r}")
