"""The sending half of a connection: a queue of pieces and the system calls that empty it.

Bytes are gathered (`sendmsg`), files are sent by the kernel (`sendfile`): 0.09 CPU seconds a GB
against 0.34 for reading and sending. Small slices are read and gathered with what surrounds them,
because one system call less is worth more than the copy.

The loop never waits for a disk: before a file is sent its pages are probed with RWF_NOWAIT; pages
that are not in the page cache are read by a thread first (`warm`), and the queue waits for them.
"""

import os
from collections import deque
from typing import TYPE_CHECKING, Any

from broker.network.page_cache import has_holes
from broker.network.stream import Stream

if TYPE_CHECKING:
    from storage.types.file_slice import FileSlice

INLINE_SLICE_MAX = 16 * 1024
"""Slices up to this many bytes are copied into the response; see bench/sender.py."""

PROBE_STRIDE = 256 * 1024
"""The page cache is filled and emptied in runs, so one page stands for its neighbours."""

COUNTED_STRIDE = 1024 * 1024
"""Where the kernel counts the pages that are there, it remains whether they have been read in."""

FLUSH_BYTES_MAX = 2 * 1024 * 1024
"""Sent to one connection before the others are served: about a millisecond of the loop."""

GATHER_MAX = 64
"""Pieces handed to one sendmsg; the kernel's limit is 1,024."""

COUNTED_AFTER_COLD = 4096
"""So many slices after a cold one have all their pages counted, which takes some 10 us a MiB: while
nothing is cold, no pages are evicted between those that are probed."""

_probed = [bytearray(1)]
_counted_left = COUNTED_AFTER_COLD

NOWAIT = getattr(os, "RWF_NOWAIT", None)
"""Absent on macOS: there every slice counts as cached, and the loop may wait for the disk."""


def describe_missing() -> tuple[str, ...]:
    """System calls that sending uses and this platform lacks; one sentence each, for the log."""
    if NOWAIT is None:
        return ("no RWF_NOWAIT: a fetch of old records may hold the loop until the disk answers",)
    return ()


def is_cached(descriptor: int, position: int, length: int) -> bool:
    """Whether a read of the range would not wait for the disk (true if that is unknown)."""
    if NOWAIT is None:
        return True
    global _counted_left
    has_hole = None
    if _counted_left:
        _counted_left -= 1
        has_hole = has_holes(descriptor, position, length)
    if has_hole:
        # A look-up has brought the first page and the last, so that these two prove nothing.
        return False
    stride = PROBE_STRIDE if has_hole is None else COUNTED_STRIDE
    last = position + length - 1
    at = position
    try:
        while at < last:
            os.preadv(descriptor, _probed, at, NOWAIT)
            at += stride
        os.preadv(descriptor, _probed, last, NOWAIT)
    except BlockingIOError:
        return False
    except OSError:
        # EOPNOTSUPP: this file system cannot probe (tmpfs, some network file systems).
        return True
    return True


def warm(slice_: "FileSlice") -> None:
    """Bring a slice into the page cache; runs in a thread."""
    descriptor = slice_.file.fileno()
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, slice_.position, slice_.length, os.POSIX_FADV_WILLNEED)
    scratch = memoryview(bytearray(min(slice_.length, 1024 * 1024)))
    done = 0
    while done < slice_.length:
        count = os.preadv(descriptor, [scratch[: slice_.length - done]], slice_.position + done)
        if count <= 0:
            return
        done += count


