"""Who hears of a partition that begins or ceases to be served."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker.controller.images.topic_names import SHARE_GROUP_STATE
from broker.groups.coordinator import OFFSETS_TOPIC
from broker.lifecycle.coordinators import UNSERVED_AFTER_MS, Coordinators
from broker.lifecycle.served_partitions import ServedPartitions
from broker.transactions.coordinator.transaction_coordinator import TRANSACTION_TOPIC
from storage.environment.alerts import AlertKind, Alerts
from storage.types.topic_partition import TopicPartition
from tests.fakes.clock import ManualClock
from tests.fakes.timer import ManualTimer


class Coordinator:
    """Notes what a coordinator is called with."""

    def __init__(self, events: list[tuple[object, ...]], name: str) -> None:
        self.is_reading = False
        self.waiting_count = 0
        self.unavailable = SimpleNamespace(
            set=lambda index, reason: events.append((name, "unavailable", index, reason))
        )
        self.on_elected = lambda index, epoch: events.append((name, "elected", index, epoch))
        self.on_resigned = lambda index, epoch: events.append((name, "resigned", index, epoch))


NODE_ID = 1


class World:
    """Coordinators and remote storage that note what they hear."""

    def __init__(self) -> None:
        self.events: list[tuple[object, ...]] = []
        self.partitions: dict[TopicPartition, Any] = {}
        self.coordinators = Coordinators.__new__(Coordinators)
        self.by_topic: Any = {
            OFFSETS_TOPIC: Coordinator(self.events, "groups"),
            TRANSACTION_TOPIC: Coordinator(self.events, "transactions"),
            SHARE_GROUP_STATE: Coordinator(self.events, "share"),
        }
        replicas: Any = SimpleNamespace(
            replica_of=lambda topic, index: self.partitions.get(TopicPartition(topic, index)),
        )
        self.coordinators._by_topic = self.by_topic
        self.coordinators._replicas = replicas
        self.coordinators._node_id = NODE_ID
        self.timer = ManualTimer(ManualClock())
        self.coordinators._timer = self.timer
        self.coordinators._look = None
        self.image = image_of()
        self.coordinators._image = lambda: self.image
        remote: Any = SimpleNamespace(
            lead=lambda p, _: self.events.append(("remote", "leading", p.name)),
            follow=lambda p: self.events.append(("remote", "following", p.name)),
            resign=lambda p: self.events.append(("remote", "resigned", p.name)),
            on_deleted=lambda ps: self.events.extend(("remote", "deleted", p.name) for p in ps),
            on_reconfigured=lambda p: self.events.append(("remote", "reconfigured", p.name)),
        )
        self.alerts = Alerts()
        self.served = ServedPartitions(self.coordinators, remote, self.alerts)

    def open(self, topic: str, index: int) -> Any:
        one = TopicPartition(topic, index)
        # Hashed by identity, as a partition is.
        self.partitions[one] = type("P", (), {"name": str(one), "topic_partition": one})()
        return self.partitions[one]

    def serve(self, topic: str, index: int, epoch: int = 0) -> Any:
        partition = self.open(topic, index)
        self.served.on_elected(partition, epoch)
        return partition


def test_a_topic_of_users_is_remote_storages_alone() -> None:
    world = World()
    partition = world.serve("orders", 3)
    world.served.on_reconfigured(partition)
    world.served.on_deleted([partition])
    assert world.events == [
        ("remote", "leading", "orders-3"),
        ("remote", "reconfigured", "orders-3"),
        ("remote", "deleted", "orders-3"),
    ]


def test_an_internal_topic_elects_its_coordinator_in_the_leaders_epoch() -> None:
    world = World()
    for epoch, topic in enumerate((OFFSETS_TOPIC, TRANSACTION_TOPIC, SHARE_GROUP_STATE), 5):
        world.serve(topic, 7, epoch)
    assert [event for event in world.events if event[0] != "remote"] == [
        ("groups", "elected", 7, 5),
        ("transactions", "elected", 7, 6),
        ("share", "elected", 7, 7),
    ]


@pytest.mark.parametrize("epoch", [None, 8])
def test_who_leads_no_longer_copies_nothing_and_coordinates_nothing(epoch: int | None) -> None:
    """Another leads in a later epoch; or the log is closed, or the broker fenced: None."""
    world = World()
    partition = world.serve(OFFSETS_TOPIC, 1, 7)
    world.events.clear()
    if epoch is None:
        world.served.on_resigned(partition)
    else:
        world.served.on_followed(partition, epoch)
    assert world.events == [
        ("remote", "resigned" if epoch is None else "following", f"{OFFSETS_TOPIC}-1"),
        ("groups", "resigned", 1, epoch),
    ]


def test_a_refused_leadership_is_an_alert_until_there_is_a_role() -> None:
    world = World()
    one, other, third = (world.open("t", index) for index in range(3))
    for partition in (one, other, third):
        world.served.on_refused(partition, "its log is newer")
    alerts = world.alerts.all()
    assert [(a.kind, a.subject, a.text) for a in alerts] == [
        (AlertKind.LEADER_EPOCH_BEHIND, f"t-{index}", "its log is newer") for index in range(3)
    ]
    world.served.on_elected(one, 9)
    world.served.on_followed(other, 9)
    world.served.on_deleted([third])
    assert world.alerts.all() == []


def image_of(*, leader: int = NODE_ID, **partitions: int) -> Any:
    topics = {
        name: SimpleNamespace(
            partitions=[SimpleNamespace(index=i, leader=leader) for i in range(count)]
        )
        for name, count in partitions.items()
    }
    return SimpleNamespace(topics=topics)


def test_internal_partitions_whose_logs_are_not_served_are_unavailable() -> None:
    world = World()
    world.serve(OFFSETS_TOPIC, 0)
    world.events.clear()
    image = image_of(**{OFFSETS_TOPIC: 2, TRANSACTION_TOPIC: 1, "orders": 3})
    world.coordinators.report_unserved(image)
    assert [event[:3] for event in world.events] == [
        ("groups", "unavailable", 1),
        ("transactions", "unavailable", 0),
    ]


def test_an_internal_topic_that_was_just_created_has_time_for_its_logs() -> None:
    world = World()
    nothing, image = image_of(), image_of(**{OFFSETS_TOPIC: 2, "orders": 1})
    world.image = image
    world.coordinators.look_for_unserved(image, image)
    world.coordinators.look_for_unserved(nothing, image_of(orders=2))
    assert world.timer.pending == 0, "none of its own has changed"
    for _ in range(2):
        world.coordinators.look_for_unserved(nothing, image)
    assert world.timer.pending == 1
    world.serve(OFFSETS_TOPIC, 0)
    world.events.clear()
    world.timer.advance(UNSERVED_AFTER_MS - 1)
    assert world.events == []
    world.timer.advance(1)
    assert [event[:3] for event in world.events] == [("groups", "unavailable", 1)]


def test_what_another_broker_leads_is_that_brokers_to_report() -> None:
    world = World()
    world.coordinators.report_unserved(image_of(leader=2, **{OFFSETS_TOPIC: 3}))
    assert world.events == []


def test_one_coordinator_that_reads_is_enough_to_be_reading() -> None:
    world = World()
    assert not world.coordinators.is_reading
    world.by_topic[SHARE_GROUP_STATE].is_reading = True
    assert world.coordinators.is_reading


def test_what_waits_for_other_brokers_is_added_up() -> None:
    world = World()
    world.by_topic[OFFSETS_TOPIC].waiting_count = 4
    world.by_topic[TRANSACTION_TOPIC].waiting_count = 1
    assert world.coordinators.waiting_count == 5
