"""A reset is planned, shown, and committed as it was shown."""

from pathlib import Path

import pytest

from cli.admin.kafka_library import TopicPartition
from cli.connection import CommandError
from cli.groups.offset_resets import (
    OffsetChange,
    Reset,
    ResetRule,
    apply_changes,
    plan_changes,
    planned_partitions,
    read_plan,
    selected_partitions,
)
from cli.options import TopicPartitions
from tests.fakes.kafka.library_clients import FakeCluster, FakeGroup

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


def test_a_plan_has_the_lines_of_kafkas_tool(tmp_path: Path) -> None:
    """The group's name stands first where there are several, and may where there is one."""
    file = tmp_path / "plan.csv"
    file.write_text("t,0,3\n\nt,1,4\n")
    assert read_plan(str(file), ["g"]) == {"g": {T0: 3, T1: 4}}
    file.write_text("g,t,0,3\nh,t,1,4\n")
    assert read_plan(str(file), ["g"]) == {"g": {T0: 3}, "h": {T1: 4}}


@pytest.mark.parametrize(
    ("text", "groups", "problem"),
    [
        ("t,0,3\n", ["g", "h"], "line 1 is not .* each line needs its group"),
        ("g,t,0,3\ng,t,x,3\n", ["g"], "line 2 is not"),
        ("t,0,-1\n", ["g"], "line 1 is not"),
        ("t\n", ["g"], "line 1 is not"),
    ],
)
def test_mistaken_plans(tmp_path: Path, text: str, groups: list[str], problem: str) -> None:
    file = tmp_path / "plan.csv"
    file.write_text(text)
    with pytest.raises(CommandError, match=problem):
        read_plan(str(file), groups)


def test_a_plan_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="No such file"):
        read_plan(str(tmp_path / "none.csv"), ["g"])


def test_a_plan_names_partitions_that_are_there(cluster: FakeCluster) -> None:
    admin = cluster.admin()
    assert planned_partitions(admin, {T1: 2, T0: 1}) == [T0, T1]
    with pytest.raises(CommandError, match="partition gone-0 does not exist"):
        planned_partitions(admin, {GONE: 1})


def test_current_offsets_stay_and_missing_ones_become_the_end(cluster: FakeCluster) -> None:
    """Kafka's rule for --to-current."""
    cluster.groups["g"].offsets = {T0: 6}
    changes = plan_changes(cluster.admin(), "g", [T0, T1], ResetRule(Reset.CURRENT))
    end = cluster.partition(T1).end
    assert [(c.old_offset, c.new_offset) for c in changes] == [(6, 6), (None, end)]


def test_changes_are_committed_as_shown(cluster: FakeCluster) -> None:
    """A member that joins in between makes the coordinator refuse."""
    changes = [OffsetChange("t", 0, 6, 3, ""), OffsetChange("t", 1, None, 0, "")]
    apply_changes(cluster.admin(), "g", changes)
    assert cluster.groups["g"].offsets == {T0: 3, T1: 0}
    cluster.groups["g"].members = [{}]
    with pytest.raises(CommandError, match="UNKNOWN_MEMBER_ID"):
        apply_changes(cluster.admin(), "g", changes)
