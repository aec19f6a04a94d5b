"""Clock: the source of time, passed in as a dependency.

Only this module, and `quick_clock` for it, asks the operating system for the time: everything else
takes a `Clock`, so that tests and simulations can move it by hand.
"""

import os
import time
from collections.abc import Callable
from typing import Protocol

from native.subclasses import mypyc_attr
from storage.environment.quick_clock import monotonic_s, now_ms


class Clock(Protocol):
    """Wall time for what is stored, monotonic time for what is measured."""

    def now_ms(self) -> int:
        """Milliseconds since 1970 UTC; may jump, so never subtract two of them for a duration."""
        ...

    def monotonic_ms(self) -> float:
        """Milliseconds from an arbitrary start; never goes back, and goes on while all sleeps."""
        ...

    def monotonic_s(self) -> float:
        """The same in seconds: where a clock is read at every request, at the least cost."""
        ...


def cpu_wait_ms() -> float:
    """How long the calling thread has waited for a processor since it began, as Linux counts it.

    0 where the system does not report it. Costs some 10 us: three calls of the system, where a file
    object takes nine. The loop asks ten times a second.
    """
    try:
        fd = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0.0
    try:
        return int(os.read(fd, 128).split()[1]) / 1e6
    except (OSError, IndexError, ValueError):
        return 0.0
    finally:
        os.close(fd)


def sleep_ms(duration_ms: float) -> None:
    """Block the calling thread; never the loop's."""
    time.sleep(duration_ms / 1000.0)


@mypyc_attr(allow_interpreted_subclasses=True)
class SystemClock:
    """The machine's clocks."""

    __slots__ = ("monotonic_s", "now_ms")

    def __init__(self) -> None:
        # The calls themselves: one frame less for each look at a clock.
        self.monotonic_s: Callable[[], float] = monotonic_s
        self.now_ms: Callable[[], int] = now_ms

    def monotonic_ms(self) -> float:
        """Milliseconds since some moment before the process started."""
        return self.monotonic_s() * 1000.0
