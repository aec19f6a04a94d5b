"""`varve cluster remove-broker`: refused, drained, waited for, unregistered; again and again."""

import argparse

import pytest

from cli.actions import add_actions
from cli.cluster import remove_broker
from cli.cluster.cluster import ACTIONS
from cli.connection import exit_status
from tests.unit.cli.cluster.reassignment_cluster import FakeCluster, Partition

T0 = Partition("t", 0)


class Operator:
    """Lets time pass: moves end, then the broker is stopped."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.pauses = 0

    def pause(self, _seconds: float) -> None:
        self.pauses += 1
        assert self.pauses < 10
        if self.cluster.moving:
            self.cluster.arrive()
        else:
            self.cluster.brokers[2] = True


def remove(cluster: FakeCluster, *words: str) -> int:
    parser = argparse.ArgumentParser()
    add_actions(parser, ACTIONS)
    args = parser.parse_args(["remove-broker", "2", *words])
    return exit_status(lambda: remove_broker.run(args, cluster, Operator(cluster).pause))


def test_a_broker_with_replicas_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = FakeCluster({T0: (1, 2)})
    assert remove(cluster) == 1
    assert "has replicas of 1 partition" in capsys.readouterr().err
    assert cluster.requests == 0


def test_drained_then_to_be_stopped_then_unregistered(capsys: pytest.CaptureFixture[str]) -> None:
    """Each time the command is given it does what is left."""
    cluster = FakeCluster({T0: (1, 2)})
    assert remove(cluster, "--drain") == 1
    assert "stop it" in capsys.readouterr().err
    assert 2 not in cluster.replicas[T0]
    assert 2 in cluster.brokers
    cluster.brokers[2] = True
    assert remove(cluster) == 0
    assert 2 not in cluster.brokers
    assert remove(cluster) == 0
    assert "is not registered" in capsys.readouterr().out


def test_it_waits_for_all_of_it() -> None:
    cluster = FakeCluster({T0: (1, 2)})
    assert remove(cluster, "--drain", "--wait") == 0
    assert 2 not in cluster.brokers


def test_a_drain_that_was_interrupted_goes_on() -> None:
    """What is on its way is not planned again."""
    cluster = FakeCluster({T0: (1, 2)})
    cluster.moving = {T0: [1, 3]}
    assert remove(cluster, "--drain", "--wait") == 0
    assert (cluster.replicas[T0], cluster.requests) == ([1, 3], 0)


def test_a_drain_without_room_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = FakeCluster({T0: (1, 2)}, brokers=(1, 2))
    assert remove(cluster, "--drain") == 1
    assert "no other broker" in capsys.readouterr().err
