"""One broker under its supervisor: started again whenever it ends, until it is to stop.

    STARTING ──listens──> SERVING ──ends──> WAITING (0.5 s, doubling up to 30 s) ──> STARTING
        └──ends──> REFUSED, if it has never listened and says so by its status; else WAITING
    any ──stop──> STOPPED

A broker that has served for a minute is started again after the first, shortest wait.
"""

import asyncio
import enum
import logging
from collections.abc import Callable
from typing import Final

from broker.runtime.lifeline import Listening
from broker.runtime.pauses import pause
from broker.supervisor.broker_process import BrokerProcess, Launch
from broker.supervisor.plan import BrokerPlan
from storage.environment.environment import Environment
from tiered.backoff import Backoff

LOGGER = logging.getLogger(__name__)

AGAIN_FIRST_MS: Final = 500.0
AGAIN_MAX_MS: Final = 30_000.0
SERVED_MS: Final = 60_000.0
"""How long a broker has to serve for its next end to count as its first."""

STOP_MS: Final = 120_000.0
"""How long it may take to stop: leaderships are handed over in 30 s, clients answered in 10."""


class BrokerState(enum.Enum):
    """See the module."""

    STARTING = "starting"
    SERVING = "serving"
    WAITING = "waiting to be started again"
    REFUSED = "refused its start"
    STOPPED = "stopped"


class SupervisedBroker:
    """See the module. Runs on the loop's thread; `start` once, `stop` once.

    Attributes:
        plan: Its settings.
        state: What it is doing.
        listening: Where it is reached; None unless it serves.
        starts: How often its process was started.
        pid: Of its process; 0: there is none.
    """

    def __init__(
        self,
        plan: BrokerPlan,
        launch: Launch,
        environment: Environment,
        changed: Callable[[], None],
    ) -> None:
        """Start nothing yet.

        Args:
            plan: Its settings.
            launch: Starts its process.
            environment: Clock, timer and randomness.
            changed: Called after each change of `state`.
        """
        self.plan = plan
        self.state = BrokerState.STARTING
        self.listening: Listening | None = None
        self.starts = 0
        self.pid = 0
        self._launch = launch
        self._environment = environment
        self._changed = changed
        self._process: BrokerProcess | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._has_served = False
        self._backoff = Backoff(
            environment.randomness, first_ms=AGAIN_FIRST_MS, max_ms=AGAIN_MAX_MS, jitter=0.2
        )

    @property
    def restarts(self) -> int:
        """How often it was started again."""
        return max(self.starts - 1, 0)

    def start(self) -> None:
        """Start it, and go on doing so."""
        self._task = asyncio.get_running_loop().create_task(
            self._run(), name=f"broker {self.plan.node_id}"
        )

    def tell_to_stop(self) -> None:
        """Have it stop; it is not started again."""
        if self._stopping:
            return
        self._stopping = True
        if self._process is not None:
            self._process.terminate()
        elif self._task is not None:
            self._task.cancel()

    async def stop(self) -> None:
        """Have it stop, and wait until it has; killed if that takes longer than `STOP_MS`."""
        self.tell_to_stop()
        if self._task is None:
            return
        late = self._environment.timer.call_later_ms(STOP_MS, self._kill)
        try:
            await asyncio.wait([self._task])
        finally:
            late.cancel()
        self._set(BrokerState.STOPPED)

    def _kill(self) -> None:
        if self._process is not None:
            LOGGER.error(
                "broker has not stopped, it is killed node=%d pid=%d", self.plan.node_id, self.pid
            )
            self._process.kill()

    async def _run(self) -> None:
        while True:
            self._set(BrokerState.STARTING)
            began_ms = self._environment.clock.monotonic_ms()
            status = await self._run_process()
            if self._stopping:
                return
            if status > 0 and not self._has_served:
                # It has said why; the same settings would be refused again.
                self._set(BrokerState.REFUSED)
                return
            if self._environment.clock.monotonic_ms() - began_ms >= SERVED_MS:
                self._backoff.reset()
            wait_ms = self._backoff.next_ms()
            LOGGER.error(
                "broker has ended, it is started again node=%d status=%d restarts=%d wait_ms=%.0f",
                self.plan.node_id,
                status,
                self.starts,
                wait_ms,
            )
            self._set(BrokerState.WAITING)
            await pause(self._environment.timer, wait_ms)

    async def _run_process(self) -> int:
        """One life of it; the exit status."""
        self.starts += 1
        launching = asyncio.ensure_future(self._launch(self.plan))
        try:
            process = await asyncio.shield(launching)
        except asyncio.CancelledError:
            # Asked to stop meanwhile: a process that begins now is not left behind.
            process = await launching
            process.terminate()
        except OSError as error:
            LOGGER.error("broker cannot be started node=%d error=%s", self.plan.node_id, error)
            return -1
        self._process, self.pid = process, process.pid
        try:
            self.listening = await process.listening()
            if self.listening is not None and not self._stopping:
                self._has_served = True
                self._set(BrokerState.SERVING)
            return await process.ended()
        finally:
            self._process, self.pid, self.listening = None, 0, None

    def _set(self, state: BrokerState) -> None:
        self.state = state
        self._changed()
