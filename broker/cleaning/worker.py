"""The cleaning process: does one job after the other, and ends with its broker.

The main thread cleans. A second one reads the broker's messages, so that an abort takes effect
within a batch, and the broker's end at once.
"""

import contextlib
import os
import queue
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from broker.cleaning.messages import (
    Limits,
    decode,
    encode,
    failure_to_json,
    job_from_json,
    stats_to_json,
)
from protocol.errors import DecodeError
from storage.cleaner.cleaner import Cleaner
from storage.cleaner.cleaning import CleaningAbortedError
from storage.environment.clock import SystemClock, sleep_ms
from storage.environment.filesystem import Filesystem
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.throttle import Throttle
from storage.errors import StorageError

NICE: Final = 5
"""A third of the broker's weight when both want the same CPU."""


def main(socket_fd: int) -> None:
    """Serve the broker at the other end of `socket_fd`; does not return."""
    with contextlib.suppress(OSError):
        os.nice(NICE)
    # Threads that wait for a disk are not waited for.
    Worker(socket.socket(fileno=socket_fd), LocalFilesystem(), leave=lambda: os._exit(0)).run()


class Worker:
    """See the module.

    Args:
        broker: The connection.
        filesystem: Where the logs are.
        leave: Ends the process; called when the broker has gone.
    """

    def __init__(
        self, broker: socket.socket, filesystem: Filesystem, *, leave: Callable[[], None]
    ) -> None:
        self._broker = broker
        self._filesystem = filesystem
        self._leave = leave
        # The broker's messages, in order; None: it has gone. At most a job and a reply.
        self._messages: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._aborted = threading.Event()
        self._throttle = Throttle(SystemClock(), sleep_ms, breath_ms=0.0)

    def run(self) -> None:
        """Work until the broker has gone."""
        threading.Thread(target=self._listen, name="listen", daemon=True).start()
        while (message := self._messages.get()) is not None:
            if "do" in message:
                self._send(self._do(message))

    def _listen(self) -> None:
        with contextlib.suppress(OSError), self._broker.makefile("rb") as lines:
            for line in lines:
                message = decode(line)
                if "rate" in message:
                    self._throttle.set_rate(message["rate"])
                    continue
                if "abort" in message:
                    self._aborted.set()
                elif "do" in message:
                    self._aborted.clear()
                self._messages.put(message)
        self._aborted.set()
        self._messages.put(None)
        self._leave()

    def _send(self, message: dict[str, Any]) -> None:
        # The connection may be closed: `_listen` notices.
        with contextlib.suppress(OSError):
            self._broker.sendall(encode(message))

    def _do(self, message: dict[str, Any]) -> dict[str, Any]:
        limits = Limits(*message["limits"])
        self._throttle.set_rate(limits.rate)
        cleaner = Cleaner(
            self._filesystem,
            dedupe_buffer_bytes=limits.dedupe_buffer_bytes,
            load_factor=limits.load_factor,
            read_bytes=limits.read_bytes,
            throttle=self._throttle,
        )
        try:
            stats = cleaner.do(job_from_json(message["do"]), self._put, self._check_done)
        except (StorageError, DecodeError) as error:
            return {"failed": failure_to_json(error)}
        return {"done": stats_to_json(stats)}

    def _put(self, base_offset: int, replaced: Sequence[int]) -> None:
        self._send({"put": [base_offset, list(replaced)]})
        message = self._messages.get()
        if message is None:
            self._messages.put(None)
        if message is None or "go" not in message:
            raise CleaningAbortedError("aborted by the broker")

    def _check_done(self) -> None:
        if self._aborted.is_set():
            raise CleaningAbortedError("aborted by the broker")
