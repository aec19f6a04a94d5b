"""A reset is planned, shown, and committed as it was shown."""

import pytest

from cli.connection import CommandError
from cli.kafka_library import TopicPartition
from cli.offset_resets import (
    OffsetChange,
    Reset,
    ResetRule,
    apply_changes,
    check_inactive,
    plan_changes,
    selected_partitions,
)
from cli.options import TopicPartitions
from tests.fakes.kafka_clients import FakeCluster, FakeGroup

T0, T1, GONE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("gone", 0)


@pytest.fixture
def cluster() -> FakeCluster:
    """Partition 0 has the offsets 2 to 9."""
    made = FakeCluster()
    made.add_topic("t", 10, 0).partitions[0].start = 2
    made.groups["g"] = FakeGroup(offsets={T0: 6})
    return made


@pytest.mark.parametrize(
    ("rule", "new", "remark"),
    [
        (ResetRule(Reset.EARLIEST), 2, ""),
        (ResetRule(Reset.LATEST), 10, ""),
        (ResetRule(Reset.OFFSET, 10), 10, ""),
        (ResetRule(Reset.OFFSET, 11), 10, "11 is beyond the end"),
        (ResetRule(Reset.OFFSET, 1), 2, "1 is before the start"),
        (ResetRule(Reset.SHIFT, 4), 10, ""),
        (ResetRule(Reset.SHIFT, 5), 10, "11 is beyond the end"),
        (ResetRule(Reset.SHIFT, -7), 2, "-1 is before the start"),
        (ResetRule(Reset.TIME, 4500), 5, ""),
        (ResetRule(Reset.TIME, 99_000), 10, ""),
    ],
)
def test_new_offsets_lie_inside_the_partition(
    cluster: FakeCluster, rule: ResetRule, new: int, remark: str
) -> None:
    """What lies outside becomes the nearest inside, and the plan says so."""
    changes = plan_changes(cluster.admin(), "g", [T0], rule)
    assert changes == [OffsetChange("t", 0, 6, new, remark)]


def test_only_a_committed_offset_can_be_shifted(cluster: FakeCluster) -> None:
    """From nothing there is no distance."""
    with pytest.raises(CommandError, match="t-1: there is no committed offset"):
        plan_changes(cluster.admin(), "g", [T0, T1], ResetRule(Reset.SHIFT, 1))


def test_an_empty_partition_has_one_offset(cluster: FakeCluster) -> None:
    """Its end, which is its start; without an old one."""
    for rule in (ResetRule(Reset.EARLIEST), ResetRule(Reset.TIME, 0)):
        assert plan_changes(cluster.admin(), "g", [T1], rule) == [OffsetChange("t", 1, None, 0, "")]


def test_selection_of_topics_and_partitions(cluster: FakeCluster) -> None:
    """A topic is all its partitions; twice the same is once."""
    admin = cluster.admin()
    assert selected_partitions(admin, "g", [TopicPartitions("t", None)]) == [T0, T1]
    twice = [TopicPartitions("t", (1,)), TopicPartitions("t", (1,))]
    assert selected_partitions(admin, "g", twice) == [T1]
    with pytest.raises(CommandError, match="partition t-2 does not exist"):
        selected_partitions(admin, "g", [TopicPartitions("t", (0, 2))])
    with pytest.raises(CommandError, match="topic 'gone' does not exist"):
        selected_partitions(admin, "g", [TopicPartitions("gone", None)])


def test_selection_of_whatever_is_committed(cluster: FakeCluster) -> None:
    """But not of a topic that is gone."""
    cluster.groups["g"].offsets[GONE] = 3
    admin = cluster.admin()
    assert selected_partitions(admin, "g", None) == [T0]
    for group in ("g", "unknown"):
        cluster.groups["g"].offsets.pop(T0, None)
        with pytest.raises(CommandError, match="has no offsets"):
            selected_partitions(admin, group, None)


def test_groups_without_members_are_inactive(cluster: FakeCluster) -> None:
    """One nobody has heard of too: it may get its offsets before it starts."""
    admin = cluster.admin()
    check_inactive(admin, "g")
    check_inactive(admin, "unknown")
    for state in ("Stable", "PreparingRebalance", "CompletingRebalance"):
        cluster.groups["g"].state = state
        with pytest.raises(CommandError, match=f"'g' is {state}"):
            check_inactive(admin, "g")


def test_changes_are_committed_as_shown(cluster: FakeCluster) -> None:
    """A member that joins in between makes the coordinator refuse."""
    changes = [OffsetChange("t", 0, 6, 3, ""), OffsetChange("t", 1, None, 0, "")]
    apply_changes(cluster.admin(), "g", changes)
    assert cluster.groups["g"].offsets == {T0: 3, T1: 0}
    cluster.groups["g"].members = [{}]
    with pytest.raises(CommandError, match="UNKNOWN_MEMBER_ID"):
        apply_changes(cluster.admin(), "g", changes)
