"""Comparison and look-ups of target computations, for all kinds of groups.

Source: Kafka, TargetAssignmentBuilder.java.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from broker.controller.images.cluster_image import ClusterImage, TopicImage
from broker.coordinator.outcome import KeyValue
from broker.groups.modern.assignment import Assignment
from broker.groups.modern.records import GroupRecords


class ChangedTarget(NamedTuple):
    """A member whose target has changed, and its record."""

    member_id: str
    assignment: Assignment
    record: KeyValue


def changed_targets(
    group_id: str,
    before: Mapping[str, Assignment],
    after: Mapping[str, Assignment],
    records: GroupRecords[Any],
) -> list[ChangedTarget]:
    """Members whose target differs, or that had none; may be called on any thread.

    Members that are in `before` only have left, and their targets went with them.
    """
    return [
        ChangedTarget(member_id, assignment, records.target(group_id, member_id, assignment))
        for member_id, assignment in after.items()
        if member_id not in before or before[member_id] != assignment
    ]


class SubscribedTopics:
    """Topics of an image by members' subscriptions, which are mostly the same.

    Attributes:
        topics: All that were found, by id.
    """

    __slots__ = ("_ids_of", "_known", "topics")

    def __init__(self, image: ClusterImage) -> None:
        self._known = image.topics
        self._ids_of: dict[frozenset[str], frozenset[UUID]] = {}
        self.topics: dict[UUID, TopicImage] = {}

    def ids_of(self, names: frozenset[str]) -> frozenset[UUID]:
        """Ids of the topics that exist."""
        ids = self._ids_of.get(names)
        if ids is None:
            found = {
                topic.topic_id: topic
                for name in names
                if (topic := self._known.get(name)) is not None
            }
            self.topics.update(found)
            ids = self._ids_of[names] = frozenset(found)
        return ids
