"""One shared timer wheel for everything that waits on time.

Long polls arm and disarm a timer per request, so both must cost next to nothing: a timer is a slot
in the list of its tick, cancelling clears one field. The event loop sees a single timer, for the
earliest tick that has anybody waiting (a timer of the loop's own per request costs 3 us more).

    _ticks    heap of tick numbers that have a bucket       one entry per distinct tick
    _buckets  tick number -> timers due then                tick = TICK_MS milliseconds

A timer fires at the end of its tick: never early, up to TICK_MS late. A cancelled timer keeps its
slot, but no callback, until its tick passes. When many are due together, others get their turn on
the loop after TURN_MS, and what is left goes on behind them, in order.
"""

import asyncio
import heapq
import logging
from collections.abc import Callable
from typing import Protocol

from storage.clock import Clock

LOGGER = logging.getLogger(__name__)

TICK_MS = 5.0
"""Resolution. Kafka's own purgatory timer ticks every millisecond, with a thread to turn it."""


TURN_MS = 5.0
"""How long timers that are due may hold the loop: a thousand groups form at the same moment."""


class TimerHandle(Protocol):
    """A callback that has been scheduled."""

    def cancel(self) -> None:
        """Never call the callback; harmless when it has run already."""
        ...


class Timer(Protocol):
    """Calls back once, later, on the loop's thread."""

    def call_later_ms(self, delay_ms: float, callback: Callable[[], None]) -> TimerHandle:
        """Run `callback` after `delay_ms` milliseconds (0 or less: at the next tick)."""
        ...


class WheelTimer:
    """A slot in the wheel."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Never call the callback."""
        self.callback = None


class TimerWheel:
    """`Timer` on an event loop; see the module."""

    __slots__ = ("_buckets", "_clock", "_handle", "_loop", "_next_tick", "_ticks")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._ticks: list[int] = []
        self._buckets: dict[int, list[WheelTimer]] = {}
        self._handle: asyncio.TimerHandle | None = None
        self._next_tick = 0

    def call_later_ms(self, delay_ms: float, callback: Callable[[], None]) -> WheelTimer:
        """Run `callback` once, `delay_ms` from now, rounded up to the end of a tick."""
        now_ms = self._clock.monotonic_ms()
        tick = int((now_ms + max(delay_ms, 0.0)) / TICK_MS) + 1
        timer = WheelTimer(callback)
        bucket = self._buckets.get(tick)
        if bucket is not None:
            bucket.append(timer)
            return timer
        self._buckets[tick] = [timer]
        heapq.heappush(self._ticks, tick)
        if self._handle is None or tick < self._next_tick:
            self._arm(tick, now_ms)
        return timer

    @property
    def armed(self) -> int:
        """Timers that have neither fired nor been cancelled."""
        return sum(1 for bucket in self._buckets.values() for timer in bucket if timer.callback)

    def _arm(self, tick: int, now_ms: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._next_tick = tick
        self._handle = self._loop.call_later(max(tick * TICK_MS - now_ms, 0.0) / 1000, self._turn)

    def _turn(self) -> None:
        self._handle = None
        now_ms = self._clock.monotonic_ms()
        turn_end_ms = now_ms + TURN_MS
        ticks = self._ticks
        while ticks and ticks[0] * TICK_MS <= now_ms:
            tick = heapq.heappop(ticks)
            bucket = self._buckets.pop(tick)
            for place, timer in enumerate(bucket, 1):
                callback, timer.callback = timer.callback, None
                if callback is None:
                    continue
                try:
                    callback()
                except Exception:
                    LOGGER.exception("timer callback failed")
                if self._clock.monotonic_ms() >= turn_end_ms:
                    if place < len(bucket):
                        # What is armed from now on is due after this tick, which has passed.
                        self._buckets[tick] = bucket[place:]
                        heapq.heappush(ticks, tick)
                    self._arm_first()
                    return
        self._arm_first()

    def _arm_first(self) -> None:
        """A callback may have armed a timer already; it stands if nothing is due before it."""
        if self._ticks and (self._handle is None or self._ticks[0] < self._next_tick):
            self._arm(self._ticks[0], self._clock.monotonic_ms())

    def close(self) -> None:
        """Forget every timer."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._ticks.clear()
        self._buckets.clear()
