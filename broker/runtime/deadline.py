"""A time-out that is pushed back far more often than it is reached."""

from collections.abc import Callable
from typing import Final

from broker.runtime.timer import Timer, TimerHandle
from storage.environment.clock import Clock

_EARLY_MS: Final = 0.5
"""A timer may fire this much before its time without being armed again."""


class Deadline:
    """A time-out: calls back once, `delay_ms` after it was last set.

    Moving it later, which every heartbeat does, only stores a number: the timer that is already
    running reads it when it fires and runs on. Moving it earlier replaces the timer.
    """

    __slots__ = ("_armed_until_ms", "_clock", "_due_ms", "_expired", "_handle", "_timer")

    def __init__(self, timer: Timer, clock: Clock, expired: Callable[[], None]) -> None:
        self._timer = timer
        self._clock = clock
        self._expired = expired
        self._handle: TimerHandle | None = None
        self._due_ms = 0.0
        self._armed_until_ms = 0.0

    def set(self, delay_ms: float) -> None:
        """Expire `delay_ms` from now, whatever was set before."""
        due_ms = self._due_ms = self._clock.monotonic_ms() + delay_ms
        if self._handle is not None:
            if due_ms >= self._armed_until_ms:
                return
            self._handle.cancel()
        self._arm(delay_ms)

    def move_to(self, due_ms: float) -> None:
        """Expire at a monotonic time; `set` for who has read the clock already."""
        self._due_ms = due_ms
        if self._handle is not None:
            if due_ms >= self._armed_until_ms:
                return
            self._handle.cancel()
        self._arm(due_ms - self._clock.monotonic_ms())

    def cancel(self) -> None:
        """Cancel the callback, until it is set again."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def expire_if_due(self) -> None:
        """Call back now if the time is over and only the timer is late."""
        if self._handle is not None and self._clock.monotonic_ms() >= self._due_ms:
            self._handle.cancel()
            self._fire()

    @property
    def pending(self) -> bool:
        """Whether the callback is still due."""
        return self._handle is not None

    def _arm(self, delay_ms: float) -> None:
        self._armed_until_ms = self._due_ms
        self._handle = self._timer.call_later_ms(delay_ms, self._fire)

    def _fire(self) -> None:
        self._handle = None
        left_ms = self._due_ms - self._clock.monotonic_ms()
        if left_ms > _EARLY_MS:
            self._arm(left_ms)
        else:
            self._expired()
