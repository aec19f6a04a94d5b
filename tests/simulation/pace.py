"""How busy a simulated cluster is: faults come in episodes under load, with quiet time between.

    BUSY ──no fault for a while──> QUIET ──a fault is due soon──> BUSY

What a quiet cluster does costs no more than its timers, so that hours of it pass in seconds:
clients pause long and wait long for records, followers' fetches too. Timers that only measure, or
look whether there is something to do, run less often in all of a run.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from broker.lifecycle import cluster_directories
from broker.membership import leased_membership
from broker.network import server
from broker.replicas import background
from broker.runtime import directory_writer, loop_lag

if TYPE_CHECKING:
    from tests.simulation.brokers import SimBroker
    from tests.simulation.loop import SimLoop

QUIET_PAUSE_S: Final = 60.0
"""A client that has done something pauses for up to so long in quiet time."""

QUIET_POLL_MS: Final = 25_000
BUSY_POLL_MS: Final = 500
"""A consumer waits so long for records."""

QUIET_FETCH_MS: Final = 10_000
"""`replica.fetch.wait.max.ms` in quiet time."""

SELDOM: Final = (
    (background, "FLUSH_CHECK_MS", 2_000.0),
    (background, "CHECKPOINT_MS", 15_000.0),
    (background, "REMOVE_DELETED_MS", 15_000.0),
    (background, "ROOM_CHECK_MS", 10_000.0),
    (leased_membership, "BEAT_MS", 1_000.0),
    (directory_writer, "SAMPLE_MS", 5_000.0),
    (cluster_directories, "LOOK_FOR_ROOM_MS", 1_000.0),
    (loop_lag, "PERIOD_MS", 5_000.0),
    (server, "SWEEP_MS", 5_000.0),
)
"""Periods of timers in a run."""


@contextmanager
def seldom_timers() -> Iterator[None]:
    """Let timers run less often that decide nothing."""
    before = [(module, name, getattr(module, name)) for module, name, _ in SELDOM]
    for module, name, value in SELDOM:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


class Pace:
    """See the module.

    Attributes:
        is_quiet: Whether it is quiet time.
        quiet_s: How much of it there was.
    """

    def __init__(self, loop: "SimLoop", brokers: Callable[[], "list[SimBroker]"]) -> None:
        self._loop = loop
        self._brokers = brokers
        self._paused: list[asyncio.Future[None]] = []
        self._since_s = 0.0
        self.is_quiet = False
        self.quiet_s = 0.0

    @property
    def poll_ms(self) -> int:
        """How long a consumer waits for records."""
        return QUIET_POLL_MS if self.is_quiet else BUSY_POLL_MS

    def set_quiet(self, is_quiet: bool) -> None:
        """Change to quiet or busy time."""
        if is_quiet is self.is_quiet:
            return
        self.is_quiet = is_quiet
        if is_quiet:
            self._since_s = self._loop.time()
        else:
            self.quiet_s += self._loop.time() - self._since_s
            paused, self._paused = self._paused, []
            for one in paused:
                if not one.done():
                    one.set_result(None)
        for place in self._brokers():
            self.settle(place)

    def settle(self, place: "SimBroker") -> None:
        """Give a broker's fetchers the wait of the time."""
        broker = place.broker
        if not place.is_running or broker is None or broker.dynamic is None:
            return
        usual_ms = broker.settings.replica_fetch_wait_max_ms
        wait_ms = max(QUIET_FETCH_MS, usual_ms) if self.is_quiet else usual_ms
        dynamic = broker.dynamic
        dynamic._current = dynamic.current.replace(replica_fetch_wait_max_ms=wait_ms)
        broker.replicas.terms.fetch_wait_max_ms = wait_ms

    async def pause(self, share: float, busy_s: float, quiet_s: float = QUIET_PAUSE_S) -> None:
        """Wait between two pieces of work: a share of what is usual at the time."""
        if not self.is_quiet:
            await asyncio.sleep(share * busy_s)
            return
        over: asyncio.Future[None] = self._loop.create_future()
        self._paused.append(over)
        with suppress(TimeoutError):
            async with asyncio.timeout(share * quiet_s):
                await over
        self._paused = [one for one in self._paused if not one.done()]
