"""`varve groups` on a fake cluster."""

from typing import Any

import pytest

from cli import groups
from cli.kafka_library import TopicPartition
from tests.fakes.kafka_clients import FakeCluster, FakeGroup
from tests.unit.cli.commands import Shell


def member(name: str, **assignment: list[int]) -> dict[str, Any]:
    """A member as DescribeGroups has it; without an assignment it is waiting for one."""
    held = [{"topic": topic, "partitions": numbers} for topic, numbers in assignment.items()]
    return {
        "member_id": f"{name}-id",
        "group_instance_id": None,
        "client_id": name,
        "client_host": "/10.0.0.1",
        "member_assignment": {"assigned_partitions": held} if held else b"",
    }


@pytest.fixture
def cluster() -> FakeCluster:
    """A topic with 10 and 4 records, and a stopped group."""
    made = FakeCluster()
    made.add_topic("t", 10, 4)
    made.groups["g"] = FakeGroup(offsets={TopicPartition("t", 0): 6})
    return made


@pytest.fixture
def shell(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(groups, cluster.admin, capsys)


def test_list_shows_the_groups_in_a_state(cluster: FakeCluster, shell: Shell) -> None:
    """Or all of them, by name; the state in any spelling."""
    cluster.groups["a"] = FakeGroup("Stable")
    assert shell("list").cells == [
        ["GROUP", "STATE", "TYPE", "PROTOCOL"],
        ["a", "Stable", "classic", "consumer"],
        ["g", "Empty", "classic", "consumer"],
    ]
    (only,) = shell("list", "--state", "stable", "--json").document
    assert only["group"] == "a"
    assert shell("list", "--state", "dead").out == "no groups\n"
    assert shell("list", "--state", "asleep").status == 2


def test_describe_shows_members_and_lag(cluster: FakeCluster, shell: Shell) -> None:
    """What is assigned is shown also before the first commit."""
    cluster.groups["g"].state = "Stable"
    cluster.groups["g"].members = [member("c", t=[1, 0])]
    blocks = shell("describe", "g").out.split("\n\n")
    assert blocks[0] == "group g   state Stable   protocol consumer/range   coordinator 1 (h:9)"
    assert blocks[1].splitlines()[1].split() == ["c", "10.0.0.1", "c-id", "-", "t:0-1"]
    assert [line.split() for line in blocks[2].splitlines()] == [
        ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "CLIENT"],
        ["t", "0", "6", "10", "4", "c"],
        ["t", "1", "-", "4", "-", "c"],
    ]


def test_describe_of_a_stopped_group(cluster: FakeCluster, shell: Shell) -> None:
    """Its offsets stay; without any, that is said."""
    shown = shell("describe", "g").out
    assert "no members" in shown
    assert shown.splitlines()[-1].split() == ["t", "0", "6", "10", "4", "-"]
    cluster.groups["g"].offsets.clear()
    assert shell("describe", "g").out.endswith("\n\nno offsets\n")
    assert shell("describe", "g", "--json").document["offsets"] == []


def test_describe_refuses_an_unknown_group(shell: Shell) -> None:
    """Although the protocol describes it, as dead."""
    assert shell("describe", "nope") == (1, "", "varve: group 'nope' does not exist\n")


def test_delete_does_what_it_can(cluster: FakeCluster, shell: Shell) -> None:
    """A running group stays."""
    cluster.groups["busy"] = FakeGroup("Stable", [member("c")])
    done = shell("delete", "busy", "g", "nope")
    assert (done.status, done.out) == (1, "deleted group g\n")
    assert done.err.splitlines() == [
        "varve: group 'busy' has active members: stop its consumers first",
        "varve: group 'nope' does not exist",
    ]
    assert list(cluster.groups) == ["busy"]
    cluster.groups["g"] = FakeGroup()
    done = shell("delete", "g", "--json")
    assert (done.status, done.document) == (0, {"deleted": ["g"]})


