"""Report of one pass of garbage collection."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from tiered.segment_metadata import RemoteLogSegmentId, RemoteLogSegmentMetadata, TopicIdPartition


class UnknownCopy(NamedTuple):
    """A whole copy that is unknown to the metadata."""

    segment_id: RemoteLogSegmentId
    start_offset: int
    size_bytes: int
    """Of its objects."""


@dataclass(slots=True)
class ScrubReport:
    """Report of one pass.

    Attributes:
        is_ours: The bucket is this cluster's; False: nothing was removed.
        owner: Whose it is.
        objects, object_bytes: Listed.
        histories: Histories of partitions.
        foreign_objects: Names that are neither a segment's nor a history's.
        hidden_objects: Of partitions whose metadata is not visible here.
        young_objects: Unowned, but within the grace period.
        removed_objects, removed_bytes: Garbage (with `dry_run`: what would be removed).
        removed_keys: Its names, the first of them.
        aborted_uploads: Unfinished multipart uploads.
        missing: COPY_SEGMENT_FINISHED segments that are not whole; the first of them.
        missing_segments: How many those are.
        unknown: Whole copies that the metadata has never heard of; the first of them.
        unknown_copies: How many those are.
        unknown_by_partition: The same, of each partition.
        lost: What the metadata is known to have lost, sentences: nothing was removed.
    """

    is_ours: bool = False
    owner: str = ""
    objects: int = 0
    object_bytes: int = 0
    histories: int = 0
    foreign_objects: int = 0
    hidden_objects: int = 0
    young_objects: int = 0
    removed_objects: int = 0
    removed_bytes: int = 0
    removed_keys: list[str] = field(default_factory=list)
    aborted_uploads: int = 0
    missing: list[RemoteLogSegmentMetadata] = field(default_factory=list)
    missing_segments: int = 0
    unknown: list[UnknownCopy] = field(default_factory=list)
    unknown_copies: int = 0
    unknown_by_partition: Counter[TopicIdPartition] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
