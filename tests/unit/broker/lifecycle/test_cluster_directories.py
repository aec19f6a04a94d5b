"""A failed directory is reported with what lies there; reports wait for the registration."""

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from broker.lifecycle.cluster_directories import LOOK_FOR_ROOM_MS, ClusterDirectories
from config.broker import BrokerConfig
from storage.types.topic_partition import TopicPartition
from tests.fakes.timer import ManualTimer

TOPIC, ONE, TWO = UUID(int=5000), UUID(int=1001), UUID(int=1002)


class World:
    def __init__(self) -> None:
        self.events: list[tuple[object, ...]] = []
        self.on_image: list[Any] = []
        timer = ManualTimer()
        controller: Any = SimpleNamespace(
            settings=BrokerConfig(),
            image=SimpleNamespace(topics={"orders": SimpleNamespace(topic_id=TOPIC)}),
            subscribe_now=self.on_image.append,
            assign_by_controller=None,
        )
        membership: Any = SimpleNamespace(
            broker_epoch=7,
            is_let_in=lambda _image: False,
            disk_failed=lambda: self.events.append(("noted",)),
        )
        manager: Any = SimpleNamespace(
            directories=[
                SimpleNamespace(path="/one", id=ONE, is_online=True, is_full=False),
                SimpleNamespace(path="/two", id=TWO, is_online=True, is_full=False),
            ]
        )
        environment: Any = SimpleNamespace(clock=timer.clock, timer=timer)
        nothing: Any = None
        self.controller = controller
        self.timer, self.directories = timer, manager.directories
        self.built = ClusterDirectories(
            controller, nothing, membership, manager, nothing, environment, lambda _: None
        )
        failed: Any = self.built.failed
        failed.add = lambda one: self.events.append(("failed", one))
        failed.set_full = lambda full: self.events.append(("full", *full))
        failed.begin = lambda epoch: self.events.append(("begun", epoch))
        places: Any = self.built.places
        places.found = lambda *replica: self.events.append(("found", *replica))


def test_a_failed_directory_is_reported_with_its_replicas() -> None:
    """Those of topics that are gone are nobody's."""
    world = World()
    gone = TopicPartition("gone", 0)
    world.built.directory_offline("/two", [TopicPartition("orders", 4), gone])
    assert world.events == [("noted",), ("found", TOPIC, 4, TWO), ("failed", TWO)]


def test_reports_begin_with_the_registration() -> None:
    world = World()
    world.built.joined()
    assert world.events == [("begun", 7), ("full",)]


def test_directories_without_room_are_looked_for() -> None:
    """And those that have it again."""
    world = World()
    world.built.joined()
    world.directories[1].is_full = True
    world.timer.advance(LOOK_FOR_ROOM_MS)
    world.directories[1].is_full = False
    world.timer.advance(LOOK_FOR_ROOM_MS)
    assert world.events[1:] == [("full",), ("full", TWO), ("full",)]


def test_logs_report_to_the_controller_and_moves_ask_it() -> None:
    world = World()
    lifecycle: Any = SimpleNamespace(
        report_places=lambda report, begins: world.events.append(("reports", report, begins))
    )
    directories: Any = SimpleNamespace(begins_anew="begins anew")
    world.built.follow(lifecycle, directories)
    assert world.events == [("reports", world.built.places.found, "begins anew")]
    assert world.controller.assign_by_controller == world.built.places.assign
    assert len(world.on_image) == 1
