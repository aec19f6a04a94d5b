"""Listings of a bucket: topics and partitions by their folders, segments by their names.

    orders-<id>/0/00000000000000000000-<id>.indexes
    orders-<id>/0/00000000000000000000-<id>.log
    orders-<id>/0/00000000000000000000-<id>.rsm-manifest      the segment exists
    orders-<id>/0/varve-history

Names are in the order of offsets, and a segment's three lie side by side, so a listing is read in
one pass, from any offset on, and nothing is kept of it but one entry for each segment.
"""

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from pipeline.plan.bucket import Bucket
from pipeline.plan.piece import PartitionName
from storage.types.uuid_text import parse_uuid
from tiered.format.object_keys import ObjectKeys, ObjectSuffix
from tiered.object_store.base import ObjectPage
from tiered.segment_metadata import RemoteLogSegmentId, TopicIdPartition

KEYS: Final = ObjectKeys()

MISSING: Final = -1
"""Size of an object that was not listed."""

_MANIFEST_SUFFIX: Final = f".{ObjectSuffix.MANIFEST}"
_TOPIC: Final = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<topic_id>[A-Za-z0-9_-]{22})/")
_PARTITION: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_INT32_MAX: Final = (1 << 31) - 1


class TopicSelection(NamedTuple):
    """Selection of topics and of their partitions; nothing given: all.

    Attributes:
        names: These.
        pattern: Those in whose name it is found, anywhere, as Spark's Kafka source does.
        partitions: These partitions of each topic.
    """

    names: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: Mapping[str, frozenset[int]] | None = None

    def prefixes(self) -> list[str]:
        """Prefixes of the objects' names, as far as they are known."""
        names = self.names or tuple(self.partitions or ())
        return sorted(f"{name}-" for name in names) if names else [""]

    def has_topic(self, topic: str) -> bool:
        """Whether it is one of them."""
        if self.partitions is not None:
            return topic in self.partitions
        if self.pattern is not None:
            return re.search(self.pattern, topic) is not None
        return not self.names or topic in self.names

    def has_partition(self, topic: str, partition: int) -> bool:
        """Whether it is one of them."""
        return self.has_topic(topic) and (
            self.partitions is None or partition in self.partitions[topic]
        )


class ListedSegment(NamedTuple):
    """A segment whose manifest was listed; sizes of its other objects, `MISSING` without one."""

    segment_id: RemoteLogSegmentId
    start_offset: int
    manifest_key: str
    log_size: int
    indexes_size: int


class HistoryStamp(NamedTuple):
    """A history object as listed; with another value its content is another."""

    size: int
    modified_ms: int


@dataclass(slots=True)
class ListedPartition:
    """Listing of a partition; `segments` in the order of their names."""

    segments: list[ListedSegment] = field(default_factory=list)
    history: HistoryStamp | None = None


async def find_topics(bucket: Bucket, selection: TopicSelection) -> list[tuple[str, UUID]]:
    """Topics wanted and their ids, each incarnation by itself; by name."""
    topics = set()
    for prefix in selection.prefixes():
        async for page in _pages(bucket, prefix, folders=True):
            for folder in page.folders:
                topic = _topic_of(folder)
                if topic is not None and selection.has_topic(topic[0]):
                    topics.add(topic)
    return sorted(topics)


async def find_partitions(bucket: Bucket, topic: str, topic_id: UUID) -> list[int]:
    """Partitions of which there is any object, ascending."""
    prefix = KEYS.topic_prefix(topic, topic_id)
    numbers = set()
    async for page in _pages(bucket, prefix, folders=True):
        for folder in page.folders:
            name = folder[len(prefix) : -1]
            if _PARTITION.fullmatch(name) and int(name) <= _INT32_MAX:
                numbers.add(int(name))
    return sorted(numbers)


async def list_partition(
    bucket: Bucket, partition: PartitionName, from_offset: int = 0
) -> ListedPartition:
    """Segments that begin at an offset or later, and the history object."""
    name = TopicIdPartition(partition.topic_id, partition.topic, partition.partition)
    prefix = KEYS.partition_prefix(name)
    after = f"{prefix}{from_offset:020d}" if from_offset else ""
    listed = ListedPartition()
    stem, sizes = "", {".log": MISSING, ".indexes": MISSING}
    async for page in _pages(bucket, prefix, after=after):
        for found in page.objects:
            before, dot, suffix = found.key.rpartition(".")
            if before != stem:
                stem, sizes = before, {".log": MISSING, ".indexes": MISSING}
            if dot + suffix in sizes:
                sizes[dot + suffix] = found.size
            elif dot + suffix == _MANIFEST_SUFFIX:
                parsed = KEYS.parse(found.key)
                if parsed is not None:
                    listed.segments.append(
                        ListedSegment(
                            parsed.segment_id,
                            parsed.start_offset,
                            found.key,
                            sizes[".log"],
                            sizes[".indexes"],
                        )
                    )
            elif KEYS.parse_history(found.key) == name:
                listed.history = HistoryStamp(found.size, found.modified_ms)
    return listed


async def _pages(
    bucket: Bucket, prefix: str, *, after: str = "", folders: bool = False
) -> AsyncIterator[ObjectPage]:
    continuation: str | None = None
    while True:
        page = await bucket.store.list(
            prefix, after=after, folders=folders, continuation=continuation
        )
        yield page
        continuation = page.continuation
        if continuation is None:
            return


def _topic_of(folder: str) -> tuple[str, UUID] | None:
    match = _TOPIC.fullmatch(folder)
    if match is None:
        return None
    try:
        topic_id = parse_uuid(match["topic_id"])
    except ValueError:
        return None
    # The last character of an identifier has bits to spare: several texts are read as one.
    return (
        (match["topic"], topic_id)
        if KEYS.topic_prefix(match["topic"], topic_id) == folder
        else None
    )
