"""The name of one log."""

from typing import NamedTuple

from typing_extensions import override


class TopicPartition(NamedTuple):
    """A topic and the index of one of its partitions (0 upwards)."""

    topic: str
    partition: int

    @override
    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
