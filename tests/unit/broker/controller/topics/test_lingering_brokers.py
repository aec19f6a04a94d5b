"""Brokers that were fenced a moment ago are named to clients still."""

import pytest

from broker.controller.images.cluster_image import BrokerEndpoint, BrokerImage, ClusterImage
from broker.controller.topics.lingering_brokers import LINGER_MS, LingeringBrokers
from tests.fakes.clock import ManualClock


def image_of(*brokers: BrokerImage) -> ClusterImage:
    return ClusterImage.empty().with_brokers(brokers)


def broker(node_id: int, *, is_fenced: bool = False, epoch: int = 7) -> BrokerImage:
    listeners = {"IN": BrokerEndpoint("host", 9092)}
    return BrokerImage(node_id, listeners, is_fenced=is_fenced, epoch=epoch)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def named(lingering: LingeringBrokers, image: ClusterImage) -> list[int]:
    return [found.node_id for found in lingering.of(image)]


def test_who_is_fenced_lingers_for_a_while(clock: ManualClock) -> None:
    lingering = LingeringBrokers(clock)
    before = image_of(broker(1), broker(2))
    after = image_of(broker(1), broker(2, is_fenced=True))
    assert named(lingering, before) == []
    lingering.image_changed(before, after)
    assert named(lingering, after) == [2]
    clock.advance(LINGER_MS - 1)
    assert named(lingering, after) == [2]
    clock.advance(1)
    assert named(lingering, after) == []


def test_who_was_never_let_in_does_not_linger(clock: ManualClock) -> None:
    """Nor who was fenced when this broker first heard of it."""
    lingering = LingeringBrokers(clock)
    fenced = image_of(broker(1), broker(2, is_fenced=True))
    lingering.image_changed(image_of(broker(1)), fenced)
    lingering.image_changed(fenced, image_of(broker(1), broker(2, is_fenced=True)))
    assert named(lingering, fenced) == []


def test_a_later_life_lingers_until_it_is_let_in(clock: ManualClock) -> None:
    """It is fenced until then: a restart would make it absent a second time."""
    lingering = LingeringBrokers(clock)
    fenced = image_of(broker(2, is_fenced=True))
    lingering.image_changed(image_of(broker(2)), fenced)
    clock.advance(LINGER_MS - 1)
    waiting = image_of(broker(2, is_fenced=True, epoch=9))
    lingering.image_changed(fenced, waiting)
    clock.advance(LINGER_MS - 1)
    assert named(lingering, waiting) == [2]
    clock.advance(1)
    assert named(lingering, waiting) == []


def test_a_life_that_ends_the_one_before_lingers(clock: ManualClock) -> None:
    """It has found its own old registration: both are one change."""
    lingering = LingeringBrokers(clock)
    waiting = image_of(broker(2, is_fenced=True, epoch=9))
    lingering.image_changed(image_of(broker(2)), waiting)
    assert named(lingering, waiting) == [2]


def test_a_later_life_of_one_that_is_gone_for_long_does_not_linger(clock: ManualClock) -> None:
    lingering = LingeringBrokers(clock)
    fenced = image_of(broker(2, is_fenced=True))
    lingering.image_changed(image_of(broker(2)), fenced)
    clock.advance(LINGER_MS)
    waiting = image_of(broker(2, is_fenced=True, epoch=9))
    lingering.image_changed(fenced, waiting)
    assert named(lingering, waiting) == []


def test_who_is_back_or_unregistered_does_not_linger(clock: ManualClock) -> None:
    lingering = LingeringBrokers(clock)
    whole, fenced = image_of(broker(2)), image_of(broker(2, is_fenced=True))
    lingering.image_changed(whole, fenced)
    lingering.image_changed(fenced, whole)
    assert named(lingering, whole) == []
    lingering.image_changed(whole, fenced)
    assert named(lingering, image_of()) == []


def test_a_node_that_is_alone_has_nobody_to_name() -> None:
    lingering = LingeringBrokers()
    fenced = image_of(broker(2, is_fenced=True))
    lingering.image_changed(image_of(broker(2)), fenced)
    assert named(lingering, fenced) == []