class Sender:
    """The send queue of one connection.

    `flush` sends until everything is gone (`idle`), until the socket is full (`blocked`), or until
    a slice at the head is not in memory (`cold`, the slice to `warm`).
    """

    __slots__ = ("_queue", "_stream", "bytes_sent", "cold", "queued_bytes")

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._queue: deque[Any] = deque()
        self.queued_bytes = 0
        self.bytes_sent = 0
        self.cold: FileSlice | None = None

    @property
    def queued_pieces(self) -> int:
        """Buffers and slices left to send."""
        return len(self._queue)

    @property
    def idle(self) -> bool:
        """True when nothing is left to send."""
        return not self._queue

    def push(self, pieces: list[Any]) -> None:
        """Queue a response. Only bytes count as memory, files do not."""
        for piece in pieces:
            self._queue.append(piece)
            if not hasattr(piece, "file"):
                self.queued_bytes += len(piece)

    def flush(self) -> bool:
        """Send what can be sent now.

        Returns:
            True when the queue is empty. Otherwise `cold` is the slice that waits for the disk, or
            None if the peer is waited for.

        Raises:
            OSError: The connection is broken.
        """
        queue = self._queue
        flush_end = self.bytes_sent + FLUSH_BYTES_MAX
        while queue:
            if self.bytes_sent >= flush_end:
                return False
            try:
                if hasattr(queue[0], "file"):
                    if not self._send_slice(queue[0]):
                        return False
                elif not self._send_bytes():
                    return False
            except BlockingIOError:
                return False
        return True

    def _send_bytes(self) -> bool:
        """Gather from the head of the queue up to the next large slice; True when it all went."""
        queue = self._queue
        if len(queue) == 1:
            head = queue[0]
            size = len(head)
            sent = self._stream.send_buffers((head,), False)
            self.bytes_sent += sent
            self.queued_bytes -= sent
            if sent == size:
                queue.popleft()
                return True
            queue[0] = memoryview(head)[sent:]
            return False
        gathered: list[Any] = []
        total = 0
        more = False
        for place, piece in enumerate(queue):
            if hasattr(piece, "file"):
                if piece.length > INLINE_SLICE_MAX:
                    more = True
                    break
                inlined = self._read_cached(piece)
                if inlined is None:
                    more = True
                    break
                # From here on the slice is bytes in memory like any other.
                queue[place] = piece = inlined
                self.queued_bytes += len(inlined)
            gathered.append(piece)
            total += len(piece)
            if len(gathered) == GATHER_MAX:
                break
        sent = self._stream.send_buffers(gathered, more)
        self.bytes_sent += sent
        self.queued_bytes -= sent
        if sent == total:
            for _ in gathered:
                queue.popleft()
            return True
        self._drop(sent)
        return False

    def _drop(self, sent: int) -> None:
        """Remove the first `sent` bytes of the queue."""
        queue = self._queue
        while sent:
            head = queue[0]
            size = len(head)
            if sent >= size:
                queue.popleft()
                sent -= size
            else:
                queue[0] = memoryview(head)[sent:]
                return

    def _read_cached(self, piece: "FileSlice") -> bytes | bytearray | None:
        """A small slice's bytes if they are in memory, else None."""
        if NOWAIT is None:
            return os.pread(piece.file.fileno(), piece.length, piece.position)
        data = bytearray(piece.length)
        try:
            count = os.preadv(piece.file.fileno(), [data], piece.position, NOWAIT)
        except BlockingIOError:
            return None
        except OSError:
            return os.pread(piece.file.fileno(), piece.length, piece.position)
        return data if count == piece.length else None

    def _send_slice(self, piece: "FileSlice") -> bool:
        """Send the slice at the head; False when the disk or the peer makes it wait."""
        descriptor = piece.file.fileno()
        if self.cold is not piece and (
            piece.is_doubted or not is_cached(descriptor, piece.position, piece.length)
        ):
            global _counted_left
            _counted_left = COUNTED_AFTER_COLD
            piece.is_doubted = False
            self.cold = piece
            return False
        # Warmed once is enough: if memory is so short that the pages are gone again, waiting for
        # the disk is the lesser evil than never sending.
        self.cold = None
        left = FLUSH_BYTES_MAX
        while piece.length > 0:
            if left <= 0:
                return False
            sent = self._stream.send_file(descriptor, piece.position, min(piece.length, left))
            if sent == 0:
                raise BrokenPipeError("file is shorter than its slice")
            piece.position += sent
            piece.length -= sent
            left -= sent
            self.bytes_sent += sent
        self._queue.popleft()
        return True

    def clear(self) -> None:
        """Drop everything: the connection is gone."""
        self._queue.clear()
        self.queued_bytes = 0
        self.cold = None
