"""Descriptions of groups are put together from several answers."""

import pytest

from cli.admin.kafka_library import TopicPartition
from cli.connection import CommandError
from cli.groups.group_descriptions import describe_group, end_offsets, led_partitions
from tests.fakes.kafka.library_clients import FakeCluster, FakeGroup
from tests.unit.cli.groups.test_groups import member

T0, T1, GONE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("gone", 0)


@pytest.fixture
def cluster() -> FakeCluster:
    made = FakeCluster()
    made.add_topic("t", 5, 5)
    return made


def test_offsets_of_gone_partitions_have_no_lag(cluster: FakeCluster) -> None:
    """One deleted topic or dead leader does not spoil the rest."""
    cluster.topics["t"].partitions[1].leader = -1
    cluster.groups["g"] = FakeGroup(offsets={T0: 2, T1: 2, GONE: 2})
    found = describe_group(cluster.admin(), "g").offsets
    assert [(o.topic, o.partition, o.end_offset, o.lag) for o in found] == [
        ("gone", 0, None, None),
        ("t", 0, 5, 3),
        ("t", 1, None, None),
    ]


def test_lag_is_never_below_zero(cluster: FakeCluster) -> None:
    """The answers are of different moments: a commit may be ahead of the end we saw."""
    cluster.groups["g"] = FakeGroup(offsets={T0: 7})
    assert [o.lag for o in describe_group(cluster.admin(), "g").offsets] == [0]


def test_members_are_sorted_and_may_wait_for_an_assignment(cluster: FakeCluster) -> None:
    """During a rebalance there are bytes, or none, where the assignment will be."""
    cluster.groups["g"] = FakeGroup("CompletingRebalance", [member("b", t=[1]), member("a")])
    waiting, holding = describe_group(cluster.admin(), "g").members
    assert (waiting.client_id, waiting.assignment_text) == ("a", "")
    assert (holding.client_id, holding.assignment_text) == ("b", "t:1")


def test_errors_of_the_coordinator_are_passed_on(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group may be there, and not for us."""
    cluster.groups["g"] = FakeGroup()
    admin = cluster.admin()
    answer = admin.describe_groups(["g"]) | {}
    answer["g"]["error"] = "not allowed"
    monkeypatch.setattr(admin, "describe_groups", lambda _: answer)
    with pytest.raises(CommandError, match="group 'g': not allowed"):
        describe_group(admin, "g")


def test_nothing_is_asked_about_no_topics(cluster: FakeCluster) -> None:
    """No names would mean all topics."""
    assert led_partitions(cluster.admin(), ()) == set()
    assert end_offsets(cluster.admin(), [GONE]) == {}
    assert led_partitions(cluster.admin(), ["t"]) == {T0, T1}
