"""Counters of an object store's calls and their outcomes; plain values that an owner reads.

A `StoreStatistics` has one `CallStatistics` per call of the interface, so its size is fixed. It is
written by one thread, the loop that makes the calls; reading it elsewhere may be one call behind.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from storage.environment.clock import Clock
from tiered.errors import (
    ObjectNotFoundError,
    StoreDeniedError,
    StoreTimeoutError,
    StoreUnavailableError,
)

CALLS: Final = (
    "put",
    "put_stream",
    "get",
    "get_range",
    "head",
    "delete",
    "list",
    "list_uploads",
    "abort_upload",
)

ERROR_KINDS: Final = ("not_found", "timeout", "unavailable", "denied", "cancelled", "other")

LATENCY_BOUNDS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 60_000)
"""Upper bounds of the histogram's buckets; one more takes what is slower."""


def error_kind(error: BaseException) -> str:
    """Under which of `ERROR_KINDS` an error is counted."""
    if isinstance(error, ObjectNotFoundError):
        return "not_found"
    if isinstance(error, StoreTimeoutError):
        return "timeout"
    if isinstance(error, StoreUnavailableError):
        return "unavailable"
    if isinstance(error, StoreDeniedError):
        return "denied"
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    return "other"


class CallStatistics:
    """Of one kind of call.

    Attributes:
        calls: Ended, well or not.
        seconds: From asking to the end, retries included.
        bytes: Payload that was moved by calls that ended well.
        retries: Further attempts after a failed one.
        errors: By kind, all of `ERROR_KINDS`.
        latency_counts: Per bucket of `LATENCY_BOUNDS_MS`, and one for the rest.
    """

    __slots__ = ("bytes", "calls", "errors", "latency_counts", "retries", "seconds")

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = 0.0
        self.bytes = 0
        self.retries = 0
        self.errors = dict.fromkeys(ERROR_KINDS, 0)
        self.latency_counts = [0] * (len(LATENCY_BOUNDS_MS) + 1)

    def ended(self, duration_ms: float) -> None:
        """Count a call that has ended."""
        self.calls += 1
        self.seconds += duration_ms / 1000
        bucket = 0
        for bound in LATENCY_BOUNDS_MS:
            if duration_ms <= bound:
                break
            bucket += 1
        self.latency_counts[bucket] += 1

    def as_dict(self) -> dict[str, Any]:
        """A copy of plain values."""
        return {
            "calls": self.calls,
            "seconds": self.seconds,
            "bytes": self.bytes,
            "retries": self.retries,
            "errors": dict(self.errors),
            "latency_counts": list(self.latency_counts),
        }


class StoreStatistics:
    """Of one store; see the module.

    Attributes:
        by_call: Name of the interface's method -> its counters.
        fallbacks: Ranged reads whose first answer was no plain 206, done again by the careful path.
        connections_opened: By the ranged reader.
    """

    __slots__ = ("_clock", "by_call", "connections_opened", "fallbacks")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.by_call: Mapping[str, CallStatistics] = {name: CallStatistics() for name in CALLS}
        self.fallbacks = 0
        self.connections_opened = 0

    @contextmanager
    def measure(self, call: str, size: int = 0) -> Iterator[CallStatistics]:
        """Count one call, its time, and `size` bytes or how it failed."""
        counters = self.by_call[call]
        begin_ms = self._clock.monotonic_ms()
        try:
            yield counters
        except BaseException as error:
            counters.errors[error_kind(error)] += 1
            raise
        else:
            counters.bytes += size
        finally:
            counters.ended(self._clock.monotonic_ms() - begin_ms)

    def count_together(self, call: str, sizes: Sequence[int], duration_ms: float) -> None:
        """Count calls of so many bytes each that were done one after the other."""
        counters = self.by_call[call]
        for size in sizes:
            counters.bytes += size
            counters.ended(duration_ms / len(sizes))

    def as_dict(self) -> dict[str, Any]:
        """A copy of plain values, to be sent between processes."""
        return {
            "calls": {name: counters.as_dict() for name, counters in self.by_call.items()},
            "fallbacks": self.fallbacks,
            "connections_opened": self.connections_opened,
        }
