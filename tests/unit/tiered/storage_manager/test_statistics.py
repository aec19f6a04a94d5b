import asyncio
import json

import pytest

from storage.errors import DiskError
from tests.fakes.clock import ManualClock
from tiered.errors import (
    CorruptRemoteDataError,
    CorruptSegmentError,
    ObjectNotFoundError,
    StoreTimeoutError,
)
from tiered.storage_manager.statistics import ERROR_KINDS, OPERATIONS, TierStatistics
from tiered.tier import Tier


def test_every_method_of_a_tier_is_counted() -> None:
    """A new one must not be forgotten."""
    methods = {name for name in vars(Tier) if not name.startswith("_")}
    assert methods - {"statistics", "close"} == set(OPERATIONS)


def test_time_and_bytes() -> None:
    """Of what has ended."""
    clock = ManualClock()
    statistics = TierStatistics(clock)
    with statistics.measure("fetch_chunk") as counters:
        clock.advance(250)
        counters.bytes_down += 10
    told = statistics.as_dict()["operations"]
    assert told["fetch_chunk"] == {
        "requests": 1,
        "seconds": 0.25,
        "errors": dict.fromkeys(ERROR_KINDS, 0),
        "bytes_up": 0,
        "bytes_down": 10,
    }
    assert told["copy_segment"]["requests"] == 0
    json.dumps(statistics.as_dict())


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (CorruptRemoteDataError("k", 0, "p"), "corrupt_remote"),
        (CorruptSegmentError("k", 0, "p", rebuildable=True), "corrupt_segment"),
        (DiskError("full", "p", 28), "disk"),
        (ObjectNotFoundError("k"), "not_found"),
        (StoreTimeoutError("t"), "timeout"),
        (asyncio.CancelledError(), "cancelled"),
        (RuntimeError(), "other"),
    ],
)
def test_errors_by_kind(error: BaseException, kind: str) -> None:
    """An alert on one must not be set off by another."""
    statistics = TierStatistics(ManualClock())
    with pytest.raises(type(error)), statistics.measure("copy_segment"):
        raise error
    errors = statistics.operations["copy_segment"].errors
    assert {name for name, count in errors.items() if count} == {kind}
    assert statistics.operations["copy_segment"].requests == 1
