"""Share groups, described by `varve groups describe`."""

from typing import Any

import pytest

from cli.admin.kafka_library import TopicPartition
from cli.groups import groups
from tests.fakes.kafka.library_clients import FakeCluster, FakeGroup
from tests.unit.cli.commands import Shell


def sharer(name: str, *partitions: int) -> dict[str, Any]:
    """A member as ShareGroupDescribe has it."""
    return {
        "member_id": f"{name}-id",
        "member_epoch": 4,
        "client_id": name,
        "client_host": "/10.0.0.1",
        "assignment": {"topic_partitions": [{"topic_name": "t", "partitions": list(partitions)}]},
    }


@pytest.fixture
def cluster() -> FakeCluster:
    """Two members that work on the same partition."""
    made = FakeCluster()
    made.add_topic("t", 10, 4)
    made.groups["s"] = FakeGroup(
        "Stable",
        [sharer("b", 1, 0), sharer("a", 0)],
        type="share",
        starts={TopicPartition("t", 1): (-1, -1), TopicPartition("t", 0): (6, 2)},
    )
    return made


@pytest.fixture
def shell(cluster: FakeCluster, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(groups, cluster.admin, capsys)


def test_state_members_and_offsets(shell: Shell) -> None:
    """Several members have one partition; where nobody has read there is no offset."""
    out = shell("describe", "s").out
    assert out.startswith("group s   state Stable   protocol share/simple   coordinator 1 (")
    blocks = [[line.split() for line in block.splitlines()] for block in out.split("\n\n")]
    assert blocks[1] == [
        ["CLIENT", "HOST", "MEMBER", "INSTANCE", "ASSIGNMENT"],
        ["a", "10.0.0.1", "a-id", "-", "t:0"],
        ["b", "10.0.0.1", "b-id", "-", "t:0-1"],
    ]
    assert blocks[2] == [
        ["TOPIC", "PARTITION", "START", "LAG"],
        ["t", "0", "6", "2"],
        ["t", "1", "-", "-"],
    ]


def test_epochs_with_verbose(shell: Shell) -> None:
    out = shell("describe", "s", "--state", "--verbose").out
    assert "type share   members 2   epoch 5   target assignment epoch 4" in out


def test_as_json(shell: Shell) -> None:
    found = shell("describe", "s", "--json").document
    assert (found["type"], found["state"], found["protocol"]) == ("share", "Stable", "simple")
    assert [(at["partition"], at["committed"], at["lag"]) for at in found["offsets"]] == [
        (0, 6, 2),
        (1, None, None),
    ]
    assert [m["assignment"] for m in found["members"]] == [{"t": [0]}, {"t": [0, 1]}]


def test_a_broker_without_share_groups(cluster: FakeCluster, shell: Shell) -> None:
    """What it does not know is not there."""
    cluster.has_share_groups = False
    outcome = shell("describe", "unknown")
    assert (outcome.status, outcome.err) == (1, "varve: group 'unknown' does not exist\n")


@pytest.mark.parametrize("kind", ["describe_share_groups", "share_group_offsets"])
def test_refusals_are_passed_on(
    cluster: FakeCluster,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: str,
) -> None:
    admin = cluster.admin()
    refused = {"error_code": 30, "error_message": "Not for you."}
    answer = {"s": refused} if kind == "describe_share_groups" else refused
    monkeypatch.setattr(admin, kind, lambda _: answer)
    outcome = Shell(groups, lambda **_settings: admin, capsys)("describe", "s")
    assert outcome.status == 1
    assert outcome.err == "varve: Not for you (GROUP_AUTHORIZATION_FAILED)\n"


def test_offsets_of_share_groups_are_not_reset(cluster: FakeCluster, shell: Shell) -> None:
    """They commit none: all groups means those that do."""
    cluster.groups["s"].state = "Empty"
    cluster.groups["g"] = FakeGroup(offsets={TopicPartition("t", 0): 1})
    outcome = shell("reset-offsets", "--all-groups", "--all-topics", "--to-earliest", "--json")
    assert "'s'" not in outcome.err
    assert '"s"' not in outcome.out
