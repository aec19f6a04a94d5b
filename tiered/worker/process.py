"""Child processes: start and stop, the only calls of that kind in the broker.

The process gets one end of a socket pair and the writing end of a pipe as its standard output and
error. Nothing has a name in a folder, and no secret is on the command line or in the environment.

The process is started from the thread that runs the broker's loop, which must live as long as the
broker: the process asks the kernel to be killed when *that thread* ends (`PR_SET_PDEATHSIG`).
"""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from tiered.worker.log_lines import LogLines


class Process(Protocol):
    """A child of this process."""

    pid: int

    def poll(self) -> int | None:
        """Its exit status (negative: the signal that ended it) and take it away; None: it runs."""
        ...

    def terminate(self) -> None:
        """SIGTERM; harmless when it has ended."""
        ...

    def kill(self) -> None:
        """SIGKILL; harmless when it has ended."""
        ...


class LogReader(Protocol):
    """Reads what the process writes to its standard error."""

    def close(self) -> None:
        """Take what is there, then no more."""
        ...


class Started(NamedTuple):
    """A process and what it is spoken to with. The socket is the receiver's to close."""

    process: Process
    socket: socket.socket
    log: LogReader


class Processes(Protocol):
    """Where processes come from."""

    def start(self) -> Started:
        """Start one; OSError when the system has no room."""
        ...


READ_BYTES: Final = 16 * 1024
"""Of log per loop iteration: some hundred lines, a millisecond or two."""


class PipeLogReader:
    """Feeds `LogLines` from a pipe, as the loop finds it readable."""

    def __init__(self, fd: int, lines: LogLines) -> None:
        self._fd = fd
        self._lines = lines
        os.set_blocking(fd, False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(fd, self._read)

    def _read(self) -> bool:
        """Whether there may be more."""
        try:
            data = os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            self._lines.feed(data)
            return True
        self._loop.remove_reader(self._fd)
        return False

    def close(self) -> None:
        """Take what is there, then no more."""
        if self._fd < 0:
            return
        self._loop.remove_reader(self._fd)
        # A pipe holds 64 KiB unless it was made larger: this ends.
        while self._read():
            pass
        self._loop.remove_reader(self._fd)
        self._lines.end()
        os.close(self._fd)
        self._fd = -1


class TierProcesses:
    """Starts `python -m tiered.worker`.

    Args:
        module: What to run instead; for tests.
    """

    def __init__(self, module: str = "tiered.worker") -> None:
        self._module = module

    def start(self) -> Started:
        """Blocks for the few milliseconds until the program is loaded."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        reading, writing = os.pipe()
        with theirs, contextlib.ExitStack() as undo:
            undo.callback(os.close, writing)
            failed = undo.enter_context(contextlib.ExitStack())
            failed.callback(os.close, reading)
            failed.callback(ours.close)
            process = subprocess.Popen(
                self._command(theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                pass_fds=(theirs.fileno(),),
                # Ctrl-C in a terminal is for the broker, which drains the process.
                process_group=0,
            )
            failed.pop_all()
        ours.setblocking(False)
        return Started(ChildProcess(process), ours, PipeLogReader(reading, LogLines()))

    def _command(self, fd: int) -> Sequence[str]:
        return [sys.executable, "-m", self._module, "--socket-fd", str(fd)]


class ChildProcess:
    """`Process` of the operating system."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        """Exit status, negative for a signal."""
        return self._process.poll()

    def terminate(self) -> None:
        """SIGTERM."""
        self._process.terminate()

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
