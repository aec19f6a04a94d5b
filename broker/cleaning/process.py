"""The broker's handle of a cleaning process: start, messages, end."""

import contextlib
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any, Final, Protocol

from broker.cleaning.messages import LINE_BYTES_MAX, decode, encode
from storage.cleaner.cleaning import CleaningFailedError

KILLED_S: Final = 0.5
"""How long to wait for the end of a killed process."""


class CleaningProcess(Protocol):
    """One process. Used by one thread at a time; `send` and `kill` may come from any."""

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message. Raises CleaningFailedError if the process has ended."""
        ...

    def receive(self, timeout_s: float) -> dict[str, Any] | None:
        """The next message; None: there was none in time. Raises CleaningFailedError likewise."""
        ...

    def kill(self) -> None:
        """End it now. Waits for half a second at most."""
        ...

    def is_gone(self) -> bool:
        """Whether it has ended, so that it writes nothing any more."""
        ...


class LocalCleaningProcess:
    """`python -m broker.cleaning`, at the other end of a socket pair."""

    def __init__(self) -> None:
        """Blocks for the few milliseconds until the program is loaded.

        Raises:
            OSError: The system has no room.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "broker.cleaning", "--socket-fd", str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    # Ctrl-C in a terminal is for the broker.
                    process_group=0,
                )
            except OSError:
                ours.close()
                raise
        self._socket = ours
        # The rate is sent by the thread that changes it.
        self._saying = threading.Lock()
        self._received = bytearray()
        self.pid = self._process.pid

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message."""
        try:
            with self._saying:
                self._socket.sendall(encode(message))
        except OSError as error:
            raise self._ended() from error

    def receive(self, timeout_s: float) -> dict[str, Any] | None:
        """The next message; None: there was none in time."""
        until = time.monotonic() + timeout_s
        while (end := self._received.find(b"\n")) < 0:
            left_s = until - time.monotonic()
            try:
                ready, _, _ = select.select([self._socket], [], [], max(left_s, 0))
                if not ready:
                    return None
                data = self._socket.recv(64 * 1024)
            except (OSError, ValueError) as error:
                raise self._ended() from error
            if not data:
                raise self._ended()
            self._received += data
            if len(self._received) > LINE_BYTES_MAX:
                raise CleaningFailedError("cleaning process sent too long a line")
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return decode(line)

    def _ended(self) -> CleaningFailedError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.2)
        return CleaningFailedError(
            f"cleaning process pid={self.pid} ended status={self._process.poll()}"
        )

    def kill(self) -> None:
        """End it now; one that hangs in a call of the disk is left to `is_gone`."""
        self._process.kill()
        self._socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(KILLED_S)

    def is_gone(self) -> bool:
        """Whether it has ended; reaps it."""
        return self._process.poll() is not None
