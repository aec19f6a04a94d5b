"""Deletion of all that remote storage has of a partition.

When the topic was deleted:

    publish MARKED ──> publish STARTED ──> mark the history ──> delete every segment
      ──> sweep ──> delete the history ──> publish FINISHED

The metadata remembers how far it is, so a restart goes on where it stopped
(`RemoteLogMetadataManager.deletions`); every step may be done twice. The sweep lists the
partition's own part of the bucket: what a copy that was under way left there has no record any
more once the metadata forgets the partition, and would never be found again.

When only remote storage was switched off (`remote.storage.enable=false` with
`remote.log.delete.on.disable=true`, KIP-950) the topic lives on, and may be switched on again: the
log start goes up to what is local, DELETE_SEGMENT_STARTED is published of all segments, then they
go, and the partition's metadata stays. Published first, as that needs no bucket: from then on the
metadata alone says what is to go, whatever becomes of the topic's settings. All of it is done
newest first, unlike with those that expire: should remote storage be switched on again before all
have gone, copying goes on after those that are left, and what is still local between the log start
and the first of them is not taken for expired.

Source: Kafka, RemoteLogManager.deleteRemoteLogPartition, RemotePartitionDeleteState.java; KIP-950.
"""

import logging
from collections.abc import Callable, Sequence

from tiered.deadline import CallDeadlines
from tiered.errors import RemoteStorageNotReadyError, TieredError
from tiered.format.object_keys import ObjectKeys
from tiered.maintenance.bucket_ownership import Claim
from tiered.maintenance.bucket_trouble import BucketTrouble
from tiered.metadata.publisher import MetadataPublisher
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import (
    PartitionDeleteState,
    RemoteLogSegmentMetadata,
    SegmentState,
    TopicIdPartition,
)
from tiered.tasks.history_writer import HistoryWriter
from tiered.tasks.led_partition import LedPartition
from tiered.tasks.segment_deletion import SegmentDeletion
from tiered.tier import Tier

_log = logging.getLogger(__name__)


class RemoteDeletion:
    """See the module."""

    __slots__ = (
        "_claim",
        "_deadlines",
        "_deletion",
        "_history",
        "_keys",
        "_metadata",
        "_publisher",
        "_tier",
        "_trouble",
        "swept_objects",
    )

    def __init__(
        self,
        *,
        metadata: RemoteLogMetadataManager,
        publisher: MetadataPublisher,
        tier: Tier,
        deadlines: CallDeadlines,
        deletion: SegmentDeletion,
        claim: Claim,
        history: HistoryWriter,
        trouble: BucketTrouble,
    ) -> None:
        """`swept_objects` counts objects that no segment had."""
        self._metadata = metadata
        self._publisher = publisher
        self._tier = tier
        self._deadlines = deadlines
        self._deletion = deletion
        self._claim = claim
        self._history = history
        self._trouble = trouble
        self._keys = ObjectKeys()
        self.swept_objects = 0

    async def run(self, partition: TopicIdPartition) -> None:
        """Remove everything of a deleted topic's partition, from wherever it stopped.

        No copy of the partition may be under way here.

        Raises:
            TieredError: It is not done; call again.
        """
        if not self._metadata.is_ready(partition):
            if partition in self._metadata.partitions():
                raise RemoteStorageNotReadyError(f"metadata of {partition} is not there yet")
            # Its end was published after the caller had gone: that has released it.
            self._deletion.forget(partition)
            return
        state = self._state(partition)
        if state is None:
            await self._publisher.partition_state(
                partition, PartitionDeleteState.DELETE_PARTITION_MARKED
            )
        if state is not PartitionDeleteState.DELETE_PARTITION_STARTED:
            await self._publisher.partition_state(
                partition, PartitionDeleteState.DELETE_PARTITION_STARTED
            )
        await self._history.mark_deleting(
            partition, has_segments=bool(self._metadata.segments(partition))
        )
        await self._remove_segments(partition)
        await self._sweep(partition)
        # Last: until then it shows a reader that the topic was deleted.
        await self._history.remove(partition)
        # It may have been an empty folder, where the bucket's disk is not mounted.
        await self._claim.require_bucket_now()
        await self._publisher.partition_state(
            partition, PartitionDeleteState.DELETE_PARTITION_FINISHED
        )
        self._deletion.forget(partition)
        _log.info("%s: all its segments are deleted from remote storage", partition)

    async def purge(self, led: LedPartition) -> None:
        """Remove all segments of a partition whose remote storage was switched off.

        If that is not wanted, or not any more, only those whose removal was begun.

        Raises:
            TieredError: It is not done; call again.
        """
        partition = led.tiered.partition
        if led.purge_wanted:
            await self._start_deletions(led)
        begun = [
            segment
            for segment in reversed(self._metadata.segments(partition))
            if segment.state is SegmentState.DELETE_SEGMENT_STARTED
        ]
        await self._delete_each(begun, may_go_on=lambda: led.may_change)

    async def _start_deletions(self, led: LedPartition) -> None:
        """Publish DELETE_SEGMENT_STARTED of all segments."""
        partition = led.tiered.partition
        # Before anything goes: local retention must not believe it once it counts again.
        led.tiered.log.highest_remote_offset = -1
        led.raise_log_start(led.tiered.log.local_log_start_offset)
        for segment in reversed(self._metadata.segments(partition)):
            if not led.may_change:
                return
            if segment.state is not SegmentState.DELETE_SEGMENT_STARTED:
                await self._deletion.begin(segment)

    def left_of(self, partition: TopicIdPartition) -> tuple[int, int]:
        """Segments there are, and of these those whose removal was begun."""
        segments = self._metadata.segments(partition)
        begun = sum(one.state is SegmentState.DELETE_SEGMENT_STARTED for one in segments)
        return len(segments), begun

    def _state(self, partition: TopicIdPartition) -> PartitionDeleteState | None:
        for deletion in self._metadata.deletions():
            if deletion.partition == partition:
                return deletion.state
        return None

    async def _remove_segments(self, partition: TopicIdPartition) -> None:
        await self._delete_each(self._metadata.segments(partition))

    async def _delete_each(
        self,
        segments: Sequence[RemoteLogSegmentMetadata],
        may_go_on: Callable[[], bool] = lambda: True,
    ) -> None:
        """Delete segments while that is allowed; one that cannot go does not hold up the others.

        Raises:
            TieredError: Of the first that failed; at once with the second: in a store that is away
                each would wait for its deadline.
        """
        failed: TieredError | None = None
        for segment in segments:
            if not may_go_on():
                return
            try:
                await self._deletion.delete(segment)
            except TieredError as error:
                if failed is not None:
                    raise
                failed = error
        if failed is not None:
            raise failed

    async def _sweep(self, partition: TopicIdPartition) -> None:
        await self._claim.require()
        prefix = self._keys.partition_prefix(partition)
        history = self._keys.history_key(partition)
        async with self._deadlines.of(2, f"listing the uploads of {partition}"):
            for upload in await self._tier.list_uploads(prefix):
                await self._tier.abort_upload(upload)
        while True:
            # Always the first page: what it shows is gone when the next one is asked for.
            async with self._deadlines.of(2, f"sweep of {partition}"):
                page = await self._tier.list_objects(prefix, None)
                keys = [found.key for found in page.objects if found.key != history]
                if keys:
                    with self._trouble.removing():
                        await self._tier.delete_objects(keys)
            self.swept_objects += len(keys)
            if not keys or page.continuation is None:
                return
