"""Interface of remote log metadata (Kafka: RemoteLogMetadataManager).

Two kinds of calls. A look-up is synchronous, from memory, because the answer to a Fetch waits for
it; the publication of an event is awaited, because it must be on disk first.

A partition's metadata is in one of three conditions:

    UNLOADED ──assign──> LOADING (loaded, not yet visible) ──caught up──> VISIBLE
        ^                                                                  │
        └───────────────────────────── release ────────────────────────────┘

Only VISIBLE answers; before it every look-up raises RemoteStorageNotReadyError, which is not the
same as "there is no such segment".
"""

from collections.abc import Iterable, Sequence
from typing import Protocol
from uuid import UUID

from tiered.segment_metadata import (
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemotePartitionDelete,
    TopicIdPartition,
)


class PartitionSegments(Protocol):
    """Segments of one partition, for frequent callers: nothing here walks over all of them.

    Attributes:
        version: How many changes there have been.
    """

    version: int

    def segment(self, segment_id: UUID) -> RemoteLogSegmentMetadata | None:
        """By id, in whatever state."""
        ...

    def segments(self) -> Sequence[RemoteLogSegmentMetadata]:
        """As the manager's; what is given does not change any more."""
        ...

    def unfinished(self) -> Sequence[RemoteLogSegmentMetadata]:
        """Those that are not COPY_SEGMENT_FINISHED, ascending by start offset."""
        ...

    def changes(
        self, since: int
    ) -> Sequence[tuple[RemoteLogSegmentMetadata | None, RemoteLogSegmentMetadata | None]] | None:
        """(before, after) of what has changed since a version; None: no longer known."""
        ...


class RemoteLogMetadataManager(Protocol):
    """See the module. Touched on the loop's thread only.

    After `add`, `update` or `delete_partition` has returned, every look-up here sees it
    (read your writes), and it survives a power cut.
    """

    def assign(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Metadata of these is wanted here: leaders and followers alike. Returns at once."""
        ...

    def release(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Metadata of these is not wanted here any more."""
        ...

    def refresh(self, partition: TopicIdPartition) -> None:
        """Hide an assigned partition until all that is committed now has been read.

        A leadership begins: what the leader before has published must be known before anything
        follows from what is not there.
        """
        ...

    async def caught_up(self, partitions: Iterable[TopicIdPartition]) -> None:
        """Return when all is known of these that was committed when this was called.

        Raises:
            RemoteStorageNotReadyError: Nothing is read here (any more).
        """
        ...

    @property
    def is_steward(self) -> bool:
        """Whether this broker does what is done once for the whole cluster."""
        ...

    def leads(self, partition: TopicIdPartition) -> bool:
        """Whether this broker sees the deletion of such a partition through."""
        ...

    async def begin_inspection(
        self, partition: TopicIdPartition | None = None
    ) -> Sequence[TopicIdPartition]:
        """Let `partitions` be all there are in the cluster, and answer for them.

        Args:
            partition: Only this one more; None: all, with what was committed until now.

        Returns:
            Those it is about, for `end_inspection`; assigned ones may be among them.

        Raises:
            RemoteStorageNotReadyError: That is another broker's to do.
        """
        ...

    def end_inspection(self, inspected: Iterable[TopicIdPartition]) -> None:
        """Those that are not assigned, or inspected otherwise, are not wanted any more."""
        ...

    def known(self) -> Sequence[TopicIdPartition]:
        """All partitions that have segments, as far as their metadata is read here."""
        ...

    def is_ready(self, partition: TopicIdPartition) -> bool:
        """Whether look-ups are answered."""
        ...

    async def ready(self, partition: TopicIdPartition) -> None:
        """Wait until `is_ready`; raises RemoteStorageNotReadyError when it is not assigned."""
        ...

    async def add(self, metadata: RemoteLogSegmentMetadata) -> None:
        """Publish a copy that begins: the state must be COPY_SEGMENT_STARTED, the id new.

        Raises:
            InvalidTransitionError: It is not.
            RemoteStorageNotReadyError: Not assigned, or not yet visible.
            RemoteStorageError: It could not be written; nothing is known of it.
        """
        ...

    async def restore(self, segments: Sequence[RemoteLogSegmentMetadata]) -> None:
        """Publish copies of one partition that were found whole, all of them or none.

        Those that are known are skipped. Raises as `add`.
        """
        ...

    async def accept_partitions(self) -> None:
        """Open the metadata's own store as it is, though it has another shape than at first.

        Returns when the assigned partitions are ready. Nothing happens if it is open.
        """
        ...

    async def update(self, update: RemoteLogSegmentMetadataUpdate) -> None:
        """Publish a segment's next state; raises as `add`."""
        ...

    async def delete_partition(self, deletion: RemotePartitionDelete) -> None:
        """Publish the state of a partition's deletion; raises as `add`.

        After DELETE_PARTITION_FINISHED everything about the partition is forgotten.
        """
        ...

    def known_of(self, partition: TopicIdPartition) -> PartitionSegments:
        """All that is known of a partition; valid for the current loop iteration."""
        ...

    def find(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        """The COPY_SEGMENT_FINISHED segment that holds `offset` as of `epoch`, None: none does."""
        ...

    def find_at_or_after(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        """As `find`; without one that holds it, the one with the next offset of `epoch`."""
        ...

    def find_unfinished(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        """A segment with `offset` as of `epoch` that is being copied or, failing that, removed."""
        ...

    def find_next_with_transactions(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        """The first finished segment of `epoch` that ends at or after `offset` and holds aborts.

        KIP-1057; segments whose `txn_index_empty` is set are passed over.
        """
        ...

    def highest_offset(self, partition: TopicIdPartition, epoch: int) -> int | None:
        """Last offset of `epoch` in finished segments, inclusive; None: none was copied."""
        ...

    def segments(
        self, partition: TopicIdPartition, epoch: int | None = None
    ) -> Sequence[RemoteLogSegmentMetadata]:
        """All that is not DELETE_SEGMENT_FINISHED (of one epoch), ascending by start offset."""
        ...

    def size(self, partition: TopicIdPartition, epoch: int | None = None) -> int:
        """Bytes of finished segments' logs (of one epoch)."""
        ...

    def deletions(self) -> Sequence[RemotePartitionDelete]:
        """Partitions with a deletion that is begun, not published as finished, and ours to do."""
        ...

    def doubt(self, partition: TopicIdPartition) -> str:
        """Why what is not known of a partition may be lost rather than not there.

        A sentence; empty: nothing speaks for it. While there is one, no client gets an answer that
        an offset is not there, and nothing is removed or skipped because it is unknown.
        """
        ...

    def withhold(self, partition: TopicIdPartition, reason: str) -> None:
        """Record that a partition's metadata is lost; empty: it is not, any more.

        That something is lost is remembered, also over a restart, until `found`.
        """
        ...

    def lost(self, partition: TopicIdPartition) -> str:
        """What the store of a partition's metadata is known to have lost, a sentence or empty."""
        ...

    def losses(self) -> Sequence[str]:
        """What the store of the metadata itself has lost: sentences."""
        ...

    async def found(self) -> None:
        """Record that what was lost is published again, or accepted as lost: clears `losses`.

        Raises:
            RemoteStorageError: That could not be remembered.
        """
        ...

    def partitions(self) -> Sequence[TopicIdPartition]:
        """All assigned partitions; while there is an inspection, all there are."""
        ...
