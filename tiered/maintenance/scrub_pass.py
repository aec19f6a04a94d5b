"""State of one pass of garbage collection."""

from collections.abc import Container
from uuid import UUID

from tiered.maintenance.object_groups import ObjectGroup
from tiered.metadata.remote_log_metadata_manager import PartitionSegments
from tiered.object_store.base import ObjectInfo
from tiered.segment_metadata import TopicIdPartition


class OwnedSegments:
    """Ids of the segments of one partition, without a list of them all."""

    __slots__ = ("_known",)

    def __init__(self, known: PartitionSegments) -> None:
        self._known = known

    def __contains__(self, segment_id: object) -> bool:
        return isinstance(segment_id, UUID) and self._known.segment(segment_id) is not None


class ScrubPass:
    """Position of one pass, and what it has found of the partition it is in.

    Attributes:
        limit_ms, began_ms, removes: Garbage is older; when it began; whether it removes.
        present: The partition it is in.
        owned: What the metadata knows of it; None: not looked up, or not known here.
        whole: Its copies of which all objects were seen.
        superseded_reads: Manifests of unknown copies that were read.
        has_unknown: A copy of it that is unknown to the metadata was found.
        partitions: All that were seen.
        garbage: To be removed.
        histories: Of deleted partitions, to be removed after it.
    """

    __slots__ = (
        "began_ms",
        "garbage",
        "has_unknown",
        "histories",
        "limit_ms",
        "owned",
        "partitions",
        "present",
        "removes",
        "superseded_reads",
        "whole",
    )

    def __init__(self, *, limit_ms: int, began_ms: int, removes: bool) -> None:
        self.limit_ms = limit_ms
        self.began_ms = began_ms
        self.removes = removes
        self.present: TopicIdPartition | None = None
        self.owned: Container[UUID] | None = None
        self.whole: set[UUID] = set()
        self.has_unknown = False
        self.partitions: set[TopicIdPartition] = set()
        self.superseded_reads = 0
        self.garbage: list[ObjectGroup] = []
        self.histories: list[ObjectInfo] = []

    def enter(self, partition: TopicIdPartition) -> None:
        """The next partition begins."""
        self.present = partition
        self.partitions.add(partition)
        self.owned = None
        self.whole = set()
        self.has_unknown = False
