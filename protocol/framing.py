"""Frames: what one request or response is wrapped in, and the reader that finds them in a stream.

    byte  size  field
       0     4  size of what follows, int32
       4     n  header and body

`FrameReader` does no IO: its caller receives into `buffer` and passes how many bytes came.

    count = socket.recv_into(reader.buffer)
    frames = reader.next_frames(count)              0 to FRAMES_MAX views of whole frames
    ...                                             handled: the views are valid until here
    if reader.has_more: frames = reader.next_frames()

Those two calls are `get_buffer` and `buffer_updated` of `asyncio.BufferedProtocol`. No payload is
copied to find a frame: most frames arrive whole in a buffer that all connections share, and are
views of it. What is copied is the beginning of a frame that does not arrive whole, once, into
memory of its own, and frames that the caller puts back, when they lie in the shared buffer.

    state     what is here                        `buffer`
    EMPTY     nothing of the next frame           the shared one
    SIZE      one to three bytes of its size      the rest of four bytes
    PARTIAL   its size, not all of the rest       the rest of `memory`, which is the frame's own
    GIVEN     frames were given out               nothing may be received; `lent` is their memory,
                                                  None when they lie in the shared buffer
    PUT_BACK  frames that were not handled        nothing may be received; `has_put_back`
    FAILED    an `error`                          nothing may be received, ever

           ┌───────────────────────────── all handled, nothing behind ─────────────────┐
           v                                                                           │
         EMPTY ──bytes──> GIVEN ──next_frames: more──> GIVEN                           │
           │                │ ├──put_back──> PUT_BACK ──next_frames──> GIVEN ──────────┤
           │                │ └──next_frames: a part of a frame is behind─┐            │
           ├──its size──> PARTIAL <─────────────────────────────┴──> SIZE │            │
           │                └──the last byte──> GIVEN ──release─────────────────────────┘
           └──a size that is refused, or no memory──> FAILED

Memory follows bytes that arrived, never a size that was announced: a size is compared with the
limit before memory is reserved for the rest, and reserved memory is charged as bytes arrive.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final, Generic, Protocol, TypeVar

from typing_extensions import override

from protocol.quick import split_frames

SIZE: Final = Struct(">i")
"""The prefix."""

_split_frames: Final = split_frames
_size_at: Final = SIZE.unpack_from

REQUEST_SIZE_MIN: Final = 8
"""The smallest request: API key, version, correlation id."""

RESPONSE_SIZE_MIN: Final = 4
"""The smallest response: a correlation id."""

FRAMES_MAX: Final = 64
"""Frames given out at once: 256 KiB of the smallest ones are 21,845."""


class FrameMemory(Protocol):
    """Memory of one frame that does not arrive whole.

    Attributes:
        view: At least `size` bytes, of which `filled` have arrived.
    """

    view: memoryview
    size: int
    filled: int


Memory = TypeVar("Memory", bound=FrameMemory)


class FramePool(Protocol[Memory]):
    """Memory for frames of all connections.

    Attributes:
        charged: Bytes that have arrived and are not handled yet; the reader adds and subtracts.
    """

    charged: int

    def take(self, size: int) -> Memory:
        """Reserve memory for a frame; OSError or MemoryError when there is none."""
        ...

    def give_back(self, buffer: Memory) -> None:
        """Release memory, and uncharge its `filled` bytes."""
        ...


@dataclass(frozen=True, slots=True)
class SizeRefused:
    """A frame announces a size that is outside the limits: the stream has no next frame.

    On a broker the connection is to be closed; Kafka does the same and answers nothing.
    """

    size: int
    size_min: int
    size_max: int

    @override
    def __str__(self) -> str:
        return (
            f"frame of {self.size} bytes announced; {self.size_min} to {self.size_max} are allowed"
        )


@dataclass(frozen=True, slots=True)
class NoMemory:
    """There is no memory for a frame: addresses or mappings of the process are used up."""

    size: int
    reason: str

    @override
    def __str__(self) -> str:
        return f"no memory for a frame of {self.size} bytes: {self.reason}"


FrameError = SizeRefused | NoMemory


class FrameReader(Generic[Memory]):
    """Splits the bytes of one connection into frames; see the module.

    Attributes:
        buffer: Where the next bytes of the peer are to be received.
        memory: Of the frame that has not arrived whole; None in any other state than PARTIAL.
        lent: Memory of the frame that was given out, where it has memory of its own.
        has_more: Bytes are behind the frames that were given out: `next_frames` goes on with them.
        has_put_back: Frames were put back.
        error: Why there is no next frame.
    """

    __slots__ = (
        "_at",
        "_data",
        "_end",
        "_head",
        "_kept",
        "_pool",
        "_shared",
        "_size_max",
        "_size_min",
        "buffer",
        "error",
        "has_more",
        "has_put_back",
        "lent",
        "memory",
    )

    def __init__(
        self,
        shared: memoryview,
        pool: FramePool[Memory],
        *,
        size_max: int,
        size_min: int = REQUEST_SIZE_MIN,
    ) -> None:
        """Between two frames.

        Args:
            shared: Where bytes are received first, of any connection: nothing stays in it when
                `next_frames` has given an empty list.
            pool: Memory of frames that do not arrive whole.
            size_max: `socket.request.max.bytes`.
            size_min: Bytes of the smallest frame.
        """
        self._shared = shared
        self._pool = pool
        self._size_min = size_min
        self._size_max = size_max
        self.buffer = shared
        self.memory: Memory | None = None
        self.lent: Memory | None = None
        self.has_more = False
        self.has_put_back = False
        self.error: FrameError | None = None
        # Bytes that frames are looked for in, from `_at` to `_end`.
        self._data = shared
        self._at = 0
        self._end = 0
        # Bytes of memory that is kept for frames that were put back.
        self._kept = 0
        self._head: bytearray | None = None

    def next_frames(self, received: int = 0) -> list[memoryview]:
        """Frames that are whole, in order, at most FRAMES_MAX of them, each without its size.

        The views are valid until the next call that receives into the shared buffer, or `release`.
        An empty list: nothing is whole, and bytes may be received into `buffer`, if not `error`.

        Args:
            received: Bytes that were received into `buffer`; 0: go on with what is behind the
                frames given out last, or with those that were put back.
        """
        if received:
            if self.has_more or self.has_put_back or self.error is not None:
                raise RuntimeError("bytes were received while frames wait to be given out")
            memory = self.memory
            if memory is not None:
                return self._fill(memory, received)
            if self._head is not None:
                self._fill_head(self._head, received)
                return []
            data = self._data
            at = 0
            end = self._end = received
        else:
            if self.memory is not None:
                return self._give_whole(self.memory) if self.has_put_back else []
            data = self._data
            at = self._at
            end = self._end
            if self.has_put_back:
                self.has_put_back = False
                self._pool.charged -= self._kept
        size_min = self._size_min
        size_max = self._size_max
        found = _split_frames(data, at, end, size_min, size_max, FRAMES_MAX)
        if found is not None:
            frames, at = found
            self._at = at
            self.has_more = at < end or self._kept > 0
            return frames
        frames = []
        while at + 4 <= end:
            (size,) = _size_at(data, at)
            if size < size_min or size > size_max:
                if not frames:
                    self._refuse(size)
                    return frames
                break
            stop = at + 4 + size
            if stop > end:
                if not frames:
                    self._begin(size, data[at + 4 : end])
                    return frames
                break
            frames.append(data[at + 4 : stop])
            at = stop
            if len(frames) == FRAMES_MAX:
                break
        self._at = at
        if frames:
            # Memory that was kept goes with the call that finds nothing in it.
            self.has_more = at < end or self._kept > 0
        else:
            self._begin_head(data[at:end])
        return frames

    def put_back(self, frames: Sequence[memoryview]) -> None:
        """Have the last of the frames that were given out given out again, by `next_frames`.

        Args:
            frames: Those that could not be handled; all that were given out before them were.
        """
        self.has_put_back = True
        if self.lent is not None:
            self.memory, self.lent = self.lent, None
            return
        at = self._at - 4 * len(frames) - sum(map(len, frames))
        if not self._kept:
            # A bytearray: the log patches offsets into produced batches where they lie.
            self._data = memoryview(bytearray(self._data[at : self._end]))
            self._kept = len(self._data)
            self._end -= at
            at = 0
        self._at = at
        self._pool.charged += self._kept

    def release(self, frames: list[memoryview]) -> None:
        """Give back the memory of a frame that was `lent`; `frames` is cleared with its views."""
        memory, self.lent = self.lent, None
        frames.clear()
        if memory is not None:
            self._pool.give_back(memory)

    def clear(self) -> None:
        """Let go of all memory but what is `lent`: the connection has ended."""
        self.buffer = self._shared
        memory, self.memory = self.memory, None
        if memory is not None:
            self._pool.give_back(memory)
        if self.has_put_back:
            self._pool.charged -= self._kept
            self.has_put_back = False
        self._drop()

    def _drop(self) -> None:
        """Nothing is left to be given out."""
        self._data = self._shared
        self._at = self._end = self._kept = 0
        self.has_more = False

    def _refuse(self, size: int) -> None:
        self._drop()
        self.error = SizeRefused(size, self._size_min, self._size_max)

    def _begin(self, size: int, part: memoryview) -> None:
        """EMPTY to PARTIAL: the rest of a frame is still on its way."""
        try:
            memory = self._pool.take(size)
        except (OSError, MemoryError) as error:
            self._drop()
            self.error = NoMemory(size, str(error))
            return
        count = len(part)
        memory.view[:count] = part
        memory.filled = count
        self._pool.charged += count
        self.memory = memory
        self.buffer = memory.view[count:size]
        if self.has_more:
            self._drop()

    def _fill(self, memory: Memory, received: int) -> list[memoryview]:
        """In PARTIAL, or on to GIVEN."""
        memory.filled += received
        self._pool.charged += received
        if memory.filled == memory.size:
            return self._give_whole(memory)
        self.buffer = memory.view[memory.filled : memory.size]
        return []

    def _give_whole(self, memory: Memory) -> list[memoryview]:
        """PARTIAL or PUT_BACK to GIVEN."""
        self.memory = None
        self.lent = memory
        self.buffer = self._shared
        self.has_put_back = False
        return [memory.view[: memory.size]]

    def _begin_head(self, part: memoryview) -> None:
        """EMPTY to SIZE: one to three bytes; with none it stays EMPTY."""
        count = len(part)
        if count:
            self._head = bytearray(4)
            self._head[:count] = part
            self.buffer = memoryview(self._head)[count:]
        self._drop()

    def _fill_head(self, head: bytearray, received: int) -> None:
        """In SIZE, or on to PARTIAL."""
        self.buffer = self.buffer[received:]
        if self.buffer:
            return
        self._head = None
        self.buffer = self._shared
        (size,) = _size_at(head)
        if self._size_min <= size <= self._size_max:
            self._begin(size, self.buffer[:0])
        else:
            self._refuse(size)


def frame(*pieces: bytes) -> bytes:
    """Join header and body and put their size before them."""
    size = 0
    for piece in pieces:
        size += len(piece)
    return b"".join((SIZE.pack(size), *pieces))
