"""Lets no more heartbeats change groups at a time than leave the loop to others.

A heartbeat that brings nothing new is answered where it is read. One that changes its group costs
fifty times as much, and when thousands of members start together whoever else asks for something
would wait for all of them. So some are served at once, and those that come too soon behind them
with the ticks of the timer, those of one shard with one write:

    allowance of a tick left, nobody waits    served where it is read
    otherwise                                 waits; PER_TICK of those who wait with each tick

Source of the idea: Kafka, CoordinatorRuntime.java (coordinators have a queue and threads of their
own; writes of one turn share a batch).
"""

from collections import deque
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from broker.timer import Timer

PER_TICK = 25
"""Of a tick of 5 ms they take about two."""

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

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._waiting: deque[tuple[Served[Request], Request]] = deque()
        self._allowance = PER_TICK
        self._is_ticking = False

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def offer(self, served: Served[Request], request: Request) -> bool:
        """Serve a request now or soon; False when too many wait."""
        if not self._is_ticking:
            self._is_ticking = True
            self._timer.call_later_ms(0, self._tick)
        if self._allowance and not self._waiting:
            self._allowance -= 1
            served.serve((request,))
            return True
        if len(self._waiting) >= WAITING_MAX:
            return False
        self._waiting.append((served, request))
        return True

    def _tick(self) -> None:
        self._is_ticking = False
        waiting = self._waiting
        count = min(len(waiting), PER_TICK)
        self._allowance = PER_TICK - count
        if not count:
            return
        self._is_ticking = True
        self._timer.call_later_ms(0, self._tick)
        together: dict[Served[Request], list[Request]] = {}
        for _ in range(count):
            served, request = waiting.popleft()
            together.setdefault(served, []).append(request)
        for served, requests in together.items():
            served.serve(requests)
