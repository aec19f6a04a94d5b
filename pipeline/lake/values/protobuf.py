"""Protobuf values to columns, record by record by the library's own parser (upb).

Behind a registry's id stand the message's indexes, zigzag varints, which name the message:

    00                  the first message
    count, index ...    otherwise: the path from the outermost message inwards

A table is of one message; values of another one are misfits.
"""

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from google.protobuf import message_factory
from google.protobuf.message import DecodeError

from pipeline.lake.schemas.protobuf_schema import index_path, message_of_file, message_of_registry
from pipeline.lake.schemas.registry import RegisteredSchema
from pipeline.lake.values.block_parsing import BrokenBlockError
from pipeline.lake.values.protobuf_columns import message_columns

KIND: Final = "PROTOBUF"
"""The registry's word."""

BLOCK_BYTES: Final = 512 * 1024
"""Values that are parsed at once: each of their bytes may become an object of 40."""

MAX_INDEXES: Final = 100
"""Messages within messages."""


class ProtobufReader:
    """Reads values of one message."""

    bare = False
    block_bytes = BLOCK_BYTES

    def __init__(self, message: Any, *, indexed: bool) -> None:
        """Prepare.

        Args:
            message: Its descriptor.
            indexed: Whether message indexes stand before each value.

        Raises:
            ProtobufSchemaError: It has no columns.
        """
        self._name: str = message.full_name
        self._columns = message_columns(message)
        self._class = message_factory.GetMessageClass(message)
        self._path = index_path(message) if indexed else None
        self.written = pa.schema([column.field for column in self._columns])

    def read(self, values: pa.BinaryArray) -> list[pa.Array]:
        """One array for each field.

        Raises:
            BrokenBlockError: A value is no such message; with its place.
        """
        messages = [self._message(at, value) for at, value in enumerate(values.to_pylist())]
        try:
            return [column.read(messages) for column in self._columns]
        except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
            raise BrokenBlockError(f"Protobuf: {error}") from None

    def _message(self, at: int, value: bytes) -> Any:
        try:
            body = value if self._path is None else _body(value, self._path)
            return self._class.FromString(body)
        except DecodeError:
            raise BrokenBlockError(f"Protobuf: not a message {self._name}", at) from None
        except ValueError as error:
            raise BrokenBlockError(f"Protobuf: {error}", at) from None


def protobuf_of_registry(found: RegisteredSchema, message: str | None) -> ProtobufReader:
    """A reader of values of a registry's schema.

    Raises:
        ValueError: It is of another kind, or has no columns.
    """
    if found.kind != KIND:
        raise ValueError(f"{found.kind} and not {KIND}")
    described = message_of_registry(found.text, found.references, message)
    return ProtobufReader(described, indexed=True)


def protobuf_of_file(definition: bytes, message: str | None, *, indexed: bool) -> ProtobufReader:
    """A reader of values of a message in a descriptor set.

    Raises:
        ValueError: It has no such message, or that no columns.
    """
    return ProtobufReader(message_of_file(definition, message), indexed=indexed)


def _body(value: bytes, path: Sequence[int]) -> bytes:
    """What follows the indexes.

    Raises:
        ValueError: They are none, or of another message.
    """
    count, at = _varint(value, 0)
    if not 0 <= count <= MAX_INDEXES:
        raise ValueError("the value does not begin with message indexes")
    found = [] if count else [0]
    for _ in range(count):
        index, at = _varint(value, at)
        found.append(index)
    if found != list(path):
        raise ValueError(f"message {found} of the schema, and not {list(path)}")
    return value[at:]


def _varint(value: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(value) or shift > 28:
            raise ValueError("the value does not begin with message indexes")
        byte = value[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
