"""The name of one log."""

from collections.abc import Iterable
from typing import NamedTuple

from typing_extensions import override


class TopicPartition(NamedTuple):
    """A topic and the index of one of its partitions (0 upwards)."""

    topic: str
    partition: int

    @override
    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def indexes_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Topics in the order in which they come first, each with its indexes as they come."""
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return topics
