"""`varve cluster reassign`: plans, moves, throttles, what is under way."""

import argparse
import json

import pytest

from cli.actions import add_actions, run_action
from cli.cluster.cluster import ACTIONS
from cli.cluster.reassign import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_REPLICAS
from tests.unit.cli.cluster.reassignment_cluster import FakeCluster, Partition

T0, T1 = Partition("t", 0), Partition("t", 1)


def cluster_of(*replicas: tuple[int, ...]) -> FakeCluster:
    return FakeCluster({Partition("t", index): one for index, one in enumerate(replicas)})


def varve(cluster: FakeCluster, *words: str) -> int:
    parser = argparse.ArgumentParser()
    add_actions(parser, ACTIONS)
    return run_action(ACTIONS, parser.parse_args(["reassign", *words]), cluster)


def test_a_plan_is_shown_and_nothing_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = cluster_of((1, 2), (2, 3))
    assert varve(cluster, "--drain", "2") == 0
    shown = capsys.readouterr().out
    assert "t-0        1,2   1,4" in shown
    assert "--execute" in shown
    assert (cluster.moving, cluster.requests) == ({}, 0)


def test_executed_twice_it_does_no_more(capsys: pytest.CaptureFixture[str]) -> None:
    """Also while the first is under way."""
    cluster = cluster_of((1, 2), (2, 3))
    assert varve(cluster, "--drain", "2", "--execute") == 0
    assert cluster.moving == {T0: [1, 4], T1: [1, 3]}
    moving = dict(cluster.moving)
    assert varve(cluster, "--drain", "2", "--execute") == 0
    assert (cluster.moving, cluster.requests) == (moving, 1)
    assert "nothing is to be moved" in capsys.readouterr().out


def test_the_throttle_is_set_before_and_taken_off_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = cluster_of((1, 2))
    assert varve(cluster, "t", "--to", "3,2", "--execute", "--throttle", "1000") == 0
    assert cluster.configs["topic", "t"] == {LEADER_REPLICAS: "0:1,0:2", FOLLOWER_REPLICAS: "0:3"}
    assert [cluster.configs["broker", str(node)][FOLLOWER_RATE] for node in (1, 2, 3)] == [
        "1000"
    ] * 3
    assert ("broker", "4") not in cluster.configs
    assert varve(cluster, "--verify") == 1
    assert "t-0        3,2  3       1" in capsys.readouterr().out
    cluster.arrive()
    assert varve(cluster, "--verify") == 0
    assert not any(cluster.configs.values())
    cluster.altered.clear()
    assert varve(cluster, "--verify") == 0
    assert cluster.altered == [], "a look changes nothing, so it needs no controller"


def test_a_broker_that_is_away_is_drained_with_a_throttle_of_the_others() -> None:
    """Nobody can set what is its own, and nothing comes from it."""
    cluster = cluster_of((1, 2))
    cluster.brokers[2] = True
    assert varve(cluster, "--drain", "2", "--execute", "--throttle", "1000") == 0
    assert cluster.moving == {T0: [1, 3]}
    assert [name for kind, name in cluster.configs if kind == "broker"] == ["1", "3"]


def test_cancel(capsys: pytest.CaptureFixture[str]) -> None:
    """All that is under way, or some of it; what is not under way is passed over."""
    cluster = cluster_of((1, 2), (2, 3))
    varve(cluster, "t", "--to", "4,2", "--execute", "--throttle", "9")
    assert varve(cluster, "--cancel", "t:1") == 0
    assert list(cluster.moving) == [T0]
    assert cluster.configs["topic", "t"]
    assert varve(cluster, "--cancel") == 0
    assert (cluster.moving, cluster.configs["topic", "t"]) == ({}, {})
    assert varve(cluster, "--cancel", "--json") == 0
    shown = capsys.readouterr().out
    assert json.loads(shown[shown.index("{") :]) == {"cancelled": 0, "refused": []}


def test_what_is_refused_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = cluster_of((1, 2), (2, 3))
    cluster.refuses[T1] = (39, "no such broker")
    assert varve(cluster, "t", "--to", "4,1", "--execute", "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert [one["partition"] for one in document["refused"]] == ["t-1"]
    assert "no such broker" in document["refused"][0]["reason"]


@pytest.mark.parametrize("words", [("t", "--to", "1,9"), ("--drain", "9")])
def test_a_plan_names_no_broker_that_is_not_there(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistyped id is neither a plan nor nothing to do, also before anything is executed."""
    assert varve(cluster_of((1, 2)), *words) == 1
    assert capsys.readouterr() == ("", "varve: the cluster has no broker 9\n")


def test_a_broker_that_is_forgotten_is_drained() -> None:
    """Where it still has replicas."""
    cluster = cluster_of((1, 9))
    assert varve(cluster, "--drain", "9", "--execute") == 0
    assert cluster.moving == {T0: [1, 2]}


@pytest.mark.parametrize(
    "words",
    [
        ("--to", "1,2"),
        ("u", "--to", "1,2"),
        ("t:7", "--to", "1,2"),
        ("--drain", "1,2,3"),
        ("--replication-factor", "5"),
        ("t", "--to", "1,9"),
        ("--drain", "9"),
        ("--add-broker", "9"),
    ],
)
def test_what_cannot_be_is_refused(words: tuple[str, ...]) -> None:
    cluster = cluster_of((1, 2))
    assert varve(cluster, *words, "--execute") != 0
    assert cluster.requests == 0
