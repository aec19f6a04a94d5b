"""Lets no more heartbeats change groups at a time than leave the loop to others.

A heartbeat that brings nothing new is answered where it is read. One that changes its group costs
fifty times as much, and when thousands of members start together whoever else asks for something
would wait for all of them. So some are served at once, and those that come too soon behind them
with the ticks of the timer, those of one shard with one write:

    allowance of a tick left, nobody waits    served where it is read
    otherwise                                 waits for ticks, which take half of the time

Source of the idea: Kafka, CoordinatorRuntime.java (coordinators have a queue and threads of their
own; writes of one turn share a batch).
"""

import logging
from collections import deque
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from broker.runtime.timer import Timer
from storage.environment.clock import Clock

logger = logging.getLogger(__name__)

PER_TICK = 25
"""Served at least with each tick: two milliseconds."""

ROUNDS_MAX = 8
"""So often as many are served with one tick while its time lasts."""

TIME_SHARE = 0.5
"""Of the time since the tick before: ticks come late when the loop is busy with other things."""

TICK_MAX_MS = 10.0
"""The longest that a tick's time is."""

WAITING_MAX = 100_000
"""More are refused; the network lets a client have a few hundred under way on a connection."""

Request = TypeVar("Request", contravariant=True)


class Served(Protocol[Request]):
    """Somebody whose requests wait here: the protocol of one shard."""

    def serve(self, requests: Sequence[Request]) -> None:
        """Serve requests in order; whatever they change is written together."""
        ...


class Backlog(Generic[Request]):
    """Requests of all shards, in the order in which they came."""

    def __init__(self, timer: Timer, clock: Clock) -> None:
        self._timer = timer
        self._clock = clock
        self._ticked_ms = 0.0
        self._waiting: deque[tuple[Served[Request], Request]] = deque()
        self._allowance = PER_TICK
        self._is_ticking = False

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def offer(self, served: Served[Request], request: Request) -> bool:
        """Serve a request now or soon; False when too many wait."""
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
                # One shard's trouble keeps neither the others waiting nor the ticks from coming.
                logger.exception("queued heartbeats failed count=%d", len(requests))
