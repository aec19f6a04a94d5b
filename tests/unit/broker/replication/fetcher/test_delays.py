"""Delayed partitions come back in time and in order, by one timer."""

from broker.replication.fetcher.delays import Delays
from broker.replication.fetcher.followed_partition import FollowedPartition
from tests.fakes.timer import ManualTimer
from tests.unit.broker.replication.fetcher.fetcher_world import LEADER, FakeFollower


def test_each_comes_when_its_time_has_come() -> None:
    """Whatever the order in which they were added; close forgets the rest."""
    timer = ManualTimer()
    due: list[int] = []
    delays = Delays(
        timer,
        timer.clock,
        lambda found: due.extend(one.partition.topic_partition.partition for one in found),
    )
    for index, delay_ms in enumerate((50, 20, 20, 1000)):
        delays.add(FollowedPartition(FakeFollower(index), LEADER), delay_ms)
    assert timer.pending == 1
    timer.advance(19)
    assert due == []
    timer.advance(1)
    assert due == [1, 2]
    timer.advance(30)
    assert due == [1, 2, 0]
    assert len(delays) == 1
    delays.close()
    assert (len(delays), timer.pending) == (0, 0)
    timer.advance(5000)
    assert due == [1, 2, 0]
