"""A socket and a poller in memory: the test plays the peer and the kernel."""

import errno
import os
from collections.abc import Callable, Sequence
from typing import Any

from storage.environment.filesystem import File
from storage.errors import DiskError


class FakePoller:
    """Remembers who watches what; `readable(fd)` and `writable(fd)` play the kernel."""

    def __init__(self) -> None:
        self.readers: dict[int, tuple[Callable[..., object], tuple[object, ...]]] = {}
        self.writers: dict[int, tuple[Callable[..., object], tuple[object, ...]]] = {}
        self._soon: list[tuple[Callable[..., object], tuple[object, ...]]] = []
        self._turning = False

    def add_reader(self, fd: int, callback: Callable[..., object], *args: object) -> None:
        self.readers[fd] = (callback, args)

    def remove_reader(self, fd: int) -> object:
        return self.readers.pop(fd, None) is not None

    def add_writer(self, fd: int, callback: Callable[..., object], *args: object) -> None:
        self.writers[fd] = (callback, args)

    def remove_writer(self, fd: int) -> object:
        return self.writers.pop(fd, None) is not None

    def call_soon(self, callback: Callable[..., object], *args: object) -> None:
        """The next turn comes at once, but never within another one."""
        self._turn(callback, args)

    def _turn(self, callback: Callable[..., object], args: tuple[object, ...]) -> None:
        self._soon.append((callback, args))
        if self._turning:
            return
        self._turning = True
        try:
            while self._soon:
                callback, args = self._soon.pop(0)
                callback(*args)
        finally:
            self._turning = False

    def readable(self, fd: int) -> None:
        self._turn(*self.readers[fd])

    def writable(self, fd: int) -> None:
        self._turn(*self.writers[fd])


class FakeStream:
    """One end of a connection.

    The test appends to `incoming` (an empty chunk is the end of the stream, an exception is raised)
    and finds what was sent in `sent`. `window` is how many bytes the peer still takes; None: all.
    `sends` and `receives` count the calls.
    """

    def __init__(self, fd: int = 100) -> None:
        self.fd = fd
        self.incoming: list[bytes | OSError] = []
        self.sent = bytearray()
        self.window: int | None = None
        self.closed = False
        self.fail_sends: OSError | None = None
        self.sends = 0
        self.receives = 0
        self.peer_gone = False
        self.expected = 0

    def fileno(self) -> int:
        return self.fd

    def recv_into(self, buffer: memoryview) -> int:
        self.receives += 1
        if not self.incoming:
            raise BlockingIOError
        chunk = self.incoming[0]
        if isinstance(chunk, OSError):
            self.incoming.pop(0)
            raise chunk
        count = min(len(buffer), len(chunk))
        buffer[:count] = chunk[:count]
        if count == len(chunk):
            self.incoming.pop(0)
        else:
            self.incoming[0] = chunk[count:]
        return count

    def send_buffers(self, buffers: Sequence[Any], more: bool) -> int:
        return self._take(b"".join(bytes(b) for b in buffers))

    def send_file(self, file: File, position: int, count: int) -> int:
        try:
            data = file.read_at(count, position)
        except DiskError as error:
            raise OSError(error.errno, str(error)) from error
        return self._take(data)

    def expect(self, count: int) -> None:
        if self.closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        self.expected = count

    def hung_up(self) -> bool:
        return self.peer_gone

    def _take(self, data: bytes) -> int:
        self.sends += 1
        if self.fail_sends is not None:
            raise self.fail_sends
        if self.window is not None:
            if self.window == 0:
                raise BlockingIOError
            data = data[: self.window]
            self.window -= len(data)
        self.sent += data
        return len(data)

    def close(self) -> None:
        self.closed = True
