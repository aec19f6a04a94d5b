"""Counters of calls to an object store."""

import asyncio

import pytest

from tests.fakes.clock import ManualClock
from tiered.errors import (
    ObjectNotFoundError,
    RemoteStorageError,
    StoreDeniedError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from tiered.object_store.statistics import (
    CALLS,
    ERROR_KINDS,
    LATENCY_BOUNDS_MS,
    StoreStatistics,
    error_kind,
)


def test_a_call_that_ends_well_counts_time_and_bytes() -> None:
    clock = ManualClock()
    statistics = StoreStatistics(clock)
    with statistics.measure("get_range", 100):
        clock.advance(1500)
    counters = statistics.by_call["get_range"]
    assert (counters.calls, counters.seconds, counters.bytes) == (1, 1.5, 100)
    assert sum(counters.errors.values()) == 0
    assert counters.latency_counts[LATENCY_BOUNDS_MS.index(2_000)] == 1


def test_a_call_slower_than_all_bounds_is_in_the_last_bucket() -> None:
    clock = ManualClock()
    statistics = StoreStatistics(clock)
    with statistics.measure("put"):
        clock.advance(LATENCY_BOUNDS_MS[-1])
    with statistics.measure("put"):
        clock.advance(LATENCY_BOUNDS_MS[-1] + 1)
    assert statistics.by_call["put"].latency_counts[-2:] == [1, 1]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ObjectNotFoundError("k"), "not_found"),
        (StoreTimeoutError("t"), "timeout"),
        (StoreUnavailableError("u"), "unavailable"),
        (StoreDeniedError("d"), "denied"),
        (asyncio.CancelledError(), "cancelled"),
        (RemoteStorageError("r"), "other"),
        (ValueError("v"), "other"),
    ],
)
def test_a_failed_call_is_counted_by_kind_and_moves_no_bytes(
    error: BaseException, kind: str
) -> None:
    statistics = StoreStatistics(ManualClock())
    with pytest.raises(type(error)), statistics.measure("put", 7):
        raise error
    counters = statistics.by_call["put"]
    assert error_kind(error) == kind
    assert (counters.calls, counters.bytes, counters.errors[kind]) == (1, 0, 1)


def test_the_copy_is_plain_and_has_every_call_and_kind() -> None:
    statistics = StoreStatistics(ManualClock())
    copied = statistics.as_dict()
    assert tuple(copied["calls"]) == CALLS
    assert tuple(copied["calls"]["list"]["errors"]) == ERROR_KINDS
    copied["calls"]["list"]["errors"]["other"] = 9
    assert statistics.by_call["list"].errors["other"] == 0


def test_calls_done_together_share_their_time() -> None:
    statistics = StoreStatistics(ManualClock())
    statistics.count_together("get_range", [100, 50], 3000)
    statistics.count_together("get_range", [], 1)
    counters = statistics.by_call["get_range"]
    assert (counters.calls, counters.seconds, counters.bytes) == (2, 3.0, 150)
    assert counters.latency_counts[LATENCY_BOUNDS_MS.index(2_000)] == 2
