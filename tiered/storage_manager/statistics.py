"""Counters of the tier's calls and their outcomes; plain values that an owner reads.

    {"operations": {<method of Tier>: {
         "requests":        ended, well or not
         "seconds":         from asking to the end
         "errors":          {<kind>: how many}, all kinds of ERROR_KINDS
         "bytes_up":        payload of calls that ended well, as it went over the network
         "bytes_down":      likewise
     }},
     "second_reads":        chunks whose sum was wrong and right when they were fetched again
     "corrupt_reads":       and that were wrong again
     "failed_cleanups":     failed copies that may have left objects
     "copying":             {<id of a segment, 32 hex>: bytes moved so far} of copies under way
     "copies", "fetches":   {"maximum", "lent", "waiting", "idle_bytes"} of workspaces
     "manifests":           {"entries", "bytes", "maximum_bytes", "hits", "misses"} in memory
     "store":               see `object_store.statistics`; {} if the store has none}

Its size is fixed, but for the copies under way, of which there are few. Written on the loop only.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

from storage.environment.clock import Clock
from storage.errors import DiskError
from tiered.errors import CorruptRemoteDataError, CorruptSegmentError
from tiered.object_store.moved_bytes import MovedBytes, counting
from tiered.object_store.statistics import ERROR_KINDS as STORE_ERROR_KINDS
from tiered.object_store.statistics import error_kind as store_error_kind

OPERATIONS: Final = (
    "copy_segment",
    "fetch_indexes",
    "fetch_chunk",
    "refer_to_chunks",
    "fetch_side_file",
    "delete_segment",
    "is_complete",
    "verify_segment",
    "list_objects",
    "delete_objects",
    "list_uploads",
    "abort_upload",
    "put_object",
    "get_object",
)

ERROR_KINDS: Final = (*STORE_ERROR_KINDS, "corrupt_remote", "corrupt_segment", "disk")


def error_kind(error: BaseException) -> str:
    """Under which of `ERROR_KINDS` an error is counted."""
    if isinstance(error, CorruptRemoteDataError):
        return "corrupt_remote"
    if isinstance(error, CorruptSegmentError):
        return "corrupt_segment"
    if isinstance(error, DiskError):
        return "disk"
    return store_error_kind(error)


class OperationStatistics:
    """Of one method of `Tier`; see the module."""

    __slots__ = ("bytes_down", "bytes_up", "errors", "requests", "seconds")

    def __init__(self) -> None:
        self.requests = 0
        self.seconds = 0.0
        self.errors = dict.fromkeys(ERROR_KINDS, 0)
        self.bytes_up = 0
        self.bytes_down = 0

    def as_dict(self) -> dict[str, Any]:
        """A copy of plain values."""
        return {
            "requests": self.requests,
            "seconds": self.seconds,
            "errors": dict(self.errors),
            "bytes_up": self.bytes_up,
            "bytes_down": self.bytes_down,
        }


class TierStatistics:
    """See the module."""

    __slots__ = (
        "_clock",
        "_copying",
        "corrupt_reads",
        "failed_cleanups",
        "operations",
        "second_reads",
    )

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._copying: dict[UUID, MovedBytes] = {}
        self.operations = {name: OperationStatistics() for name in OPERATIONS}
        self.second_reads = 0
        self.corrupt_reads = 0
        self.failed_cleanups = 0

    @contextmanager
    def measure(self, operation: str) -> Iterator[OperationStatistics]:
        """Count one call, its time, and how it failed; the caller adds the bytes."""
        counters = self.operations[operation]
        begin_ms = self._clock.monotonic_ms()
        try:
            yield counters
        except BaseException as error:
            counters.errors[error_kind(error)] += 1
            raise
        finally:
            counters.requests += 1
            counters.seconds += (self._clock.monotonic_ms() - begin_ms) / 1000

    @contextmanager
    def copying(self, segment: UUID) -> Iterator[None]:
        """Report the progress of the copy in this block."""
        with counting() as moved:
            self._copying[segment] = moved
            try:
                yield
            finally:
                del self._copying[segment]

    def as_dict(self) -> dict[str, Any]:
        """A copy of plain values."""
        return {
            "copying": {segment.hex: moved.count for segment, moved in self._copying.items()},
            "operations": {name: each.as_dict() for name, each in self.operations.items()},
            "second_reads": self.second_reads,
            "corrupt_reads": self.corrupt_reads,
            "failed_cleanups": self.failed_cleanups,
        }
