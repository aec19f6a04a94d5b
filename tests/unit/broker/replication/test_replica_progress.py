"""A follower's progress: when it counts as caught up."""

import pytest

from broker.replication.replica_progress import UNKNOWN_OFFSET, ReplicaProgress

LAG_MS = 30_000.0


@pytest.fixture
def follower() -> ReplicaProgress:
    return ReplicaProgress(2, is_counted=False, caught_up_ms=float("-inf"))


def test_nothing_is_known_before_the_first_fetch(follower: ReplicaProgress) -> None:
    assert follower.end_offset == UNKNOWN_OFFSET
    assert not follower.is_caught_up(0, 0.0, LAG_MS)


def test_a_fetch_at_the_end_is_caught_up_now(follower: ReplicaProgress) -> None:
    follower.fetched(10, 0, 7, 10, 1_000.0)
    assert follower.caught_up_ms == 1_000.0
    assert (follower.end_offset, follower.broker_epoch, follower.fetched_ms) == (10, 7, 1_000.0)


def test_a_fetch_behind_is_caught_up_as_of_the_one_before(follower: ReplicaProgress) -> None:
    """It has what the leader had then; how much came since does not matter."""
    follower.fetched(0, 0, 7, 10, 1_000.0)
    assert follower.caught_up_ms == float("-inf")
    follower.fetched(10, 0, 7, 50, 2_000.0)
    assert follower.caught_up_ms == 1_000.0
    follower.fetched(49, 0, 7, 90, 3_000.0)
    assert follower.caught_up_ms == 1_000.0


def test_at_the_end_it_is_caught_up_however_long_ago_it_fetched(follower: ReplicaProgress) -> None:
    """An idle partition shrinks nobody."""
    follower.fetched(10, 0, 7, 10, 1_000.0)
    assert follower.is_caught_up(10, 1e9, LAG_MS)
    assert follower.is_caught_up(11, 1_000.0 + LAG_MS, LAG_MS)
    assert not follower.is_caught_up(11, 1_001.0 + LAG_MS, LAG_MS)
