"""Tier processes that are services in the test's own loop, behind real socket pairs."""

import asyncio
import socket
from collections.abc import Callable, Mapping
from typing import Any

from tests.fakes.tiered.scripted_tier import FakeTier
from tiered.tier import Tier
from tiered.worker.connection import MessageConnection
from tiered.worker.loop_timer import LoopTimer
from tiered.worker.process import Started
from tiered.worker.service import TierService


class NoLog:
    """Nothing is written."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


class FakeProcess:
    """`Process`: ends by signals and by the end of its socket, or not if it is told so."""

    def __init__(self, pid: int, sock: socket.socket, tier: Tier, start_error: Exception | None):
        self.pid = pid
        self.tier = tier
        self.hello: Mapping[str, Any] = {}
        self.signals: list[str] = []
        self.ignores_end = False
        self.ignores_terminate = False
        self.status: int | None = None
        self._start_error = start_error
        self.service = TierService(self._open, timer=LoopTimer(), pid=pid)
        self.connection = MessageConnection(self.service.on_message, self._lost)
        self.service.serve(self.connection)
        self._sock = sock
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _open(self, hello: Mapping[str, Any]) -> Tier:
        self.hello = hello
        if self._start_error is not None:
            raise self._start_error
        return self.tier

    def _lost(self, reason: str) -> None:
        self.service.on_lost(reason)

    async def _run(self) -> None:
        await self.connection.open(self._sock)
        await self.service.ended()
        await self.service.close()
        if not self.ignores_end and self.status is None:
            self.status = 0

    def hang(self) -> None:
        """As SIGSTOP does: what is sent to it is not read."""
        assert self.connection._transport is not None
        transport = self.connection._transport
        transport.pause_reading()

    def poll(self) -> int | None:
        return self.status

    def terminate(self) -> None:
        self.signals.append("TERM")
        if not self.ignores_terminate:
            self._end(-15)

    def kill(self) -> None:
        self.signals.append("KILL")
        self._end(-9)

    def _end(self, status: int) -> None:
        if self.status is None:
            self.status = status
            self.connection.end("killed")


class FakeProcesses:
    """`Processes`: what was started is in `started`, newest last."""

    def __init__(self, make_tier: Callable[[], Tier] = FakeTier) -> None:
        self.make_tier = make_tier
        self.started: list[FakeProcess] = []
        self.logs: list[NoLog] = []
        self.fork_error: OSError | None = None
        self.start_error: Exception | None = None

    def start(self) -> Started:
        if self.fork_error is not None:
            raise self.fork_error
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        process = FakeProcess(1000 + len(self.started), theirs, self.make_tier(), self.start_error)
        self.started.append(process)
        self.logs.append(NoLog())
        return Started(process, ours, self.logs[-1])

    @property
    def newest(self) -> FakeProcess:
        return self.started[-1]
