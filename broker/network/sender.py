"""The sending half of a connection: a queue of pieces and the system calls that empty it.

Small answers of a turn are joined, larger ones gathered (`sendmsg`), files are sent by the kernel
(`sendfile`): 0.09 CPU seconds a GB against 0.34 for reading and sending. Small slices are read and
gathered with what surrounds them, because one system call less is worth more than the copy.

The loop never waits for a disk: before a file is sent it is asked whether the pages are cached
(`File.is_cached`); a thread first reads those that are not (`File.warm`), and the queue waits.
Likewise where the disk refuses: the thread is told what is wrong, and whoever asked it.
"""

import errno
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from broker.network.stream import Stream
from storage.environment.page_cache import count_pages
from storage.errors import DiskError

if TYPE_CHECKING:
    from storage.types.file_slice import FileSlice

INLINE_SLICE_MAX: Final = 16 * 1024
"""Slices up to this many bytes are copied into the response; see bench/sender.py."""

FLUSH_BYTES_MAX: Final = 2 * 1024 * 1024
"""Sent to one connection before the others are served: about a millisecond of the loop."""

JOINED_BYTES_MAX: Final = 16 * 1024
"""Answers that are joined to one buffer: a copy of as much costs less than a queue of its parts."""

GATHER_MAX: Final = 64
"""Pieces handed to one sendmsg; the kernel's limit is 1,024."""


class Sender:
    """The send queue of one connection.

    `flush` sends until everything is gone (`idle`), until the socket is full (`blocked`), or until
    a slice at the head is not in memory (`cold`, the slice to `warm`).

    Attributes:
        queue: Buffers and slices left to send; empty as long as answers are joined.
    """

    __slots__ = ("_joined", "_refused", "_stream", "bytes_sent", "cold", "queue", "queued_bytes")

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.queue: deque[Any] = deque()
        # Small answers before which nothing is queued, JOINED_BYTES_MAX of them at most.
        self._joined: list[bytes] = []
        self.queued_bytes = 0
        self.bytes_sent = 0
        self.cold: FileSlice | None = None
        # What the disk has refused once: a thread has read it since.
        self._refused: FileSlice | None = None

    @property
    def queued_pieces(self) -> int:
        """Buffers and slices left to send."""
        return len(self.queue) + len(self._joined)

    @property
    def idle(self) -> bool:
        """True when nothing is left to send."""
        return not (self._joined or self.queue)

    def push(self, pieces: list[Any]) -> None:
        """Queue a response. Only bytes count as memory, files do not."""
        joined = self._joined
        if len(pieces) == 1 and not self.queue:
            piece = pieces[0]
            if type(piece) is bytes:
                size = self.queued_bytes + len(piece)
                if size <= JOINED_BYTES_MAX:
                    joined.append(piece)
                    self.queued_bytes = size
                    return
        self._enqueue(pieces)

    def _enqueue(self, pieces: list[Any]) -> None:
        """Put a response into the queue, and before it what was to be joined."""
        joined = self._joined
        if joined:
            self.queue.extend(joined)
            joined.clear()
        for piece in pieces:
            self.queue.append(piece)
            if type(piece) is bytes or not hasattr(piece, "file"):
                self.queued_bytes += len(piece)

    def send(self, pieces: list[Any]) -> bool:
        """Send a response with nothing before it in the queue; `push` and `flush` in one step.

        Small answers, which leave in one system call, are never queued. Returns and raises as
        `flush` does.
        """
        total = 0
        if len(pieces) > GATHER_MAX:
            self.push(pieces)
            return self.flush()
        for place, piece in enumerate(pieces):
            if type(piece) is not bytes and hasattr(piece, "file"):
                inlined = None
                if piece.length <= INLINE_SLICE_MAX:
                    inlined = self._read_cached(piece)
                if inlined is None:
                    self.push(pieces)
                    return self.flush()
                pieces[place] = piece = inlined
            total += len(piece)
        try:
            sent = self._stream.send_buffers(pieces, False)
        except BlockingIOError:
            sent = 0
        self.bytes_sent += sent
        if sent == total:
            return True
        self._enqueue(pieces)
        self.queued_bytes -= sent
        self._drop(sent)
        return False

    def flush(self) -> bool:
        """Send what can be sent now.

        Returns:
            True when the queue is empty. Otherwise `cold` is the slice that waits for the disk, or
            None if the peer is waited for.

        Raises:
            OSError: The connection is broken.
        """
        if self._joined:
            return self._send_joined()
        queue = self.queue
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

    def _send_joined(self) -> bool:
        """Send small answers, with nothing behind them; True when they all went."""
        joined = self._joined
        data = joined[0] if len(joined) == 1 else b"".join(joined)
        joined.clear()
        size = len(data)
        try:
            sent = self._stream.send_buffers((data,), False)
        except BlockingIOError:
            sent = 0
        self.bytes_sent += sent
        self.queued_bytes -= sent
        if sent == size:
            return True
        self.queue.append(memoryview(data)[sent:])
        return False

    def _send_bytes(self) -> bool:
        """Gather from the head of the queue up to the next large slice; True when it all went."""
        queue = self.queue
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
        queue = self.queue
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
        try:
            data: bytes | bytearray | None = piece.file.read_cached(piece.length, piece.position)
        except DiskError:
            # It is sent like a large one, if it can be.
            return None
        return data if data is not None and len(data) == piece.length else None

    def _send_slice(self, piece: "FileSlice") -> bool:
        """Send the slice at the head; False when the disk or the peer makes it wait."""
        file = piece.file
        if self.cold is not piece and (
            piece.is_doubted or not file.is_cached(piece.position, piece.length)
        ):
            count_pages()
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
            try:
                sent = self._stream.send_file(file, piece.position, min(piece.length, left))
            except OSError as error:
                if error.errno != errno.EIO or self._refused is piece:
                    raise
                # The disk's error, not the peer's.
                self._refused = self.cold = piece
                return False
            if sent == 0:
                # The response cannot be ended, only its connection can. The next one is asked for
                # in vain, too, unless whoever reads from the file knows.
                file.is_short = True
                raise BrokenPipeError(f"{file.path} is shorter than its slice")
            piece.position += sent
            piece.length -= sent
            left -= sent
            self.bytes_sent += sent
        self.queue.popleft()
        return True

    def clear(self) -> None:
        """Drop everything: the connection is gone."""
        self.queue.clear()
        self._joined.clear()
        self.queued_bytes = 0
        self.cold = self._refused = None
