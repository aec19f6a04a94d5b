"""A segment's log as a stream of memory: chunks fetched ahead, every sum compared.

    object   |- 0 -|-- 1 --|- 2 -|--- 3 ---|      asked for ahead, several small chunks together
                 └── CRC, AES, zstd, CRC ──┐
    memory   [ room for what is carried |  original bytes of the chunks  ]
                               rest ────┘ of the batch that the last memory ended in

What is left of one memory because its batch continues in the next chunk is copied in front of the
next chunk's bytes, so that batches lie in one piece and only that rest is copied. Memory is used
again: what `next` gave is gone after the following call.

A chunk whose sum does not fit is fetched a second time, since the network may have done it. When it
is wrong again, what comes before it is given, and then `DamagedDataError`.
"""

from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple, Protocol

from typing_extensions import override

from pipeline.read.bytes.byte_source import ByteSource, PendingBytes
from pipeline.read.bytes.open_segment import OpenSegment
from pipeline.read.read_errors import DamagedDataError
from tiered.errors import CorruptRemoteDataError
from tiered.format.chunk_index import Chunk
from tiered.format.transform import encrypted_room
from tiered.storage_manager.read import restore_chunk
from tiered.storage_manager.workspace import Workspace

MIB: Final = 1024 * 1024

CARRY_BYTES_MAX: Final = MIB + 64 * 1024
"""Room in front of chunks for the rest of a batch: a batch of Kafka's default maximum fits."""

GROUP_BYTES_MAX: Final = 4 * MIB
"""Small chunks are asked for together up to so many bytes, stored or original."""

WHOLE_CHUNK_BYTES_MAX: Final = 16 * MIB
"""Largest chunk that is held whole; see `large_chunks` for others."""

AHEAD_MAX: Final = 4
"""Requests under way at most."""

AHEAD_BYTES_MAX: Final = 32 * MIB
"""Memory of requests under way, unless two chunks have more."""


class LogBytes(Protocol):
    """Source of the bytes of a segment's log, in order; see the module."""

    def next(self, carry: memoryview) -> memoryview | None:
        """`carry`, and behind it the next bytes; None at the end.

        Args:
            carry: The end of what was given last, at most CARRY_BYTES_MAX.

        Raises:
            DamagedDataError: They are not those that were written.
            ObjectNotFoundError: The object is gone.
            RemoteStorageError: The store cannot give them.
        """
        ...

    def close(self) -> None:
        """Nothing more is wanted."""
        ...


class ChunkGroup(NamedTuple):
    """Chunks that follow each other and are asked for in one request."""

    chunks: tuple[Chunk, ...]

    @property
    def stored_position(self) -> int:
        """Of the first, in the object."""
        return self.chunks[0].stored_position

    @property
    def stored_size(self) -> int:
        """Of all."""
        last = self.chunks[-1]
        return last.stored_position + last.stored_size - self.stored_position

    @property
    def original_size(self) -> int:
        """Of all."""
        last = self.chunks[-1]
        return last.original_position + last.original_size - self.chunks[0].original_position


def chunk_groups(
    segment: OpenSegment, position: int, end_position: int, group_bytes: int = GROUP_BYTES_MAX
) -> Iterator[ChunkGroup]:
    """All chunks that hold a byte of [position, end_position) of the log.

    Where chunks are stored as they are and have no sums, their borders mean nothing: then they are
    ranges that begin and end with what is wanted.
    """
    index = segment.manifest.chunk_index
    if segment.opened.transform.is_plain and not segment.manifest.has_sums:
        for at in range(position, end_position, group_bytes):
            size = min(group_bytes, end_position - at)
            yield ChunkGroup((Chunk(index.number_at(at), at, size, at, size),))
        return
    waiting: list[Chunk] = []
    stored = original = 0
    for number in range(index.number_at(position), index.number_at(end_position - 1) + 1):
        chunk = index.chunk(number)
        if chunk.stored_size > encrypted_room(chunk.original_size):
            problem = f"chunk {number} of {chunk.original_size} bytes claims {chunk.stored_size}"
            raise DamagedDataError(segment.keys.manifest, -1, problem)
        stored += chunk.stored_size
        original += chunk.original_size
        if waiting and max(stored, original) > group_bytes:
            yield ChunkGroup(tuple(waiting))
            waiting.clear()
            stored, original = chunk.stored_size, chunk.original_size
        waiting.append(chunk)
    yield ChunkGroup(tuple(waiting))


class Room:
    """Memory with room in front."""

    __slots__ = ("_memory",)

    def __init__(self) -> None:
        self._memory = bytearray()

    def take(self, size: int) -> memoryview:
        """All of it, with `size` bytes behind the room in front; what was in it may be lost."""
        if len(self._memory) < CARRY_BYTES_MAX + size:
            self._memory = bytearray(CARRY_BYTES_MAX + size)
        return memoryview(self._memory)[: CARRY_BYTES_MAX + size]


