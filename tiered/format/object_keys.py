"""Names of a segment's objects in the bucket; the grammar is Aiven's, whose plugin finds them.

    <topic>-<topic id>/<partition>/<start offset>-<segment id>.<suffix>

    topic         as in Kafka: letters, digits, `.`, `_`, `-`; it may hold dashes, so a name is
                  parsed from its right end
    topic id,     22 characters of URL-safe base64, which may hold or begin with dashes too
    segment id
    partition     decimal
    start offset  20 decimal digits, so that a listing is in the order of offsets
    suffix        log | indexes | rsm-manifest

Beside a partition's segments lies its history, which lists them (`tiered.metadata.history`):

    <topic>-<topic id>/<partition>/varve-history

A prefix (`key.prefix`, put before all of it as it is) belongs to the store in Varve: what is built
and parsed here is below it. `ObjectKeys` takes one all the same, for tools that hold full names.

Source: Aiven-Open/tiered-storage-for-apache-kafka, ObjectKeyFactory.java.
"""

import re
from enum import StrEnum
from typing import Final, NamedTuple
from uuid import UUID

from storage.types.uuid_text import format_uuid, parse_uuid
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    TopicIdPartition,
)

_KEY: Final = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<topic_id>[A-Za-z0-9_-]{22})"
    r"/(?P<partition>0|[1-9][0-9]{0,9})"
    r"/(?P<offset>[0-9]{20})-(?P<segment>[A-Za-z0-9_-]{22})"
    r"\.(?P<suffix>log|indexes|rsm-manifest)"
)
HISTORY_NAME: Final = "varve-history"
"""Sorts behind every segment, so a listing of segments meets it last."""

_HISTORY_KEY: Final = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<topic_id>[A-Za-z0-9_-]{22})"
    rf"/(?P<partition>0|[1-9][0-9]{{0,9}})/{HISTORY_NAME}"
)
_INT32_MAX: Final = (1 << 31) - 1
_INT64_MAX: Final = (1 << 63) - 1


class ObjectSuffix(StrEnum):
    """Which of a segment's objects."""

    LOG = "log"
    INDEXES = "indexes"
    MANIFEST = "rsm-manifest"


class SegmentKeys(NamedTuple):
    """The names of one segment's objects."""

    log: str
    indexes: str
    manifest: str


class SegmentKey(NamedTuple):
    """A parsed name."""

    segment_id: RemoteLogSegmentId
    start_offset: int
    suffix: ObjectSuffix


class ObjectKeys:
    """Builds and parses names below one prefix."""

    __slots__ = ("prefix",)

    def __init__(self, prefix: str = "") -> None:
        """`prefix` goes before every name as it is, with its `/` if it wants one."""
        self.prefix = prefix

    def topic_prefix(self, topic: str, topic_id: UUID) -> str:
        """What the names of one topic's objects begin with, and no other's."""
        return f"{self.prefix}{topic}-{format_uuid(topic_id)}/"

    def partition_prefix(self, partition: TopicIdPartition) -> str:
        """What the names of one partition's objects begin with, and no other's."""
        return f"{self.topic_prefix(partition.topic, partition.topic_id)}{partition.partition}/"

    def stem(self, segment_id: RemoteLogSegmentId, start_offset: int) -> str:
        """A segment's name without the dot and the suffix."""
        folder = self.partition_prefix(segment_id.partition)
        return f"{folder}{start_offset:020d}-{format_uuid(segment_id.id)}"

    def keys_of(self, segment_id: RemoteLogSegmentId, start_offset: int) -> SegmentKeys:
        """The names of one segment's objects."""
        stem = self.stem(segment_id, start_offset)
        return SegmentKeys(
            f"{stem}.{ObjectSuffix.LOG}",
            f"{stem}.{ObjectSuffix.INDEXES}",
            f"{stem}.{ObjectSuffix.MANIFEST}",
        )

    def segment_keys(self, metadata: RemoteLogSegmentMetadata) -> SegmentKeys:
        """The names of the objects of the segment that `metadata` describes."""
        return self.keys_of(metadata.segment_id, metadata.start_offset)

    def parse(self, key: str) -> SegmentKey | None:
        """Parse a name; None for an object that is no segment's, or not written just so."""
        if not key.startswith(self.prefix):
            return None
        match = _KEY.fullmatch(key, len(self.prefix))
        if match is None:
            return None
        partition = int(match["partition"])
        start_offset = int(match["offset"])
        try:
            topic_id = parse_uuid(match["topic_id"])
            segment = parse_uuid(match["segment"])
        except ValueError:
            return None
        segment_id = RemoteLogSegmentId(
            TopicIdPartition(topic_id, match["topic"], partition), segment
        )
        if partition > _INT32_MAX or start_offset > _INT64_MAX:
            return None
        parsed = SegmentKey(segment_id, start_offset, ObjectSuffix(match["suffix"]))
        # The last character of an identifier has bits to spare: several texts are read as one.
        if f"{self.stem(segment_id, start_offset)}.{parsed.suffix}" != key:
            return None
        return parsed

    def history_key(self, partition: TopicIdPartition) -> str:
        """The name of a partition's history."""
        return self.partition_prefix(partition) + HISTORY_NAME

    def parse_history(self, key: str) -> TopicIdPartition | None:
        """The partition of a history's name; None for another name, or one not written just so."""
        if not key.startswith(self.prefix):
            return None
        match = _HISTORY_KEY.fullmatch(key, len(self.prefix))
        if match is None or int(match["partition"]) > _INT32_MAX:
            return None
        try:
            topic_id = parse_uuid(match["topic_id"])
        except ValueError:
            return None
        partition = TopicIdPartition(topic_id, match["topic"], int(match["partition"]))
        return partition if self.history_key(partition) == key else None
