"""Which replica a consumer with a rack is sent to (KIP-392)."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from broker.controller.images.broker_records import BrokerEndpoint, BrokerImage
from broker.controller.images.partition_image import PartitionImage
from broker.replication.leader_state import LeaderState
from broker.replication.preferred_replica import LEADER, RackAwareReplicaSelector
from broker.replication.terms import ReplicationTerms

EPOCHS = {1: 10, 2: 20, 3: 30, 4: 40}
RACKS = {1: "a", 2: "b", 3: "b", 4: "c"}
CLIENTS = "CLIENTS"


class World:
    """A partition on four brokers, led by broker 1; two of them are in rack b."""

    def __init__(self, isr: tuple[int, ...] = (1, 2, 3, 4)) -> None:
        endpoint = BrokerEndpoint("host", 9092)
        self.brokers = {
            node: BrokerImage(node, {CLIENTS: endpoint}, RACKS[node], epoch=EPOCHS[node])
            for node in EPOCHS
        }
        self.leading = LeaderState(
            PartitionImage(0, 1, 5, 0, (1, 2, 3, 4), isr),
            ReplicationTerms(live_epoch=EPOCHS.get),
            epoch_start_offset=0,
            own_end_offset=100,
            now_ms=0.0,
        )
        self.partition: Any = SimpleNamespace(leading=self.leading)
        self.selector = RackAwareReplicaSelector(1, lambda: self.brokers)

    def fetched(self, node: int, end: int, *, start: int = 0, now_ms: float = 0.0) -> None:
        follower = self.leading.follower(node)
        assert follower is not None
        follower.fetched(end, start, EPOCHS[node], 100, now_ms)

    def change(self, node: int, **changes: object) -> None:
        self.brokers[node] = replace(self.brokers[node], **changes)  # type: ignore[arg-type]  # fields by name

    def select(self, offset: int, rack: str) -> int:
        return self.selector.select(self.partition, offset, rack, CLIENTS)


@pytest.fixture
def world() -> World:
    world = World()
    for node, end in ((2, 90), (3, 95), (4, 100)):
        world.fetched(node, end)
    return world


def test_the_leader_itself_is_read_from_in_its_rack(world: World) -> None:
    world.change(2, rack="a")
    assert world.select(10, "a") == LEADER


def test_the_follower_in_the_rack_that_has_most_is_named(world: World) -> None:
    assert world.select(10, "b") == 3
    world.fetched(2, 96)
    assert world.select(10, "b") == 2
    assert world.select(10, "c") == 4


def test_of_equal_ones_the_one_caught_up_last_is_named_then_the_greater_id(world: World) -> None:
    world.fetched(2, 100, now_ms=0.0)
    world.fetched(3, 100, now_ms=0.0)
    assert world.select(10, "b") == 3
    world.fetched(2, 100, now_ms=1.0)
    assert world.select(10, "b") == 2


def test_a_rack_without_replicas_reads_from_the_leader(world: World) -> None:
    assert world.select(10, "d") == LEADER


@pytest.mark.parametrize(("offset", "named"), [(4, LEADER), (5, 4), (100, 4), (101, LEADER)])
def test_its_log_must_hold_the_offset(world: World, offset: int, named: int) -> None:
    """At its end as well: what comes next will be there."""
    world.fetched(4, 100, start=5)
    assert world.select(offset, "c") == named


def test_one_outside_the_isr_is_not_named() -> None:
    """A consumer would fall behind with it."""
    world = World(isr=(1, 2, 4))
    world.fetched(3, 100)
    world.fetched(2, 90)
    assert world.select(10, "b") == 2


def test_one_that_has_not_fetched_in_this_epoch_is_not_named() -> None:
    assert World().select(0, "c") == LEADER


@pytest.mark.parametrize(
    "change",
    [
        {"is_fenced": True},
        {"is_live": False},
        {"is_draining": True},
        {"epoch": 41},
        {"listeners": {}},
        {"rack": None},
    ],
)
def test_one_that_clients_cannot_reach_is_not_named(
    world: World, change: dict[str, object]
) -> None:
    """Fenced, without its lease, about to stop, in another life, not on the client's listener."""
    world.change(4, **change)
    assert world.select(10, "c") == LEADER


def test_one_that_is_registered_no_longer_is_not_named(world: World) -> None:
    del world.brokers[4]
    assert world.select(10, "c") == LEADER


def test_a_partition_of_one_replica_is_read_here(world: World) -> None:
    world.partition.leading = None
    assert world.select(10, "c") == LEADER
