"""When a broker says that it is ready, and what it says until then."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from broker.controller.images.partition_image import NO_LEADER, PartitionImage
from broker.lifecycle.readiness import LEADERS_MS, Readiness
from storage.types.topic_partition import TopicPartition
from tests.fakes.clock import ManualClock

NODE_ID = 1
OTHER = 2
ELECTING = "waiting for the leaders of partitions to be elected"
LOADING = "loading the state of coordinators"
LED = PartitionImage(0, NODE_ID, 4, 9, replicas=(NODE_ID, OTHER), isr=(NODE_ID, OTHER))
ORPHAN = replace(LED, leader=NO_LEADER)


class World:
    """A broker with one partition.

    Attributes:
        partition: As the image has it; None: not in the image.
    """

    def __init__(self) -> None:
        self.is_let_in = False
        self.partition: PartitionImage | None = LED
        self.roles_due = 0
        self.coordinators: Any = SimpleNamespace(is_reading=False)
        self.clock = ManualClock()
        opened = SimpleNamespace(topic_partition=TopicPartition("t", 0))
        replicas: Any = SimpleNamespace(
            partitions=lambda: iter([opened]), roles_due=lambda: self.roles_due
        )
        image: Any = SimpleNamespace(partition=lambda _topic, _index: self.partition)
        self.readiness = Readiness(
            NODE_ID,
            self.clock,
            replicas,
            image=lambda: image,
            is_let_in=lambda: self.is_let_in,
            coordinators=lambda: self.coordinators,
        )

    @property
    def state(self) -> tuple[bool, str]:
        """Whether it is ready, and what it waits for."""
        return self.readiness.is_ready(), self.readiness.waiting_for()


def test_who_is_alone_is_ready_once_and_stays_so() -> None:
    """It is let in, then elected, then it takes its roles, then it loads what it coordinates."""
    world = World()
    world.partition = ORPHAN
    assert world.state == (False, "")
    world.is_let_in = True
    assert world.state == (False, ELECTING)
    world.partition, world.roles_due = LED, 3
    assert world.state == (False, ELECTING)
    world.roles_due = 0
    world.coordinators.is_reading = True
    assert world.state == (False, LOADING)
    world.coordinators.is_reading = False
    assert world.state == (True, "")
    world.partition, world.roles_due = ORPHAN, 1
    assert world.state == (True, ""), "what comes later does not begin a start again"


@pytest.mark.parametrize(
    "partition",
    [
        None,
        replace(ORPHAN, isr=(OTHER,)),
        replace(ORPHAN, isr=(), elr=(OTHER,), last_known_elr=(OTHER,)),
        replace(LED, leader=OTHER),
    ],
)
def test_what_another_broker_is_to_lead_is_not_waited_for(
    partition: PartitionImage | None,
) -> None:
    world = World()
    world.is_let_in, world.partition = True, partition
    assert world.state == (True, "")


@pytest.mark.parametrize(
    "partition",
    [
        replace(ORPHAN, isr=(), elr=(NODE_ID,)),
        replace(ORPHAN, isr=(), last_known_elr=(OTHER, NODE_ID)),
    ],
)
def test_leaders_that_wait_for_another_broker_keep_nobody_unready(
    partition: PartitionImage,
) -> None:
    """Else brokers that are started one after the other would wait for each other for ever."""
    world = World()
    world.is_let_in, world.partition = True, partition
    world.readiness.look()
    world.clock.advance(LEADERS_MS - 1)
    assert world.state == (False, ELECTING)
    world.clock.advance(1)
    assert world.state == (True, "")


def test_who_comes_back_begins_anew() -> None:
    world = World()
    world.is_let_in = True
    assert world.state == (True, "")
    world.clock.advance(LEADERS_MS)
    world.is_let_in = False
    assert world.state == (False, "")
    world.is_let_in, world.partition = True, ORPHAN
    assert world.state == (False, ELECTING)


def test_nothing_is_ready_without_coordinators() -> None:
    world = World()
    world.is_let_in, world.coordinators = True, None
    assert world.state == (False, LOADING)
