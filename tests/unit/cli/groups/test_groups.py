"""`varve groups` on a fake cluster."""

from typing import Any

import pytest

from cli.admin.kafka_library import TopicPartition
from cli.groups import groups
from tests.fakes.kafka.library_clients import FakeCluster, FakeGroup
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


def test_list_shows_groups_of_a_type(cluster: FakeCluster, shell: Shell) -> None:
    cluster.groups["new"] = FakeGroup("Reconciling", type="consumer")
    (only,) = shell("list", "--type", "Consumer", "--json").document
    assert (only["group"], only["type"], only["state"]) == ("new", "consumer", "Reconciling")
    assert shell("list", "--type", "stream").status == 2


def consumer_member(name: str, member_type: int, **target: list[int]) -> dict[str, Any]:
    """A member as ConsumerGroupDescribe has it; it owns the first partition of its target."""
    return {
        "member_id": f"{name}-id",
        "instance_id": None,
        "rack_id": None,
        "member_epoch": 5,
        "client_id": name,
        "client_host": "/10.0.0.1",
        "assignment": {
            "topic_partitions": [
                {"topic_name": topic, "partitions": numbers[:1]}
                for topic, numbers in target.items()
            ]
        },
        "target_assignment": {
            "topic_partitions": [
                {"topic_name": topic, "partitions": numbers} for topic, numbers in target.items()
            ]
        },
        "member_type": member_type,
    }


def test_describe_knows_groups_of_the_new_protocol(cluster: FakeCluster, shell: Shell) -> None:
    """And with --verbose how far each member has come."""
    cluster.groups["new"] = FakeGroup(
        "Reconciling",
        [consumer_member("a", 1, t=[0, 1]), consumer_member("b", 0)],
        {TopicPartition("t", 0): 6},
        type="consumer",
    )
    blocks = shell("describe", "new", "--verbose").out.split("\n\n")
    assert blocks[0] == (
        "group new   state Reconciling   protocol consumer/uniform   coordinator 1 (h:9)   "
        "type consumer   members 2   epoch 7   target assignment epoch 6"
    )
    assert [line.split() for line in blocks[1].splitlines()[1:]] == [
        ["a", "10.0.0.1", "a-id", "-", "t:0", "consumer", "5", "t:0-1"],
        ["b", "10.0.0.1", "b-id", "-", "-", "classic", "5", "-"],
    ]
    assert blocks[2].splitlines()[1].split() == ["t", "0", "6", "10", "4", "a"]
    document = shell("describe", "new", "--json").document
    assert (document["type"], document["epoch"], document["target_epoch"]) == ("consumer", 7, 6)
    assert document["members"][0]["target"] == {"t": [0, 1]}


def test_describe_shows_the_parts_asked_for(cluster: FakeCluster, shell: Shell) -> None:
    cluster.groups["g"].members = [member("c", t=[0])]
    assert shell("describe", "g", "--state").out.count("\n") == 1
    assert "TOPIC" not in shell("describe", "g", "--members").out
    assert "MEMBER" not in shell("describe", "g", "--offsets").out


def test_describe_of_several_groups(cluster: FakeCluster, shell: Shell) -> None:
    """What is missing does not hide the rest."""
    cluster.groups["h"] = FakeGroup("Stable", [member("c")])
    done = shell("describe", "g", "nope", "h", "--state")
    assert [line[:7] for line in done.out.splitlines() if line] == ["group g", "group h"]
    assert (done.status, done.err) == (1, "varve: group 'nope' does not exist\n")
    everything = shell("describe", "--all-groups", "--json").document
    assert [one["group"] for one in everything] == ["g", "h"]
    for words in ((), ("g", "--all-groups")):
        assert shell("describe", *words).status == 2


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


def test_members_can_be_removed(cluster: FakeCluster, shell: Shell) -> None:
    """By id, by instance, or all: then static ones by their instance."""
    static = member("s") | {"group_instance_id": "i"}
    cluster.groups["g"].members = [member("a"), member("b"), static]
    assert shell("remove-members", "g", "--member", "a-id").out == "removed member a-id\n"
    missing = shell("remove-members", "g", "--member", "a-id", "--instance", "i")
    assert missing.status == 2
    missing = shell("remove-members", "g", "--instance", "x")
    assert (missing.status, missing.err) == (1, "varve: group 'g' has no member 'x'\n")
    done = shell("remove-members", "g", "--all", "--reason", "stuck", "--json")
    assert sorted(done.document["removed"]) == ["b-id", "i"]
    assert cluster.groups["g"].members == []
    assert shell("remove-members", "g", "--all").out == "no members\n"
