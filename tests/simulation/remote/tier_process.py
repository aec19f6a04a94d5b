"""The tier process of a simulated broker: it does the work of remote storage, and can be killed.

broker's process ──call──> tier's process: RemoteStorageManager ──> bucket
<─result──   killed: TierProcessError, nothing is cleaned up; the next call has
a new process
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from tests.simulation.loop import Process, SimLoop
from tiered.errors import TierProcessError
from tiered.tier import Tier

CLOSE: Final = "close"


class SimTier:
    """`tiered.tier.Tier`, by a process of its own; see the module.

    Attributes:
        lives: How many processes there were.
    """

    def __init__(self, loop: SimLoop, broker: Process, build: Callable[[], Tier]) -> None:
        self._loop = loop
        self._broker = broker
        self._build = build
        self._waiting: set[asyncio.Future[Any]] = set()
        self._tier: Tier | None = None
        self._process = broker
        self.lives = 0

    def __getattr__(self, name: str) -> Any:
        return partial(self._call, name)

    async def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if self._tier is None:
            self.lives += 1
            self._tier = self._build()
            self._process = Process(f"{self._broker.name}.tier{self.lives}", rate=self._broker.rate)
        process = self._process
        done: asyncio.Future[Any] = self._loop.create_future()
        self._waiting.add(done)

        def finish(task: "asyncio.Task[Any]") -> None:
            self._loop.call_in(self._broker, self._answer, done, task)

        task = self._loop.spawn(process, getattr(self._tier, name)(*args, **kwargs))
        task.add_done_callback(finish, context=process.context)
        try:
            return await done
        except asyncio.CancelledError:
            # As the tier process is told to: what it does about it, it does on its own.
            self._loop.call_in(process, task.cancel)
            raise
        finally:
            self._waiting.discard(done)

    @staticmethod
    def _answer(done: "asyncio.Future[Any]", task: "asyncio.Task[Any]") -> None:
        if done.done():
            if not task.cancelled():
                task.exception()
        elif task.cancelled():
            done.cancel()
        elif (error := task.exception()) is not None:
            done.set_exception(error)
        else:
            done.set_result(task.result())

    def end(self) -> None:
        """The broker's process has died: its tier ends with it."""
        if self._tier is not None:
            self._loop.kill(self._process)
            self._loop.graveyard.append(self._tier)
            self._tier = None

    def kill(self) -> None:
        """Kill -9 of this process alone."""
        self.end()
        for done in self._waiting:
            self._loop.call_in(self._broker, self._lost, done)

    @staticmethod
    def _lost(done: "asyncio.Future[Any]") -> None:
        if not done.done():
            done.set_exception(TierProcessError("the tier process was killed"))

    def statistics(self) -> Mapping[str, Any]:
        """Of the present process."""
        return {} if self._tier is None else self._tier.statistics()

    async def close(self) -> None:
        """End."""
        if self._tier is not None:
            await self._call(CLOSE)
            self.end()
