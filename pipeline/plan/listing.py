"""What a listing tells of the segments of a bucket, before any manifest is read.

    orders-<id>/0/00000000000000000000-<id>.indexes
    orders-<id>/0/00000000000000000000-<id>.log
    orders-<id>/0/00000000000000000000-<id>.rsm-manifest      the segment exists
    orders-<id>/0/varve-history

Names are in the order of offsets, and a segment's three lie side by side, so a listing is read in
one pass and nothing is kept of it but one entry for each segment.
"""

import re
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from pipeline.plan.bucket import Bucket
from tiered.object_keys import HISTORY_NAME, ObjectKeys, ObjectSuffix
from tiered.object_store.base import ObjectInfo
from tiered.segment_metadata import RemoteLogSegmentId, TopicIdPartition

KEYS: Final = ObjectKeys()

MISSING: Final = -1
"""Size of an object that was not listed."""

_MANIFEST_SUFFIX: Final = f".{ObjectSuffix.MANIFEST}"


class TopicSelection(NamedTuple):
    """Which topics, and which of their partitions; nothing given: all.

    Attributes:
        names: These.
        pattern: Those whose whole name it matches.
        partitions: These partitions of each topic.
    """

    names: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: Mapping[str, frozenset[int]] | None = None

    def prefixes(self) -> list[str]:
        """What the names of objects begin with, as far as that can be told."""
        names = self.names or tuple(self.partitions or ())
        return sorted(f"{name}-" for name in names) if names else [""]

    def has_topic(self, topic: str) -> bool:
        """Whether it is one of them."""
        if self.partitions is not None:
            return topic in self.partitions
        if self.pattern is not None:
            return re.fullmatch(self.pattern, topic) is not None
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


@dataclass(slots=True)
class ListedPartition:
    """What was listed of a partition; `segments` in the order of their names."""

    segments: list[ListedSegment] = field(default_factory=list)
    has_history: bool = False


Listed = dict[tuple[str, UUID], dict[int, ListedPartition]]
"""By topic and its id, then by partition."""


async def list_partitions(bucket: Bucket, prefixes: Iterable[str]) -> Listed:
    """All segments and history objects below prefixes that do not overlap."""
    listed: Listed = {}
    for prefix in prefixes:
        stem, sizes = "", {".log": MISSING, ".indexes": MISSING}
        async for found in walk(bucket, prefix):
            before, dot, suffix = found.key.rpartition(".")
            if before != stem:
                stem, sizes = before, {".log": MISSING, ".indexes": MISSING}
            if dot + suffix in sizes:
                sizes[dot + suffix] = found.size
            elif dot + suffix == _MANIFEST_SUFFIX:
                parsed = KEYS.parse(found.key)
                if parsed is not None:
                    of = _partition_of(listed, parsed.segment_id.partition)
                    of.segments.append(
                        ListedSegment(
                            parsed.segment_id,
                            parsed.start_offset,
                            found.key,
                            sizes[".log"],
                            sizes[".indexes"],
                        )
                    )
            elif found.key.endswith(HISTORY_NAME):
                partition = KEYS.parse_history(found.key)
                if partition is not None:
                    _partition_of(listed, partition).has_history = True
    return listed


async def walk(bucket: Bucket, prefix: str) -> AsyncIterator[ObjectInfo]:
    """All objects below a prefix, in the order of their names."""
    continuation: str | None = None
    while True:
        page = await bucket.store.list(prefix, continuation=continuation)
        for found in page.objects:
            yield found
        continuation = page.continuation
        if continuation is None:
            return


def _partition_of(listed: Listed, partition: TopicIdPartition) -> ListedPartition:
    of_topic = listed.setdefault((partition.topic, partition.topic_id), {})
    return of_topic.setdefault(partition.partition, ListedPartition())
