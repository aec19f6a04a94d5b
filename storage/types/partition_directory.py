"""Names of partition directories in a log directory.

    events-3                                             partition 3 of `events`
    events-3.1b1a27d0c1f84a52a9dfb5a2a0f9a1b4-delete     deleted, to be removed soon
    events-3.1b1a27d0c1f84a52a9dfb5a2a0f9a1b4-future     being moved here from another log directory
    events-3.1b1a27d0c1f84a52a9dfb5a2a0f9a1b4-stray      of a topic that no longer exists

A topic may itself contain `-` and `.`. A name is at most 255 bytes: a longer topic is cut off in
the last three forms.

Source: Kafka, UnifiedLog.java, LocalLog.java (parseTopicPartitionName, logDeleteDirName).
"""

import re
from enum import Enum
from typing import Final, NamedTuple
from uuid import UUID

from storage.types.topic_partition import TopicPartition

NAME_SIZE_MAX: Final = 255
FUTURE_NAME_EXTRA: Final = len(".") + 32 + len("-future")
"""Bytes a copy's directory has beyond the partition's."""

_MARKED: Final = re.compile(r"(?P<partition>.+)\.(?P<id>[^.]+)-(?P<state>delete|future|stray)")


class DirectoryState(Enum):
    """What a partition directory is for."""

    CURRENT = ""
    DELETE = "delete"
    FUTURE = "future"
    STRAY = "stray"


class PartitionDirectory(NamedTuple):
    """The parsed name of a partition directory."""

    name: str
    topic_partition: TopicPartition
    state: DirectoryState


def parse_directory(name: str) -> PartitionDirectory | None:
    """Parse a directory's name; None if it is not that of a partition."""
    state = DirectoryState.CURRENT
    partition_name = name
    marked = _MARKED.fullmatch(name)
    if marked is not None:
        state = DirectoryState(marked["state"])
        partition_name = marked["partition"]
    topic, dash, partition = partition_name.rpartition("-")
    if not dash or not topic or not partition.isascii() or not partition.isdecimal():
        return None
    if len(partition) > 10:
        return None
    return PartitionDirectory(name, TopicPartition(topic, int(partition)), state)


def marked_name(topic_partition: TopicPartition, state: DirectoryState, unique_id: UUID) -> str:
    """Name for a directory that is no longer, or not yet, the partition's."""
    end = f"-{topic_partition.partition}.{unique_id.hex}-{state.value}"
    return topic_partition.topic[: NAME_SIZE_MAX - len(end)] + end
