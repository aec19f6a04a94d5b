"""One shared timer wheel for everything that waits on time.

Long polls arm and disarm a timer per request, so both must cost next to nothing: a timer is an
entry in the dictionary of its tick, which cancelling removes. The event loop sees a single timer,
for the earliest tick that has a timer (a timer of the loop's own per request costs 3 us more).

    _ticks    heap of tick numbers that have a bucket       one entry per distinct tick
    _buckets  tick number -> timers due then, in order      tick = TICK_MS milliseconds

A timer fires at the end of its tick: never early, up to TICK_MS and LOOP_LATE_MS late. One that is
cancelled leaves nothing behind; ticks whose last timer is cancelled wake nobody: they are dropped
when the wheel looks for the earliest, and when their number has doubled. When many are due
together, the wheel yields to the event loop after SLICE_MS, and the others fire in the next
iterations, in order.
"""

import asyncio
import heapq
import logging
import math
from collections.abc import Callable
from typing import Final, Protocol

from storage.environment.clock import Clock

LOGGER = logging.getLogger(__name__)

TICK_MS: Final = 5.0
"""Resolution. Kafka's own purgatory timer ticks every millisecond, with a thread to turn it."""


LOOP_EARLY_MS: Final = 1.0
"""How much too early the loop's timers fire: uvloop rounds the clock and the delay to milliseconds.
Asked for less than half of one it fires at once, and again, until the time has come."""

LOOP_LATE_MS: Final = LOOP_EARLY_MS + 1.0
"""What is waited for beyond the tick's end because of that, at most."""

SLICE_MS: Final = 5.0
"""How long due timers may hold the loop: a thousand groups form at the same moment."""


_SWEEP_FROM: Final = 128
"""Ticks from which on those without a timer are swept."""


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
    """A timer in the wheel."""

    __slots__ = ("_bucket", "callback")

    def __init__(self, bucket: "Bucket", callback: Callable[[], None]) -> None:
        self._bucket = bucket
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Never call the callback."""
        self.callback = None
        self._bucket.pop(self, None)


Bucket = dict[WheelTimer, None]


class TimerWheel:
    """`Timer` on an event loop; see the module."""

    __slots__ = (
        "_buckets",
        "_clock",
        "_handle",
        "_loop",
        "_next_tick",
        "_now_s",
        "_sweep_at",
        "_ticks",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._now_s = clock.monotonic_s
        self._ticks: list[int] = []
        self._buckets: dict[int, Bucket] = {}
        self._sweep_at = _SWEEP_FROM
        self._handle: asyncio.TimerHandle | None = None
        self._next_tick = 0

    def call_later_ms(self, delay_ms: float, callback: Callable[[], None]) -> WheelTimer:
        """Run `callback` once, `delay_ms` from now, rounded up to the end of a tick."""
        now_ms = self._now_s() * 1000.0
        tick = int((now_ms + max(delay_ms, 0.0)) / TICK_MS) + 1
        bucket = self._buckets.get(tick)
        if bucket is None:
            bucket = self._new_bucket(tick, now_ms)
        timer = WheelTimer(bucket, callback)
        bucket[timer] = None
        return timer

    def _new_bucket(self, tick: int, now_ms: float) -> Bucket:
        if len(self._buckets) >= self._sweep_at:
            self._buckets = {tick: timers for tick, timers in self._buckets.items() if timers}
            self._ticks = list(self._buckets)
            heapq.heapify(self._ticks)
            self._sweep_at = max(_SWEEP_FROM, 2 * len(self._ticks))
        bucket: Bucket = {}
        self._buckets[tick] = bucket
        heapq.heappush(self._ticks, tick)
        if self._handle is None or tick < self._next_tick:
            self._arm(tick, now_ms)
        return bucket

    @property
    def armed(self) -> int:
        """Timers that have neither fired nor been cancelled."""
        return sum(map(len, self._buckets.values()))

    def _arm(self, tick: int, now_ms: float) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._next_tick = tick
        delay_ms = math.ceil(max(tick * TICK_MS - now_ms, 0.0)) + LOOP_EARLY_MS
        self._handle = self._loop.call_later(delay_ms / 1000, self._fire_due)

    def _fire_due(self) -> None:
        self._handle = None
        now_ms = self._clock.monotonic_ms()
        slice_end_ms = now_ms + SLICE_MS
        while (ticks := self._ticks) and ticks[0] * TICK_MS <= now_ms:
            tick = heapq.heappop(ticks)
            bucket = self._buckets.pop(tick)
            for timer in list(bucket):
                callback, timer.callback = timer.callback, None
                if callback is None:
                    continue
                del bucket[timer]
                try:
                    callback()
                except Exception:
                    LOGGER.exception("timer callback failed")
                if self._clock.monotonic_ms() >= slice_end_ms:
                    if bucket:
                        # What is armed from now on is due after this tick, which has passed.
                        self._buckets[tick] = bucket
                        heapq.heappush(self._ticks, tick)
                    self._arm_first()
                    return
        self._arm_first()

    def _arm_first(self) -> None:
        """Arm the loop's timer for the first tick, unless a callback has armed an earlier one.

        Ticks without a timer are dropped on the way: each long poll that was answered in time has
        left one.
        """
        ticks, buckets = self._ticks, self._buckets
        while ticks and not buckets[ticks[0]]:
            del buckets[heapq.heappop(ticks)]
        if ticks and (self._handle is None or ticks[0] < self._next_tick):
            self._arm(ticks[0], self._clock.monotonic_ms())

    def close(self) -> None:
        """Drop every timer."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._ticks.clear()
        self._buckets.clear()
