"""The backlog of heartbeats that change groups: it bounds their share of the event loop.

A heartbeat without changes is answered where it is read. One that changes its group costs fifty
times as much, and when thousands of members start together all other requests would wait for them.
So some are served at once, and those that follow too soon with the ticks of the timer, those of one
shard with one write:

    allowance of a tick left, backlog empty    served where it is read
    otherwise                                  waits for ticks, which take half of the time

Source of the idea: Kafka, CoordinatorRuntime.java (coordinators have a queue and threads of their
own; writes of one iteration share a batch).
"""

import logging
from collections import deque
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from broker.runtime.timer import Timer
from storage.environment.clock import Clock

logger = logging.getLogger(__name__)

PER_TICK = 25
"""Requests served at least with each tick: two milliseconds."""

ROUNDS_MAX = 8
"""Rounds of PER_TICK requests with one tick while its time lasts."""

TIME_SHARE = 0.5
"""Part of the time since the previous tick: ticks are late when the loop is busy."""

TICK_MAX_MS = 10.0
"""Longest time of a tick."""

WAITING_MAX = 100_000
"""Most waiting requests; the network allows a few hundred under way on a connection."""

Request = TypeVar("Request", contravariant=True)


class Served(Protocol[Request]):
    """The handler of waiting requests: the protocol of one shard."""

    def serve(self, requests: Sequence[Request]) -> None:
        """Serve requests in order; their changes are written together."""
        ...


class Backlog(Generic[Request]):
    """Waiting requests of all shards, in the order of arrival."""

    def __init__(self, timer: Timer, clock: Clock) -> None:
        self._timer = timer
        self._clock = clock
        self._ticked_ms = 0.0
        self._waiting: deque[tuple[Served[Request], Request]] = deque()
        self._allowance = PER_TICK
        self._is_ticking = False

    def __len__(self) -> int:
        """Number of waiting requests."""
        return len(self._waiting)

    def offer(self, served: Served[Request], request: Request) -> bool:
        """Serve a request now or queue it; False when too many wait."""
        if not self._is_ticking:
            self._arm(self._clock.monotonic_ms())
        if self._allowance and not self._waiting:
            self._allowance -= 1
            served.serve((request,))
            return True
        if len(self._waiting) >= WAITING_MAX:
            return False
        self._waiting.append((served, request))
        return True

    def _arm(self, now_ms: float) -> None:
        self._is_ticking = True
        self._ticked_ms = now_ms
        self._timer.call_later_ms(0, self._tick)

    def _tick(self) -> None:
        self._is_ticking = False
        if not self._waiting:
            self._allowance = PER_TICK
            return
        self._allowance = 0
        now_ms = self._clock.monotonic_ms()
        end_ms = now_ms + min(TIME_SHARE * (now_ms - self._ticked_ms), TICK_MAX_MS)
        for _ in range(ROUNDS_MAX):
            self._serve_some()
            now_ms = self._clock.monotonic_ms()
            if not self._waiting or now_ms >= end_ms:
                break
        self._arm(now_ms)

    def _serve_some(self) -> None:
        waiting = self._waiting
        together: dict[Served[Request], list[Request]] = {}
        for _ in range(min(len(waiting), PER_TICK)):
            served, request = waiting.popleft()
            together.setdefault(served, []).append(request)
        for served, requests in together.items():
            try:
                served.serve(requests)
            except Exception:
                # A shard's failure stops neither the others nor the ticks.
                logger.exception("queued heartbeats failed count=%d", len(requests))
