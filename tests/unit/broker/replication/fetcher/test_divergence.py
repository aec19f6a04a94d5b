"""Two logs agree after a few cuts, and nothing that they share is cut (KIP-101, KIP-279)."""

from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from broker.replication.fetcher.divergence import truncation_offset
from storage.checkpoints.leader_epochs import LeaderEpochCache
from tests.fakes.filesystem import FakeFilesystem

Records = list[int]
"""A log: the epoch of each record, ascending. Equal epochs at an offset are equal records."""


class Replica(NamedTuple):
    records: Records

    @property
    def epochs(self) -> LeaderEpochCache:
        filesystem = FakeFilesystem()
        filesystem.mkdir("/data")
        cache = LeaderEpochCache("/data/leader-epoch-checkpoint", filesystem)
        for offset, epoch in enumerate(self.records):
            cache.assign(epoch, offset)
        return cache

    def diverging(self, epoch: int, fetch_offset: int) -> tuple[int, int] | None:
        """As a leader answers a Fetch."""
        found, end = self.epochs.end_offset_for(epoch, len(self.records))
        return (found, end) if found < epoch or end < fetch_offset else None


@st.composite
def histories(draw: st.DrawFn) -> tuple[Records, Records]:
    """Two logs of one history: each epoch was written by one leader, on top of what it had."""
    logs: list[Records] = [[], [], []]
    for epoch in range(draw(st.integers(1, 6))):
        leader = draw(st.integers(0, 2))
        logs[leader] += [epoch] * draw(st.integers(0, 3))
        for follower in range(3):
            if follower == leader or not draw(st.booleans()):
                continue
            # It follows a part of the way, having been cut first.
            shared = common(logs[follower], logs[leader])
            behind = len(logs[leader]) - shared
            end = shared + draw(st.integers(0, behind))
            logs[follower] = logs[leader][:end]
    return logs[0], logs[1]


def common(one: Records, other: Records) -> int:
    """How many records they share: one epoch at one offset is one record."""
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


@given(logs=histories())
def test_a_follower_is_cut_to_what_it_shares_with_its_leader(
    logs: tuple[Records, Records],
) -> None:
    """In at most as many steps as there are epochs, each of which cuts something."""
    leader, follower = Replica(logs[0]), Replica(list(logs[1]))
    shared = common(*logs)
    for _ in range(10):
        if not follower.records:
            break
        epoch = follower.records[-1]
        if not leader.records or epoch > leader.records[-1]:
            # The leader's own epoch is later in truth: it knows no end of this one.
            leader_epochs = leader.epochs
            last = leader.records[-1] if leader.records else -1
            diverging: tuple[int, int] | None = (last, len(leader.records))
            assert leader_epochs.end_offset_for(epoch, len(leader.records)) == (-1, -1)
        else:
            diverging = leader.diverging(epoch, len(follower.records))
        if diverging is None:
            break
        offset = truncation_offset(follower.epochs, len(follower.records), diverging)
        assert shared <= offset < len(follower.records)
        del follower.records[offset:]
    assert len(follower.records) == shared


def test_follower_without_the_leaders_epoch_is_cut_at_its_own() -> None:
    """KIP-279: two changes of leaders in a row, of which each replica saw one."""
    follower = Replica([0, 0, 2, 2])
    assert truncation_offset(follower.epochs, 4, (1, 3)) == 2


def test_follower_that_knows_no_epochs_goes_by_the_leaders_end() -> None:
    assert truncation_offset(Replica([]).epochs, 0, (3, 7)) == 0
    filesystem = FakeFilesystem()
    filesystem.mkdir("/data")
    empty = LeaderEpochCache("/data/leader-epoch-checkpoint", filesystem)
    assert truncation_offset(empty, 9, (3, 7)) == 7
    assert truncation_offset(empty, 9, (-1, -1)) == 0
