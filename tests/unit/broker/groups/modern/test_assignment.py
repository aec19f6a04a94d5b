"""Assignments have one form, whatever order they were written in."""

from uuid import UUID

from broker.groups.modern.assignment import sorted_assignment

A, B = UUID(int=1), UUID(int=2)


def test_partitions_are_ascending_and_once() -> None:
    assert sorted_assignment({A: (3, 1, 3, 2)}) == {A: (1, 2, 3)}


def test_topics_without_partitions_are_left_out() -> None:
    assert sorted_assignment({A: (), B: (0,)}) == {B: (0,)}
