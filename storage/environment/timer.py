"""Timer: delayed callbacks, the interface of the broker's timer wheel.

The remote log lies below the broker and may not import it; `broker.runtime.timer.TimerWheel` fits
this.
"""

from collections.abc import Callable
from typing import Protocol


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
