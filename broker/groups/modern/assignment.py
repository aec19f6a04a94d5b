"""Assignments: the partitions of a member, by topic."""

from collections.abc import Mapping
from typing import Final, TypeAlias
from uuid import UUID

Assignment: TypeAlias = Mapping[UUID, tuple[int, ...]]
"""Partitions of topics, by topic id; ascending, and no topic without partitions. Never changed."""

NO_PARTITIONS: Final[Assignment] = {}


def sorted_assignment(assignment: Assignment) -> Assignment:
    """The same partitions in the form used here; Kafka writes them in any order."""
    return {
        topic_id: tuple(sorted(set(partitions)))
        for topic_id, partitions in assignment.items()
        if partitions
    }
