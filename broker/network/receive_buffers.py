"""Memory for frames that did not arrive whole.

A frame announces its size in its first four bytes, and a client may announce anything. So a
buffer is *reserved* for the announced size, but only anonymous pages that bytes were really written
to become memory: 2,000 sockets that each announce 100 MiB and send nothing cost a few pages each,
where a default Kafka with a 1 GiB heap dies at 16.

    size class   where it comes from
    <= 4 KiB     a bytearray
    <= 4 MiB     an anonymous mapping, rounded up to a power of two; a bounded number is kept for
                 reuse, because touching fresh pages costs more than the receive itself. All of such
                 a mapping is memory already, so no more than a part of the limit is lent at a time:
                 a frame that is only announced would hold it
    above        an anonymous mapping of its own, given back to the system after use

`charged` is what the limit `queued.max.request.bytes` is compared with: bytes that arrived. Who
may be read further where they reach it is `broker.network.frame_admission`'s.

A frame whose records a thread is yet to write is kept beyond its request: it stays charged, and
comes back when nothing keeps it any more.
"""

import mmap
from collections.abc import Callable
from functools import partial

SMALL_SIZE_MAX = 4 * 1024
POOLED_SIZE_MAX = 4 * 1024 * 1024
POOL_BYTES_MAX = 32 * 1024 * 1024
"""Idle buffers kept in all; a burst of large frames does not stay in memory for ever."""

LENT_AGAIN_SHARE = 4
"""Buffers whose pages were touched before are lent up to this fraction of the limit."""


class ReceiveBuffer:
    """Memory of a frame, as `protocol.framing.FrameMemory`; `kept` beyond its request at times."""

    __slots__ = ("_memory", "filled", "handled", "kept", "size", "touched", "view")

    def __init__(self, memory: bytearray | mmap.mmap, size: int, touched: int = 0) -> None:
        self._memory: bytearray | mmap.mmap | None = memory
        self.view = memoryview(memory)
        self.size = size
        self.filled = 0
        # Bytes of it that were memory before any had arrived.
        self.touched = touched
        # How many keep it, and whether its request has been handled meanwhile.
        self.kept = 0
        self.handled = False

    def holds(self, records: memoryview) -> bool:
        """Whether `records` lie in this memory."""
        return self._memory is not None and records.obj is self._memory

    def detach(self) -> bytearray | mmap.mmap | None:
        """Take the memory out; no view of it may be used afterwards."""
        memory, self._memory = self._memory, None
        self.view.release()
        return memory


class ReceiveBuffers:
    """A pool of `ReceiveBuffer`s, as `protocol.framing.FramePool`; one for a loop.

    Attributes:
        charged: Bytes that have arrived and are not handled yet: kept by the frame readers, by
            `give_back`, and by the request channel for requests that wait there.
        limit: `queued.max.request.bytes`.
        is_short: Unfinished frames are read in turn, since `charged` reached the limit. An
            attribute, as each receive asks.
        kept: Frames that have been handled and come back when a thread has written them.
        when_freed: Called while memory is short, when a frame's has come back.
    """

    __slots__ = (
        "_idle",
        "_idle_bytes",
        "_lent_again",
        "charged",
        "is_short",
        "kept",
        "limit",
        "when_freed",
    )

    def __init__(self, limit: int) -> None:
        self._idle: dict[int, list[mmap.mmap]] = {}
        self._idle_bytes = 0
        self._lent_again = 0
        self.charged = 0
        self.limit = limit
        self.is_short = False
        self.kept = 0
        self.when_freed: Callable[[], None] | None = None

    @property
    def idle_bytes(self) -> int:
        """Bytes kept for reuse."""
        return self._idle_bytes

    @property
    def exhausted(self) -> bool:
        """True when no further bytes should be taken from sockets for unfinished frames."""
        return self.charged >= self.limit

    def take(self, size: int) -> ReceiveBuffer:
        """Reserve room for a frame of `size` bytes; charges nothing yet."""
        if size <= SMALL_SIZE_MAX:
            return ReceiveBuffer(bytearray(size), size)
        if size > POOLED_SIZE_MAX:
            return ReceiveBuffer(mmap.mmap(-1, size), size)
        capacity = 1 << (size - 1).bit_length()
        idle = self._idle.get(capacity)
        if idle and (self._lent_again + capacity) * LENT_AGAIN_SHARE <= self.limit:
            self._idle_bytes -= capacity
            self._lent_again += capacity
            return ReceiveBuffer(idle.pop(), size, capacity)
        return ReceiveBuffer(mmap.mmap(-1, capacity), size)

    def uncharge(self, count: int) -> None:
        """So many bytes that were charged elsewhere are held no longer."""
        self.charged -= count
        if self.is_short and self.when_freed is not None:
            self.when_freed()

    def keep(self, buffer: ReceiveBuffer) -> Callable[[], None]:
        """Leave a frame as it is, also when it has been handled, until the function is called."""
        buffer.kept += 1
        return partial(self._release, buffer)

    def _release(self, buffer: ReceiveBuffer) -> None:
        buffer.kept -= 1
        if not buffer.kept and buffer.handled:
            self.kept -= 1
            self.give_back(buffer)

    def give_back(self, buffer: ReceiveBuffer) -> None:
        """The frame has been handled, or its connection is gone."""
        if buffer.kept:
            buffer.handled = True
            self.kept += 1
            return
        self.charged -= buffer.filled
        self._lent_again -= buffer.touched
        buffer.filled = buffer.touched = 0
        if self.is_short and self.when_freed is not None:
            self.when_freed()
        memory = buffer.detach()
        if not isinstance(memory, mmap.mmap):
            return
        capacity = len(memory)
        if capacity <= POOLED_SIZE_MAX and self._idle_bytes + capacity <= POOL_BYTES_MAX:
            self._idle.setdefault(capacity, []).append(memory)
            self._idle_bytes += capacity
            return
        try:
            memory.close()
        except BufferError:
            # A traceback or a test still holds a view; the mapping goes when the view does.
            return
