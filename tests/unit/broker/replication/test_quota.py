"""Quotas of replication: which replicas are throttled, and how long they wait."""

from broker.replication.quota import (
    WAIT_MAX_MS,
    ReplicationQuota,
    follower_replicas,
    leader_replicas,
)
from config.broker import BrokerConfig
from config.kinds import LONG_MAX
from config.topic import TopicConfig
from storage.types.topic_partition import TopicPartition
from tests.fakes.clock import ManualClock

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def config(**overrides: str) -> TopicConfig:
    return TopicConfig.resolve(
        BrokerConfig(), {key.replace("_", "."): text for key, text in overrides.items()}
    )


def quota_of(clock: ManualClock, rate: int, windows: int = 11) -> ReplicationQuota:
    quota = ReplicationQuota(clock, 1, leader_replicas, windows=windows)
    quota.set_rate(rate)
    return quota


def test_without_a_rate_nothing_is_limited() -> None:
    quota = ReplicationQuota(ManualClock(), 1, leader_replicas)
    assert (quota.is_limited, quota.rate) == (False, LONG_MAX)
    quota.set_rate(10)
    assert quota.is_limited
    quota.set_rate(LONG_MAX)
    assert not quota.is_limited


def test_replicas_of_this_broker_are_throttled_as_the_topic_says() -> None:
    """By partition:broker; each side has its own list."""
    quota = quota_of(ManualClock(), 10)
    both = config(
        leader_replication_throttled_replicas="0:1,1:2",
        follower_replication_throttled_replicas="1:1",
    )
    assert [quota.covers(one, both) for one in (T0, T1)] == [True, False]
    follower = ReplicationQuota(ManualClock(), 1, follower_replicas)
    assert [follower.covers(one, both) for one in (T0, T1)] == [False, True]
    assert not quota.covers(T0, config())
    # Changed.
    assert quota.covers(T1, config(leader_replication_throttled_replicas="*"))
    assert not quota.covers(T1, both)


def test_the_average_over_all_windows_is_limited() -> None:
    """In ten seconds no more than ten times the rate, but for the last answer."""
    clock = ManualClock()
    quota = quota_of(clock, 1000)
    sent = 0
    while clock.monotonic_ms() < 10_000:
        wait_ms = quota.wait_ms()
        if wait_ms:
            clock.advance(wait_ms)
        else:
            quota.record(300)
            sent += 300
            clock.advance(1)
    assert 9_000 <= sent <= 11_300
    assert quota.held_back > 0


def test_old_windows_are_forgotten() -> None:
    clock = ManualClock()
    quota = quota_of(clock, 100, windows=2)
    quota.record(1000)
    assert quota.wait_ms() == WAIT_MAX_MS
    assert quota.bytes_per_second == 1000.0
    clock.advance(2001)
    assert (quota.wait_ms(), quota.bytes_per_second) == (0.0, 0.0)


def test_a_rate_of_zero_holds_back_whatever_was_counted() -> None:
    quota = quota_of(ManualClock(), 0)
    quota.record(1)
    assert quota.wait_ms() == WAIT_MAX_MS
