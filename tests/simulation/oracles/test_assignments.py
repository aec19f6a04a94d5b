"""R: replicas that nobody asked for are found, and answers to what was not done."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from broker.controller.images.cluster_image import ClusterImage, TopicImage
from broker.controller.images.partition_image import PartitionImage
from protocol.error_codes import ErrorCode
from tests.simulation.oracles.assignments import UNDER_WAY_S, Assignments
from tests.simulation.world import Place, Violation

PLACE = Place("t", 0)
ID = UUID(int=7)
STANDING = PartitionImage(0, 1, 3, 5, (1, 2, 3), (1, 2, 3))
MOVING = replace(STANDING, replicas=(2, 4, 1, 3), adding=(4,), removing=(1, 3))
MOVED = replace(STANDING, replicas=(2, 4), isr=(2, 4))
BACK = replace(STANDING, replicas=(2, 1, 3))


class Store:
    """What the store has, at a time."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.image = ClusterImage.empty()
        world: Any = self
        self.rule = Assignments(world)
        self.show(STANDING)

    @property
    def loop(self) -> Any:
        return self

    def time(self) -> float:
        return self.now_s

    def show(self, record: PartitionImage) -> None:
        self.now_s += 1.0
        topic = TopicImage("t", ID, (record,), {}, internal=False)
        self.image = replace(self.image, topics={"t": topic}, topics_by_id={ID: topic})
        self.rule.stored(self.image)


def test_a_move_that_is_asked_for_comes_to_its_end() -> None:
    store = Store()
    asked = store.rule.ask(PLACE, (2, 4))
    store.show(MOVING)
    store.rule.answered(PLACE, asked, ErrorCode.NONE)
    store.show(replace(MOVING, isr=(1, 2, 3, 4)))
    store.show(MOVED)
    assert (store.rule.moves, store.rule.replaced, store.rule.given_up) == (1, 0, 0)


def test_a_move_is_given_up_and_another_takes_its_place() -> None:
    store = Store()
    store.rule.ask(PLACE, (2, 4))
    store.show(MOVING)
    store.rule.ask(PLACE, (1, 5))
    store.show(replace(STANDING, replicas=(1, 5, 2, 3, 4), adding=(4, 5), removing=(2, 3, 4)))
    cancel = store.rule.ask(PLACE, None)
    store.show(BACK)
    store.rule.answered(PLACE, cancel, ErrorCode.NONE)
    assert (store.rule.moves, store.rule.replaced, store.rule.given_up) == (1, 1, 1)


def test_a_move_that_nobody_asked_for_is_found() -> None:
    with pytest.raises(Violation, match=r"R .* nobody asked"):
        Store().show(MOVING)
    store = Store()
    asked = store.rule.ask(PLACE, (2, 4))
    store.rule.answered(PLACE, asked, ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    with pytest.raises(Violation, match=r"R .* nobody asked"):
        store.show(MOVING)


def test_a_move_that_ends_without_those_it_adds_is_found() -> None:
    store = Store()
    store.rule.ask(PLACE, (2, 4))
    store.show(MOVING)
    store.rule.ask(PLACE, None)
    with pytest.raises(Violation, match=r"R .* has become"):
        store.show(replace(MOVED, isr=(2,)))


def test_a_move_that_ends_with_the_replicas_of_before_was_to_be_given_up() -> None:
    store = Store()
    store.rule.ask(PLACE, (2, 4))
    store.show(MOVING)
    with pytest.raises(Violation, match=r"R .* has become"):
        store.show(BACK)


def test_what_is_said_to_be_done_is_in_the_store() -> None:
    store = Store()
    asked = store.rule.ask(PLACE, (2, 4))
    with pytest.raises(Violation, match=r"R .* said to be done"):
        store.rule.answered(PLACE, asked, ErrorCode.NONE)
    store = Store()
    store.rule.answered(PLACE, store.rule.ask(PLACE, (1, 2, 3)), ErrorCode.NONE)
    store.now_s += UNDER_WAY_S
    with pytest.raises(Violation, match=r"R .* said to be done"):
        store.rule.answered(PLACE, store.rule.ask(PLACE, None), ErrorCode.NONE)
