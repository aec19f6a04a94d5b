"""Protobuf's descriptors: from a file or a registry to the message that values are of.

    a file        a `FileDescriptorSet` (`protoc --descriptor_set_out=x --include_imports`)
    a registry    a `FileDescriptorProto` in base64 (`format=serialized`), with its references

Google's own types (`google/protobuf/*.proto`) are known without being in either. Every schema gets
a pool of its own: two versions of a file have the same names.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any, Final

from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.message import DecodeError

_KNOWN: Final = {
    module.DESCRIPTOR.name: module.DESCRIPTOR.serialized_pb
    for module in (
        *(any_pb2, descriptor_pb2, duration_pb2, empty_pb2, field_mask_pb2, struct_pb2),
        *(timestamp_pb2, wrappers_pb2),
    )
}

MAX_FILES: Final = 1_000
"""Of one schema."""


class ProtobufSchemaError(ValueError):
    """A schema that is none, or one that no columns can be made of: a sentence."""


def message_of_file(definition: bytes, message: str | None) -> Any:
    """The descriptor of a message in a descriptor set.

    Args:
        definition: The set.
        message: Its full name; none: the first message of the last file, which is the one that
            was compiled.

    Raises:
        ProtobufSchemaError: It is no such set, it lacks an import, or it has no such message.
    """
    files = descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(definition)
    except DecodeError:
        raise ProtobufSchemaError(
            "not a descriptor set: compile the .proto with "
            "protoc --descriptor_set_out=file --include_imports"
        ) from None
    if not files.file:
        raise ProtobufSchemaError("a descriptor set without files")
    return _found(files.file, files.file[-1].name, message)


def message_of_registry(text: str, references: Mapping[str, str], message: str | None) -> Any:
    """The descriptor of a message in a registry's schema.

    Args:
        text: The file.
        references: Files by the names under which they are imported.
        message: Its full name; none: the first of the file.

    Raises:
        ProtobufSchemaError: They are no descriptors, or there is no such message.
    """
    files = []
    for name, other in references.items():
        file = _decoded(other)
        file.name = name
        files.append(file)
    main = _decoded(text)
    main.name = main.name or "value.proto"
    return _found([*files, main], main.name, message)


def _decoded(text: str) -> Any:
    file = descriptor_pb2.FileDescriptorProto()
    try:
        file.ParseFromString(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, DecodeError):
        raise ProtobufSchemaError(
            "the registry gives no serialized descriptor (format=serialized): "
            "give a descriptor set as schema"
        ) from None
    return file


def _found(files: Iterable[Any], main: str, message: str | None) -> Any:
    by_name = {file.name: file for file in files}
    if len(by_name) > MAX_FILES:
        raise ProtobufSchemaError(f"a schema of more than {MAX_FILES} files")
    pool = descriptor_pool.DescriptorPool()
    added: set[str] = set()

    def add(name: str, path: tuple[str, ...]) -> None:
        if name in added:
            return
        if name in path:
            raise ProtobufSchemaError(f"{name} imports itself")
        if name in by_name:
            for needed in by_name[name].dependency:
                add(needed, (*path, name))
            pool.Add(by_name[name])
        elif name in _KNOWN:
            for needed in descriptor_pb2.FileDescriptorProto.FromString(_KNOWN[name]).dependency:
                add(needed, (*path, name))
            pool.AddSerializedFile(_KNOWN[name])
        else:
            raise ProtobufSchemaError(f"{name} is imported and not there (--include_imports)")
        added.add(name)

    try:
        for name in by_name:
            add(name, ())
        if message is not None:
            return pool.FindMessageTypeByName(message)
        described = pool.FindFileByName(main)
    except KeyError:
        raise ProtobufSchemaError(f"there is no message {message}") from None
    except TypeError as error:
        raise ProtobufSchemaError(f"not a whole schema: {error}") from None
    messages = by_name[main].message_type
    if not messages:
        raise ProtobufSchemaError(f"{main} has no message")
    return described.message_types_by_name[messages[0].name]


def index_path(message: Any) -> tuple[int, ...]:
    """Index path of a message in its file, from the outermost message inwards."""
    path: list[int] = []
    while message is not None:
        outer = message.containing_type
        beside = (
            message.file.message_types_by_name.values() if outer is None else outer.nested_types
        )
        path.append([other.full_name for other in beside].index(message.full_name))
        message = outer
    return tuple(reversed(path))
