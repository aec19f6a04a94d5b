"""A stream in memory: what the other end sends is received, what is sent to it is kept."""

import socket
from collections.abc import Sequence
from typing import Any

from storage.environment.filesystem import File


class PlayedStream:
    """A connected byte stream whose other end is the program that measures."""

    def __init__(self) -> None:
        self._watched, self._peer = socket.socketpair()
        self.incoming = memoryview(b"")
        self.sent = bytearray()
        self.sent_of_files = 0

    def fileno(self) -> int:
        """A descriptor that is never readable: who fills `incoming` says so."""
        return self._watched.fileno()

    def recv_into(self, buffer: memoryview) -> int:
        """As a socket, out of memory."""
        count = min(len(buffer), len(self.incoming))
        if not count:
            raise BlockingIOError
        buffer[:count] = self.incoming[:count]
        self.incoming = self.incoming[count:]
        return count

    def send_buffers(self, buffers: Sequence[Any], more: bool) -> int:
        """Take all."""
        before = len(self.sent)
        for buffer in buffers:
            self.sent += buffer
        return len(self.sent) - before

    def send_file(self, file: File, position: int, count: int) -> int:
        """Take all; the copy would be the kernel's, and is left out."""
        self.sent_of_files += count
        return count

    def expect(self, count: int) -> None:
        """All is there at once."""

    def hung_up(self) -> bool:
        """It is always read."""
        return False

    def close(self) -> None:
        """At the end."""
        self._watched.close()
        self._peer.close()