def test_delete_offsets_takes_partitions_or_all_that_are_committed(
    cluster: FakeCluster, shell: Shell
) -> None:
    """Also of a topic that is gone."""
    offsets = cluster.groups["g"].offsets
    offsets |= {TopicPartition("t", 1): 2, TopicPartition("gone", 0): 3}
    assert shell("delete-offsets", "g", "--topic", "t:1").out == "deleted the offset of t-1\n"
    assert shell("delete-offsets", "g", "--topic", "gone").status == 0
    done = shell("delete-offsets", "g", "--topic", "t", "--json")
    assert done.document == {"deleted": [{"topic": "t", "partition": 0}]}
    assert offsets == {}
    none = shell("delete-offsets", "g", "--topic", "t")
    assert none == (1, "", "varve: group 'g' has no offsets of topic 't'\n")


def test_delete_offsets_of_a_running_group_is_refused(cluster: FakeCluster, shell: Shell) -> None:
    """As long as it reads the topic."""
    cluster.groups["g"].members = [member("c", t=[0])]
    refused = shell("delete-offsets", "g", "--topic", "t:0")
    assert (refused.status, refused.out) == (1, "")
    assert "t-0: the group's consumers read this topic" in refused.err
    assert cluster.groups["g"].offsets


def test_reset_is_a_dry_run_until_executed(cluster: FakeCluster, shell: Shell) -> None:
    """It shows the same either way."""
    words = ("reset-offsets", "g", "--topic", "t:0", "--to-earliest")
    dry = shell(*words)
    assert dry.out.splitlines()[1].split() == ["t", "0", "6", "0"]
    assert "--execute" in dry.out
    assert cluster.groups["g"].offsets == {TopicPartition("t", 0): 6}
    done = shell(*words, "--execute")
    assert done.out.splitlines()[:2] == dry.out.splitlines()[:2]
    assert done.out.endswith("reset 1 offset of group g\n")
    assert cluster.groups["g"].offsets == {TopicPartition("t", 0): 0}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (("--to-earliest",), [0, 0]),
        (("--to-latest",), [10, 4]),
        (("--to-offset", "3"), [3, 3]),
        (("--to-datetime", "1970-01-01T00:00:02"), [2, 2]),
        (("--by-duration", "PT1S"), [10, 4]),
    ],
)
def test_reset_goes_where_it_is_told(
    shell: Shell, rule: tuple[str, ...], expected: list[int]
) -> None:
    """Records carry the seconds after 1970 of their offset, so a second ago is behind them all."""
    done = shell("reset-offsets", "g", "--topic", "t", *rule, "--json").document
    assert [change["new_offset"] for change in done["offsets"]] == expected
    assert (done["group"], done["executed"]) == ("g", False)


def test_reset_of_all_topics_shifts_what_is_committed(cluster: FakeCluster, shell: Shell) -> None:
    """Backwards too; the numbers may begin with a minus."""
    done = shell("reset-offsets", "g", "--all-topics", "--shift-by", "-2", "--execute", "--json")
    (change,) = done.document["offsets"]
    assert (change["old_offset"], change["new_offset"]) == (6, 4)
    assert cluster.groups["g"].offsets == {TopicPartition("t", 0): 4}


def test_reset_refuses_a_running_group(cluster: FakeCluster, shell: Shell) -> None:
    """A dry run as well, as Kafka's tool."""
    cluster.groups["g"].state = "Stable"
    refused = shell("reset-offsets", "g", "--topic", "t", "--to-latest")
    assert (refused.status, refused.out) == (1, "")
    assert "'g' is Stable" in refused.err


@pytest.mark.parametrize(
    "words",
    [
        ("g", "--topic", "t"),
        ("g", "--to-latest"),
        ("g", "--topic", "t", "--all-topics", "--to-latest"),
        ("g", "--topic", "t", "--to-latest", "--to-earliest"),
        ("g", "--topic", "t", "--to-offset", "-1"),
        ("g", "--topic", "t", "--by-duration", "3h"),
        ("g", "--topic", "t", "--to-datetime", "noon"),
        ("g", "--topic", "t:x", "--to-latest"),
    ],
)
def test_mistaken_resets_are_refused(
    cluster: FakeCluster, shell: Shell, words: tuple[str, ...]
) -> None:
    """One rule and one choice of partitions; before a client is opened."""
    assert shell("reset-offsets", *words).status == 2
    assert cluster.opened == []
