"""A broker as a process of the supervisor: started, heard of, stopped, and ended.

A `Launch` starts one; tests have one that starts none.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from broker.runtime.lifeline import LINE_BYTES_MAX, Listening, decode_listening
from broker.supervisor.plan import BrokerPlan


class BrokerProcess(Protocol):
    """A process that was started."""

    pid: int

    async def listening(self) -> Listening | None:
        """Wait until the broker listens; None: it has ended before."""
        ...

    async def ended(self) -> int:
        """Wait for its end: the exit status, negative the signal that has killed it."""
        ...

    def terminate(self) -> None:
        """Ask it to stop; harmless when it has ended."""
        ...

    def kill(self) -> None:
        """End it now; harmless when it has ended."""
        ...


Launch = Callable[[BrokerPlan], Awaitable[BrokerProcess]]
"""Starts a broker. Raises OSError where the system has no room for another process."""


class LocalBrokerProcess:
    """A process of this machine, at the other end of a socket pair."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._reader = reader
        # Our end of the pair, which the broker watches.
        self._writer = writer
        self.pid = process.pid

    async def listening(self) -> Listening | None:
        """Wait for the broker's line."""
        try:
            line = await self._reader.readline()
            return decode_listening(line) if line else None
        except (OSError, ValueError):
            return None

    async def ended(self) -> int:
        """Wait for its end."""
        status = await self._process.wait()
        self._writer.close()
        return status

    def terminate(self) -> None:
        """SIGTERM."""
        if self._process.returncode is None:
            self._process.terminate()

    def kill(self) -> None:
        """SIGKILL."""
        if self._process.returncode is None:
            self._process.kill()


class LocalLaunch:
    """Starts brokers with the command line of a single one."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start nothing yet; `command` is what a broker's own settings are added to."""
        self._command = tuple(command)

    async def __call__(self, plan: BrokerPlan) -> LocalBrokerProcess:
        """Start one; its log lines and errors go where the supervisor's go."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with theirs:
                descriptor = theirs.fileno()
                process = await asyncio.create_subprocess_exec(
                    *self._command,
                    *plan.words,
                    *("--lifeline", str(descriptor)),
                    stdin=asyncio.subprocess.DEVNULL,
                    pass_fds=(descriptor,),
                    # Ctrl-C in a terminal is for the supervisor.
                    process_group=0,
                )
            reader, writer = await asyncio.open_connection(sock=ours, limit=LINE_BYTES_MAX)
        except BaseException:
            ours.close()
            raise
        return LocalBrokerProcess(process, reader, writer)
