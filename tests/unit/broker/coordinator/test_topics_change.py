"""What differs between two images."""

from uuid import UUID

from broker.coordinator.topics_change import TopicsChange
from tests.fakes.broker.offsets_partition import FakeController, topic_image

BEFORE = FakeController(
    topic_image("a", 1, 1), topic_image("b", 2, 1), topic_image("c", 3, 1)
).image


def change(*topics: tuple[str, int, int]) -> TopicsChange:
    return TopicsChange(BEFORE, FakeController(*(topic_image(*one) for one in topics)).image)


def test_nothing() -> None:
    same = change(("a", 1, 1), ("b", 2, 1), ("c", 3, 1))
    assert (same.deleted, same.has_new, same.changed) == ({}, False, frozenset())


def test_deleted_made_anew_and_grown() -> None:
    found = change(("b", 9, 1), ("c", 3, 2), ("d", 4, 1))
    assert found.deleted == {UUID(int=1): "a", UUID(int=2): "b"}
    assert found.has_new
    assert found.changed == {"a", "b", "c", "d"}


def test_more_partitions_are_no_new_topic() -> None:
    found = change(("a", 1, 1), ("b", 2, 1), ("c", 3, 5))
    assert (found.deleted, found.has_new, found.changed) == ({}, False, frozenset({"c"}))
