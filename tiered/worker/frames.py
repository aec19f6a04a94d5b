"""Frames and messages between the broker and its tier process, over a Unix stream socket.

A frame, big-endian:

    byte  size  field
       0     4  length       of what follows, 6 .. FRAME_SIZE_MAX
       4     4  head length  h, 2 .. length - 4
       8     h  head         a JSON object, UTF-8: "kind", "id", and what the kind has
     8+h     d  data         the message's bytes, or its next piece; usually none

A message is one frame; with more data than fits it is several: frames of kind `part`, each with a
piece of the data, and then the frame with the message's own head and the last piece. All carry the
message's id. A sender has one message in pieces at a time; others may come in between. A cancel or
an error with its id says that the rest will not come.

    kind        from     id    head                              data
    hello       broker   0     version, settings, log_level
    hello       process  0     version, pid
    call        broker   n     method, arguments                 bytes and long lists
    cancel      broker   n
    result      process  n     result                            bytes and long lists
    error       process  n     error: type, text, fields         (id 0: it cannot start)
    ping        broker   n
    statistics  process  n     counters; answers the ping n, or 0 when unsolicited

What does not fit this table closes the connection: neither side ever guesses.
"""

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from struct import Struct
from typing import Any, Final, NamedTuple

VERSION: Final = 1

FRAME_SIZE_MAX: Final = 1024 * 1024
"""Bytes of a frame after its length. A call's head is below 1 KiB."""

DATA_SIZE_MAX: Final = 64 * 1024 * 1024
"""Bytes of data of one message: the largest object of the metadata's own."""

_LENGTHS: Final = Struct(">II")
_LENGTH_SIZE: Final = 4
_HEAD_SIZE_MIN: Final = 2
_encode_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class FrameError(Exception):
    """Not what this side of the socket may be sent; the connection is of no use any more."""


class MessageTooLargeError(Exception):
    """A head above a frame, or data above DATA_SIZE_MAX: it was not sent."""


class Kind(StrEnum):
    """See the module."""

    HELLO = "hello"
    CALL = "call"
    CANCEL = "cancel"
    RESULT = "result"
    ERROR = "error"
    PING = "ping"
    STATISTICS = "statistics"
    PART = "part"


_KINDS: Final = {str(kind): kind for kind in Kind}


class Message(NamedTuple):
    """One message; `fields` is its head with kind and id still in it."""

    kind: Kind
    id: int
    fields: Mapping[str, Any]
    data: bytes


def encode(
    kind: Kind, number: int, fields: Mapping[str, Any], data: bytes | memoryview = b""
) -> Iterator[bytes]:
    """The frames of one message; usually one.

    Raises:
        MessageTooLargeError: Before the first frame.
    """
    head = _encode_json({"kind": kind, "id": number, **fields}).encode()
    room = FRAME_SIZE_MAX - _LENGTH_SIZE - len(head)
    if room < 0:
        raise MessageTooLargeError(f"{kind} with a head of {len(head)} bytes")
    if len(data) > DATA_SIZE_MAX:
        raise MessageTooLargeError(f"{kind} with {len(data)} bytes of data")
    return _frames(number, head, memoryview(data), room)


def _frames(number: int, head: bytes, data: memoryview, room: int) -> Iterator[bytes]:
    if len(data) > room:
        part = _encode_json({"kind": Kind.PART, "id": number}).encode()
        step = FRAME_SIZE_MAX - _LENGTH_SIZE - len(part)
        while len(data) > room:
            yield _frame(part, data[:step])
            data = data[step:]
    yield _frame(head, data)


def _frame(head: bytes, data: memoryview) -> bytes:
    length = _LENGTH_SIZE + len(head) + len(data)
    return b"".join((_LENGTHS.pack(length, len(head)), head, data))


class FrameDecoder:
    """Bytes in, messages out. Holds at most a frame and the data of one message in pieces."""

    __slots__ = ("_buffer", "_parts", "_parts_id", "_parts_size")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._parts: list[bytes] = []
        self._parts_id = -1
        self._parts_size = 0

    @property
    def held_bytes(self) -> int:
        """Bytes of unfinished frames and messages."""
        return len(self._buffer) + self._parts_size

    def feed(self, received: bytes) -> Iterator[Message]:
        """The messages that are whole now.

        Raises:
            FrameError: The peer does not speak this language. Feed nothing more.
        """
        buffer: bytes | bytearray = received
        if self._buffer:
            self._buffer += received
            buffer = self._buffer
        position = 0
        end = len(buffer)
        while end - position >= _LENGTHS.size:
            length, head_length = _LENGTHS.unpack_from(buffer, position)
            if not _LENGTH_SIZE + _HEAD_SIZE_MIN <= length <= FRAME_SIZE_MAX:
                raise FrameError(f"a frame of {length} bytes")
            if not _HEAD_SIZE_MIN <= head_length <= length - _LENGTH_SIZE:
                raise FrameError(f"a head of {head_length} bytes in a frame of {length}")
            following = position + _LENGTH_SIZE + length
            if following > end:
                break
            head_end = position + _LENGTHS.size + head_length
            message = self._message(
                bytes(buffer[position + _LENGTHS.size : head_end]),
                bytes(buffer[head_end:following]),
            )
            position = following
            if message is not None:
                yield message
        if buffer is self._buffer:
            del self._buffer[:position]
        elif position < end:
            self._buffer += memoryview(received)[position:]

    def _message(self, head: bytes, data: bytes) -> Message | None:
        try:
            fields = json.loads(head)
            kind = _KINDS[fields["kind"]]
            number = fields["id"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise FrameError(f"not a head: {head[:80]!r}") from error
        if type(number) is not int or not 0 <= number < 1 << 63:
            raise FrameError(f"not an id: {number!r}"[:80])
        if kind is Kind.PART:
            if self._parts and number != self._parts_id:
                raise FrameError("two messages in pieces at a time")
            if not data or self._parts_size + len(data) > DATA_SIZE_MAX:
                raise FrameError(f"a piece of {len(data)} bytes after {self._parts_size}")
            self._parts.append(data)
            self._parts_id = number
            self._parts_size += len(data)
            return None
        if self._parts and number == self._parts_id:
            data = self._take_parts(data) if kind in (Kind.CALL, Kind.RESULT) else data
            self._forget_parts()
        return Message(kind, number, fields, data)

    def _take_parts(self, last: bytes) -> bytes:
        if self._parts_size + len(last) > DATA_SIZE_MAX:
            raise FrameError(f"a last piece of {len(last)} bytes after {self._parts_size}")
        return b"".join((*self._parts, last))

    def _forget_parts(self) -> None:
        self._parts = []
        self._parts_id = -1
        self._parts_size = 0
