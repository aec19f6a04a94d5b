"""Single flight: one download for all readers that want its result.

    demand ──> check (local, at once, may be absent) ──result──────────────> landed(result)
                   │ None                                                      ^
    prefetch ──────┴──> waiting in the FairQueue ──> work (download) ──────────┤
                              │ refused                 │ error                │
                              v                         v                      │
                        landed(QueueFullError)    landed(error)                │
    last waiter leaves:                                                        │
        waiting            ──> forgotten                                       │
        working, "cancel"  ──> cancelled, at once                              │
        working, "finish"  ──> goes on ────────────────────────────────────────┘

`landed` calls every waiter once, and the key is free again before the first of them is called.
All on the loop's thread; a task exists only while something is under way.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Final, Generic, TypeVar

from storage.environment.clock import Clock
from tiered.cache.fair_queue import Client, FairQueue
from tiered.errors import QueueFullError, TierProcessError

_log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

FLIGHTS_MAX: Final = 4096
"""Pieces of work known at a time, per table; what is checked on the local disk included."""


class Flight(Generic[K, T]):
    """See the module. Waiters are callables without arguments.

    Attributes:
        key: What is wanted.
        client: The first client that wanted it.
        result: When it has landed; None after an error.
        error: See `result`.
        landed: It is over.
        working: It has its place in the queue's running jobs.
        begun_ms: When it was asked for.
        on_over: Called once when it has landed, before the waiters, or was stopped.
        expected_bytes: What it will bring, as far as that is known; for counting waste.
        prefetch: It was begun without a waiter.
    """

    __slots__ = (
        "_check",
        "_listeners",
        "_table",
        "_task",
        "_waiters",
        "_work",
        "begun_ms",
        "client",
        "error",
        "expected_bytes",
        "key",
        "landed",
        "on_over",
        "prefetch",
        "result",
        "working",
    )

    def __init__(
        self,
        table: "Flights[K, T]",
        key: K,
        client: Client,
        check: "Callable[[], Coroutine[Any, Any, T | None]] | None",
        work: "Callable[[], Coroutine[Any, Any, T]]",
        expected_bytes: int,
        on_over: Callable[[], None] | None,
        prefetch: bool,
    ) -> None:
        self._table = table
        self.key = key
        self.client = client
        self._check = check
        self._work = work
        self.expected_bytes = expected_bytes
        self.on_over = on_over
        self.prefetch = prefetch
        self.result: T | None = None
        self.error: Exception | None = None
        self.landed = False
        self.working = False
        self.begun_ms = table.clock.monotonic_ms()
        self._waiters: list[Callable[[], None]] = []
        self._listeners: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def wanted(self) -> bool:
        """Whether it has a waiter."""
        return bool(self._waiters)

    def begin(self) -> None:
        """Check, or else go to the queue."""
        if self._check is None:
            self._enqueue()
        else:
            self._task = asyncio.get_running_loop().create_task(self._run_check(self._check))

    def start(self) -> None:
        """Begin (see `fair_queue.Job`)."""
        self.working = True
        self._task = asyncio.get_running_loop().create_task(self._run_work())
        # A task that is cancelled before its first step never comes to its `finally`.
        self._task.add_done_callback(self._give_back_place)

    def refused(self) -> None:
        """It had to leave the line."""
        self.land(None, QueueFullError("remote reads of other clients wait already"))

    def _enqueue(self) -> None:
        prefetch = self.prefetch and not self._waiters
        if not self._table.queue.submit(self, self.client, prefetch=prefetch):
            self.land(None, QueueFullError("too many remote reads wait"))

    async def _run_check(self, check: "Callable[[], Coroutine[Any, Any, T | None]]") -> None:
        result: T | None = None
        try:
            result = await check()
        except asyncio.CancelledError:
            self.land(None, TierProcessError("reading of remote storage was ended"))
            raise
        except Exception as error:  # noqa: BLE001  because it is handed to the waiters
            self.land(None, error)
            return
        if self.landed:
            return
        self._task = None
        if result is not None:
            self.land(result, None)
        else:
            self._enqueue()

    async def _run_work(self) -> None:
        try:
            result = await self._work()
        except asyncio.CancelledError:
            self._over(None, TierProcessError("reading of remote storage was ended"))
            raise
        except Exception as error:  # noqa: BLE001  because it is handed to the waiters
            self._over(None, error)
        else:
            self._over(result, None)

    def _over(self, result: T | None, error: Exception | None) -> None:
        # Waiters may ask for more: the place is free before they are called.
        self._give_back_place()
        self.land(result, error)

    def _give_back_place(self, _task: object = None) -> None:
        if self.working:
            self.working = False
            self._table.queue.done(self)

    def land(self, result: T | None, error: Exception | None) -> None:
        """Over; a second time does nothing."""
        if self.landed:
            return
        self.landed = True
        self.result = result
        self.error = error
        self._table.remove(self)
        waiters = self._waiters + self._listeners
        self._waiters, self._listeners = [], []
        for waiter in waiters:
            try:
                waiter()
            except Exception:  # noqa: BLE001  because the others must be called, and it is logged
                _log.exception("remote log reader failed after its download")

    def join(self, waiter: Callable[[], None], client: Client) -> None:
        """Be called when it lands."""
        self._waiters.append(waiter)
        if self.prefetch and len(self._waiters) == 1:
            self._table.queue.promote(self, client)

    def listen(self, listener: Callable[[], None]) -> None:
        """Be called when it lands, without being a reason for it."""
        self._listeners.append(listener)

    def leave(self, waiter: Callable[[], None], *, keep: bool = False) -> None:
        """Not be called. `keep`: others will want it, so the last to leave stops nothing."""
        if waiter not in self._waiters:
            return
        self._waiters.remove(waiter)
        if not self._waiters and not keep:
            self._table.abandon(self)

    def stop(self) -> None:
        """End it now; waiters are not called."""
        self.landed = True
        self._waiters.clear()
        self._listeners.clear()
        self._table.remove(self)
        self._table.queue.withdraw(self)
        if self._task is not None:
            self._task.cancel()


class Flights(Generic[K, T]):
    """All pieces of work of one kind that are under way.

    Attributes:
        name: For messages.
        finish_abandoned: See `TierConfig.tier_abandoned_reads`.
        begun: Pieces of work since start; `joined` had one already.
        cancelled: Downloads stopped for want of a waiter, of `cancelled_bytes` together:
            what they would have brought, so an upper bound of what had come.
    """

    __slots__ = (
        "_flights",
        "begun",
        "cancelled",
        "cancelled_bytes",
        "clock",
        "finish_abandoned",
        "joined",
        "name",
        "queue",
    )

    def __init__(
        self, name: str, queue: FairQueue, clock: Clock, *, finish_abandoned: bool
    ) -> None:
        self.name = name
        self.queue = queue
        self.clock = clock
        self.finish_abandoned = finish_abandoned
        self._flights: dict[K, Flight[K, T]] = {}
        self.begun = 0
        self.joined = 0
        self.cancelled = 0
        self.cancelled_bytes = 0

    def __len__(self) -> int:
        return len(self._flights)

    def get(self, key: K) -> Flight[K, T] | None:
        """What is under way for a key."""
        return self._flights.get(key)

    def demand(
        self,
        key: K,
        waiter: Callable[[], None],
        client: Client,
        *,
        check: "Callable[[], Coroutine[Any, Any, T | None]] | None",
        work: "Callable[[], Coroutine[Any, Any, T]]",
        expected_bytes: int = 0,
        on_over: Callable[[], None] | None = None,
    ) -> Flight[K, T]:
        """Have `waiter` called when there is a result; it may have landed when this returns.

        A flight that has landed already calls no waiter: check `landed`. `on_over` is for a new
        flight: pass it only where there is none under way.
        """
        flight = self._flights.get(key)
        if flight is not None:
            self.joined += 1
            flight.join(waiter, client)
            return flight
        flight = Flight(self, key, client, check, work, expected_bytes, on_over, prefetch=False)
        if len(self._flights) >= FLIGHTS_MAX:
            flight.landed = True
            flight.error = QueueFullError(f"too many {self.name} are read")
            self.remove(flight)
            return flight
        self._flights[key] = flight
        self.begun += 1
        # A refusal shows in `landed`, not by a call from within this one: so no waiter yet.
        flight.begin()
        if not flight.landed:
            flight.join(waiter, client)
        return flight

    def prefetch(
        self,
        key: K,
        client: Client,
        *,
        check: "Callable[[], Coroutine[Any, Any, T | None]] | None",
        work: "Callable[[], Coroutine[Any, Any, T]]",
        expected_bytes: int = 0,
        on_over: Callable[[], None] | None = None,
    ) -> bool:
        """Have it for later; whether it is under way now."""
        if key in self._flights:
            return True
        if len(self._flights) >= FLIGHTS_MAX:
            self.queue.dropped_prefetches += 1
            if on_over is not None:
                on_over()
            return False
        flight = Flight(self, key, client, check, work, expected_bytes, on_over, prefetch=True)
        self._flights[key] = flight
        self.begun += 1
        flight.begin()
        return not flight.landed

    def remove(self, flight: Flight[K, T]) -> None:
        """It has landed, or was stopped."""
        if self._flights.get(flight.key) is flight:
            del self._flights[flight.key]
        if flight.on_over is not None:
            flight.on_over()

    def abandon(self, flight: Flight[K, T]) -> None:
        """Cancel it, or let it finish, as no waiter is left."""
        if flight.working:
            if self.finish_abandoned:
                return
            self.cancelled += 1
            self.cancelled_bytes += flight.expected_bytes
        flight.stop()

    def close(self) -> None:
        """Stop everything; waiters are not called."""
        for flight in list(self._flights.values()):
            flight.stop()
