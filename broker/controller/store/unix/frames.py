"""Frames on the socket between a broker and the process that serves its metadata store.

    offset  bytes
    0       4       length of what follows, 5 + body; u32, as all numbers big-endian
    4       1       kind
    5       4       number: of the request, or of the watch; the client chooses it
    9       ...     body, see `requests` and `answers`; fields as in `fields`

    client                            server
    HELLO   magic u32, release u16, name text
                                      WELCOME  magic, release, identity u64, revision u64
    GET RANGE TXN COMPACT GRANT
    KEEP_ALIVE REVOKE PING            ANSWER or FAILED, by number, in any order
    WATCH                             CHANGES..., at last ENDED
    PROGRESS                          CHANGES without events, behind all there are
    UNWATCH                           nothing; what was on its way may still come
                                      REFUSED  text: why, then the end of the connection

The first frame each way is HELLO and WELCOME. A frame longer than its limit, of a kind that is not
known or with a body that cannot be read ends the connection with REFUSED: from there on nothing on
it would be certain.
"""

import asyncio
import enum
import struct
from dataclasses import dataclass
from typing import Final

from broker.controller.store.unix.fields import FieldReader, FieldWriter, FrameError

MAGIC: Final = 0x56_41_4D_53
"""`VAMS`."""

RELEASE: Final = 1
"""Of this protocol. Supervisor and brokers are of one installation: another one is refused."""

REQUEST_BYTES_MAX: Final = 2 << 20
"""Longest frame of a client: a transaction of 1.5 MiB, and what is around its fields."""

ANSWER_BYTES_MAX: Final = 64 << 20
"""Longest frame of a server: changes of one revision, or what one transaction has read."""

_HEAD: Final = struct.Struct(">IBI")
_AFTER_LENGTH: Final = 5


class Kind(enum.IntEnum):
    """See the module."""

    HELLO = 1
    GET = 2
    RANGE = 3
    TXN = 4
    COMPACT = 5
    GRANT = 6
    KEEP_ALIVE = 7
    REVOKE = 8
    PING = 9
    WATCH = 10
    PROGRESS = 11
    UNWATCH = 12
    WELCOME = 65
    ANSWER = 66
    FAILED = 67
    CHANGES = 68
    ENDED = 69
    REFUSED = 70


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame."""

    kind: Kind
    number: int
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Hello:
    """First frame of a client: what it is, for the server's log."""

    release: int
    name: str


@dataclass(frozen=True, slots=True)
class Welcome:
    """First frame of a server: which store it serves, and up to which revision."""

    release: int
    identity: int
    revision: int


def encode_frame(frame: Frame) -> bytes:
    """Its bytes."""
    return _HEAD.pack(_AFTER_LENGTH + len(frame.body), frame.kind, frame.number) + frame.body


async def read_frame(reader: asyncio.StreamReader, bytes_max: int) -> Frame | None:
    """The next frame; None: the connection has ended between two.

    Raises:
        FrameError: It is longer than `bytes_max`, of no known kind, or ends too soon.
        OSError: The connection has failed.
    """
    try:
        head = await reader.readexactly(_HEAD.size)
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return None
        raise FrameError(f"the connection ended within a frame's first {_HEAD.size}") from error
    length, kind, number = _HEAD.unpack(head)
    if not _AFTER_LENGTH <= length <= bytes_max:
        raise FrameError(f"a frame of {length} bytes, {_AFTER_LENGTH} to {bytes_max} are taken")
    try:
        known = Kind(kind)
    except ValueError:
        raise FrameError(f"a frame of kind {kind}, which there is not") from None
    try:
        body = await reader.readexactly(length - _AFTER_LENGTH)
    except asyncio.IncompleteReadError as error:
        raise FrameError(f"the connection ended within a frame of {length} bytes") from error
    return Frame(known, number, body)


def encode_hello(hello: Hello) -> bytes:
    """Body of HELLO."""
    fields = FieldWriter()
    fields.u32(MAGIC)
    fields.u16(hello.release)
    fields.text(hello.name)
    return fields.done()


def decode_hello(body: bytes) -> Hello:
    """Body of HELLO; of another release only the release is read.

    Raises:
        FrameError: It is none.
    """
    fields = FieldReader(body)
    release = _release(fields)
    if release != RELEASE:
        return Hello(release, "")
    hello = Hello(release, fields.text())
    fields.end()
    return hello


def encode_welcome(welcome: Welcome) -> bytes:
    """Body of WELCOME."""
    fields = FieldWriter()
    fields.u32(MAGIC)
    fields.u16(welcome.release)
    fields.u64(welcome.identity)
    fields.u64(welcome.revision)
    return fields.done()


def decode_welcome(body: bytes) -> Welcome:
    """Body of WELCOME.

    Raises:
        FrameError: It is none.
    """
    fields = FieldReader(body)
    welcome = Welcome(_release(fields), fields.u64(), fields.u64())
    fields.end()
    return welcome


def _release(fields: FieldReader) -> int:
    magic = fields.u32()
    if magic != MAGIC:
        raise FrameError(f"the first frame begins with {magic:08x}: this is no metadata store's")
    return fields.u16()
