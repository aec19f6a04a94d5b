"""The machine's clocks, each read by one call.

They are read several times for each request. So this module is there twice: here, and in C
(`native/quick_clock.c`), which a build puts in its place (`native.modules.IN_C`) and which takes no
argument apart to read them. Only `storage.environment.clock` asks it.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Final

monotonic_s: Final[Callable[[], float]] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    if hasattr(time, "CLOCK_BOOTTIME")
    else time.monotonic
)
"""Seconds since some moment before the process started.

The clock goes on while the machine sleeps, as other machines' clocks do.
"""


def now_ms() -> int:
    """Milliseconds since 1970 UTC."""
    return time.time_ns() // 1_000_000


__all__ = ["monotonic_s", "now_ms"]
