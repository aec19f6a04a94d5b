"""Deletion of one remote segment, and its events.

    publish DELETE_SEGMENT_STARTED ──> the partition's history without it ──> remove the objects
      ──> read the bucket's claim ──> publish DELETE_SEGMENT_FINISHED

Wherever this stops it is done again from the start: a state may be published twice, and removing
what is not there is fine. A deletion is never rolled back. Readers of the bucket plan by the
history (`tiered.metadata.history`): what it names must be there, so it changes before the objects
go.

The claim is read behind the removal (`tiered.maintenance.bucket_ownership`): from an empty folder,
where the bucket's disk is not mounted, everything can be removed. Once it is back the segment would
lie there whole, and the metadata would know nothing of it.

Whoever decides on a deletion has read the metadata before, and the bucket's claim is read in
between: of a copy whose end is published meanwhile nothing is deleted. Its records may leave the
local disks from then on.

A deletion that was begun and is not finished is doubtful: the event may be on its way though its
write failed, and the segment may count as finished a moment longer: see `first_doubtful_offset`.

Source: Kafka, RemoteLogManager.deleteRemoteLogSegment; KAFKA-17428.
"""

from collections.abc import Awaitable, Callable
from typing import TypeAlias
from uuid import UUID

from tiered.deadline import CallDeadlines
from tiered.errors import InvalidTransitionError, TieredError
from tiered.maintenance.bucket_trouble import BucketTrouble
from tiered.metadata.publisher import MetadataPublisher
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import RemoteLogSegmentMetadata, SegmentState, TopicIdPartition
from tiered.tasks.task_counters import TaskCounters
from tiered.tier import Tier

_CALLS = 4
"""To the store: the manifest, the rest, each perhaps after listing."""

Without: TypeAlias = Callable[[RemoteLogSegmentMetadata], Awaitable[None]]
"""Returns when the partition's history in the bucket has the segment no more; see
`HistoryKeeper.without`. Raises TieredError: its objects must stay."""

Doubtful = dict[TopicIdPartition, dict[UUID, RemoteLogSegmentMetadata]]


class SegmentDeletion:
    """See the module. Shared by the copier (failed copies), the expirer and topic deletion.

    Attributes:
        on_deleted: Called when a segment's removal has begun, so that caches forget it.
    """

    __slots__ = (
        "_counters",
        "_deadlines",
        "_doubtful",
        "_metadata",
        "_publisher",
        "_require",
        "_require_bucket",
        "_tier",
        "_trouble",
        "_without",
        "on_deleted",
    )

    def __init__(
        self,
        *,
        metadata: RemoteLogMetadataManager,
        tier: Tier,
        publisher: MetadataPublisher,
        deadlines: CallDeadlines,
        counters: TaskCounters,
        require: Callable[[], Awaitable[None]],
        require_bucket: Callable[[], Awaitable[None]],
        without: Without,
        trouble: BucketTrouble,
        on_deleted: Callable[[RemoteLogSegmentMetadata], None] | None = None,
    ) -> None:
        """Delete nothing yet.

        Args:
            metadata: Knows which segments there are.
            tier: Removes objects.
            publisher: Of events.
            deadlines: Of calls.
            counters: Per topic.
            require: May anything be removed.
            require_bucket: Was it the claimed bucket that something was removed from.
            without: The bucket's history has it no more.
            trouble: Told whether objects could be removed.
            on_deleted: See the class.
        """
        self._metadata = metadata
        self._tier = tier
        self._publisher = publisher
        self._deadlines = deadlines
        self._counters = counters
        self._require = require
        self._require_bucket = require_bucket
        self._without = without
        self._trouble = trouble
        self._doubtful: Doubtful = {}
        self.on_deleted = on_deleted

    @property
    def doubtful(self) -> int:
        """Deletions that were begun here and are not published finished; bounded by the metadata.

        Each of them is tried again by the expirer.
        """
        return sum(len(segments) for segments in self._doubtful.values())

    def first_doubtful_offset(self, partition: TopicIdPartition, log_start: int) -> int | None:
        """The least start offset of the doubtful segments that reach to `log_start` or above."""
        segments = self._doubtful.get(partition)
        if not segments:
            return None
        known = self._metadata.known_of(partition)
        for key in [key for key in segments if known.segment(key) is None]:
            del segments[key]
        offsets = [s.start_offset for s in segments.values() if s.end_offset >= log_start]
        return min(offsets, default=None)

    def forget(self, partition: TopicIdPartition) -> None:
        """The partition is gone from here."""
        self._doubtful.pop(partition, None)

    async def begin(self, segment: RemoteLogSegmentMetadata) -> None:
        """Only publish DELETE_SEGMENT_STARTED: no client reads it then; `delete` completes it.

        Raises:
            TieredError: It is not known whether that was published.
        """
        self._doubtful.setdefault(segment.partition, {})[segment.id] = segment
        await self._publisher.segment_state(
            segment, SegmentState.DELETE_SEGMENT_STARTED, segment.custom_metadata
        )
        if self.on_deleted is not None:
            self.on_deleted(segment)

    async def delete(self, segment: RemoteLogSegmentMetadata, *, own: bool = False) -> None:
        """Do it; see the module.

        Args:
            segment: Which, as it was when that was decided.
            own: A copy of this very process, unknown to other brokers.

        Raises:
            InvalidTransitionError: Its copy was unfinished then, and is finished now.
            TieredError: It is not finished; the segment is in the metadata still.
        """
        counters = self._counters.of(segment.partition.topic)
        if not own:
            await self._require()
        self._require_unfinished(segment)
        self._doubtful.setdefault(segment.partition, {})[segment.id] = segment
        counters.delete_requests += 1
        try:
            await self._publisher.segment_state(
                segment, SegmentState.DELETE_SEGMENT_STARTED, segment.custom_metadata
            )
            if self.on_deleted is not None:
                self.on_deleted(segment)
            await self._without(segment)
            with self._trouble.removing():
                async with self._deadlines.of(_CALLS, f"deletion of {segment.id}"):
                    await self._tier.delete_segment(segment)
            await self._require_bucket()
            await self._publisher.segment_state(
                segment, SegmentState.DELETE_SEGMENT_FINISHED, segment.custom_metadata
            )
        except TieredError:
            counters.delete_errors += 1
            raise
        segments = self._doubtful.get(segment.partition)
        if segments is not None:
            segments.pop(segment.id, None)
            if not segments:
                del self._doubtful[segment.partition]

    def _require_unfinished(self, segment: RemoteLogSegmentMetadata) -> None:
        if segment.state is not SegmentState.COPY_SEGMENT_STARTED:
            return
        known = self._metadata.known_of(segment.partition).segment(segment.id)
        if known is not None and known.state is SegmentState.COPY_SEGMENT_FINISHED:
            raise InvalidTransitionError(f"copy {segment.id} has been finished meanwhile")