class _Rooms(Workspace):
    """A workspace one of whose rooms is a part of memory that is given on."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number
        self.target = memoryview(b"")

    @override
    def room(self, number: int, size: int) -> memoryview:
        if number == self._number:
            return self.target[:size]
        return super().room(number, size)


class _Fetch(NamedTuple):
    group: ChunkGroup
    room: Room
    memory: memoryview
    pending: PendingBytes


class ChunkStream:
    """Chunks that are whole in memory; see the module."""

    def __init__(
        self,
        segment: OpenSegment,
        source: ByteSource,
        position: int,
        end_position: int,
        group_bytes: int = GROUP_BYTES_MAX,
    ) -> None:
        """Ask for nothing yet; [position, end_position) of the log is at least a byte."""
        transform = segment.opened.transform
        self._segment = segment
        self._source = source
        self._position = position
        self._end = end_position
        self._groups = chunk_groups(segment, position, end_position, group_bytes)
        self._is_plain = transform.is_plain
        # Rooms of `restore_chunk`: decrypted in 1, decompressed in 2.
        self._rooms = _Rooms(2 if transform.compression else 1)
        self._original = Room()
        self._fetches: deque[_Fetch] = deque()
        self._free: list[Room] = []
        self._held: Room | None = None
        self._damage: DamagedDataError | None = None
        self._open()

    def _open(self) -> None:
        first = next(self._groups)
        self._groups = chain((first,), self._groups)
        if self._source.is_local:
            count = 1
        else:
            unit = max(first.stored_size, 1)
            count = max(2, min(AHEAD_MAX, AHEAD_BYTES_MAX // unit))
        self._free = [Room() for _ in range(count)]

    def next(self, carry: memoryview) -> memoryview | None:
        """As `LogBytes.next`."""
        if self._damage is not None:
            raise self._damage
        local = self._source.is_local
        if local and self._held is not None:
            # Read when it is waited for, which is after the rest was copied out of it.
            self._release()
        if not self._fetches:
            self._ask()
        if not self._fetches:
            return None
        group, room, stored, pending = self._fetches.popleft()
        memory = stored if self._is_plain else self._original.take(group.original_size)
        begin = CARRY_BYTES_MAX - len(carry)
        memory[begin:CARRY_BYTES_MAX] = carry
        self._release()
        if not local:
            self._ask()
        size = self._restore(group, stored[CARRY_BYTES_MAX:], memory[CARRY_BYTES_MAX:], pending)
        self._held = room
        if not self._is_plain:
            self._release()
        first = group.chunks[0].original_position
        skipped = max(self._position - first, 0)
        end = CARRY_BYTES_MAX + min(first + size, self._end) - first
        if skipped:
            # Only of the first chunk, and nothing is carried into that.
            return memory[CARRY_BYTES_MAX + skipped : end]
        return memory[begin:end]

    def _release(self) -> None:
        if self._held is not None:
            self._free.append(self._held)
            self._held = None

    def _ask(self) -> None:
        while self._free:
            group = next(self._groups, None)
            if group is None:
                return
            room = self._free.pop()
            memory = room.take(group.stored_size)
            pending = self._source.begin(group.stored_position, memory[CARRY_BYTES_MAX:])
            self._fetches.append(_Fetch(group, room, memory, pending))

    # -- sums --------------------------------------------------------------------------------

    def _restore(
        self, group: ChunkGroup, stored: memoryview, into: memoryview, pending: PendingBytes
    ) -> int:
        """Original bytes of a group's chunks up to the first that is damaged; returns how many."""
        try:
            pending.wait()
            has_come = True
        except CorruptRemoteDataError:
            # The object is cut off: what of it is there may do.
            has_come = False
        done = 0
        for chunk in group.chunks:
            at = chunk.stored_position - group.stored_position
            self._rooms.target = into[done:]
            try:
                done += self._chunk(chunk, stored[at : at + chunk.stored_size], has_come=has_come)
            except DamagedDataError as error:
                if not done:
                    raise
                self._damage = error
                break
        return done

    def _chunk(self, chunk: Chunk, stored: memoryview, *, has_come: bool) -> int:
        key = self._segment.keys.log
        try:
            if has_come:
                try:
                    return self._original_of(chunk, stored)
                except CorruptRemoteDataError:
                    pass
            self._source.begin(chunk.stored_position, stored).wait()
            return self._original_of(chunk, stored)
        except CorruptRemoteDataError as error:
            end = chunk.original_position + chunk.original_size
            raise DamagedDataError(
                key, error.position, error.problem, chunk.original_position, end
            ) from error

    def _original_of(self, chunk: Chunk, stored: memoryview) -> int:
        opened, keys = self._segment
        return len(restore_chunk(opened, keys.log, chunk, stored, self._rooms))

    def close(self) -> None:
        """Nothing more is wanted."""
        for fetch in self._fetches:
            fetch.pending.cancel()
        self._fetches.clear()
