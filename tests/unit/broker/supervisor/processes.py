"""Processes of brokers that the test lets listen and end."""

import asyncio

from broker.runtime.lifeline import Listening
from broker.supervisor.plan import BrokerPlan

TERMINATED = -15
KILLED = -9


class FakeProcess:
    """A process; told to stop it ends at once, unless it is stubborn."""

    def __init__(self, plan: BrokerPlan, pid: int) -> None:
        loop = asyncio.get_running_loop()
        self.plan = plan
        self.pid = pid
        self.stubborn = False
        self.signals: list[str] = []
        self._listening: asyncio.Future[Listening | None] = loop.create_future()
        self._status: asyncio.Future[int] = loop.create_future()

    def listen(self, port: int = 9092, admin: str = "127.0.0.1:1") -> None:
        self._listening.set_result(Listening("cluster", (("PLAINTEXT", "127.0.0.1", port),), admin))

    def end(self, status: int) -> None:
        if not self._listening.done():
            self._listening.set_result(None)
        if not self._status.done():
            self._status.set_result(status)

    async def listening(self) -> Listening | None:
        return await asyncio.shield(self._listening)

    async def ended(self) -> int:
        return await asyncio.shield(self._status)

    def terminate(self) -> None:
        self.signals.append("TERM")
        if not self.stubborn:
            self.end(0)

    def kill(self) -> None:
        self.signals.append("KILL")
        self.end(KILLED)


class FakeLaunch:
    """`Launch`, with all it has started, in order."""

    def __init__(self) -> None:
        self.processes: list[FakeProcess] = []
        self.refuses = 0

    async def __call__(self, plan: BrokerPlan) -> FakeProcess:
        if self.refuses:
            self.refuses -= 1
            raise OSError("no room for another process")
        process = FakeProcess(plan, 100 + len(self.processes))
        self.processes.append(process)
        return process

    @property
    def last(self) -> FakeProcess:
        return self.processes[-1]


async def settle() -> None:
    """Let all tasks go on as far as they can."""
    for _ in range(20):
        await asyncio.sleep(0)
