"""Unfinished copies: segments in COPY_SEGMENT_STARTED that no task of this broker is copying.

The end of such a copy was never published: its broker died, lost the leadership, or could not
delete it. Waiting for retention would leave it in the bucket for weeks, so it is resolved at once:

    its offsets are in the local log or in another copy ──> delete it; they are copied again
    they are nowhere else, and the copy is complete     ──> publish COPY_SEGMENT_FINISHED
    they are nowhere else, and it is not                ──> look again for `SURE_MS`, then log the
                                                            loss, and delete it

Before the last the bucket's claim is read (`tiered.maintenance.bucket_ownership`): in an empty
folder, where the bucket's disk is not mounted, no copy is complete. Nor is it where a store that
heals, or a proxy in front of it, answers for a while that there is no such object: reads of those
offsets wait as long. Before anything is deleted the
metadata is read up to its end of now: a leader that hears nothing of its metadata partition, and is
heard there, may have published the end of its copy without knowing.

Source: KAFKA-16511, KAFKA-17428.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from storage.environment.clock import Clock
from tiered.deadline import CallDeadlines
from tiered.metadata.epoch_bounds import valid_end
from tiered.metadata.publisher import MetadataPublisher
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import RemoteLogSegmentMetadata, SegmentState
from tiered.tasks.led_partition import LedPartition
from tiered.tasks.segment_deletion import SegmentDeletion
from tiered.tasks.task_counters import TaskCounters
from tiered.tier import Tier

_log = logging.getLogger(__name__)

SURE_MS: Final = 600_000.0
"""For so long in one leadership objects must not be there that are needed: then they are lost."""


class UnfinishedCopies:
    """See the module. One for all partitions."""

    __slots__ = (
        "_clock",
        "_counters",
        "_deadlines",
        "_deletion",
        "_metadata",
        "_publisher",
        "_require_bucket",
        "_tier",
    )

    def __init__(
        self,
        *,
        metadata: RemoteLogMetadataManager,
        publisher: MetadataPublisher,
        tier: Tier,
        deadlines: CallDeadlines,
        deletion: SegmentDeletion,
        counters: TaskCounters,
        require_bucket: Callable[[], Awaitable[None]],
        clock: Clock,
    ) -> None:
        """`require_bucket`: was it the claimed bucket that was looked into."""
        self._metadata = metadata
        self._publisher = publisher
        self._tier = tier
        self._deadlines = deadlines
        self._deletion = deletion
        self._counters = counters
        self._require_bucket = require_bucket
        self._clock = clock

    @property
    def broker_id(self) -> int:
        """Of this broker, as its copies name it."""
        return self._publisher.broker_id

    async def resolve(self, led: LedPartition, segment: RemoteLogSegmentMetadata) -> None:
        """Publish the copy as finished, or delete it, or leave it for later; raises TieredError."""
        is_needed = self._is_needed(led, segment)
        if is_needed:
            async with self._deadlines.of(2, f"validation of {segment.id}"):
                complete = await self._tier.is_complete(segment)
            # This broker or the last leader may have published its end meanwhile.
            if not self.is_in(led, segment, SegmentState.COPY_SEGMENT_STARTED):
                return
            if complete:
                _log.warning(
                    "%s: copy %s is complete: publishing COPY_SEGMENT_FINISHED",
                    led.tiered.partition,
                    segment.id,
                )
                await self._publisher.segment_state(segment, SegmentState.COPY_SEGMENT_FINISHED)
                self._counters.of(segment.partition.topic).adopted_segments += 1
                return
            await self._require_bucket()
            if not self._is_surely_incomplete(led, segment):
                return
        # Its end may be there, and unknown here: whoever published it had no answer. Followers that
        # have read it drop from their disks what the copy holds.
        async with self._deadlines.of(1, f"reading metadata before {segment.id} is removed"):
            await self._metadata.caught_up([segment.partition])
        if not self.is_in(led, segment, SegmentState.COPY_SEGMENT_STARTED):
            return
        if is_needed:
            self._counters.of(segment.partition.topic).lost_segments += 1
            _log.error(
                "%s: offsets %d to %d are lost: not in the local log, incomplete in remote storage",
                segment.partition,
                segment.start_offset,
                segment.end_offset,
            )
        await self._deletion.delete(segment)

    def _is_surely_incomplete(self, led: LedPartition, segment: RemoteLogSegmentMetadata) -> bool:
        """Whether a copy that is needed has not been complete for long enough; says so at first."""
        now_ms = self._clock.monotonic_ms()
        if segment.id not in led.incomplete_since:
            led.incomplete_since[segment.id] = now_ms
            _log.warning(
                "%s: copy %s is the only one of some of its offsets, %d to %d, and not complete: "
                "it is looked for again for %.0f s",
                segment.partition,
                segment.id,
                segment.start_offset,
                segment.end_offset,
                SURE_MS / 1000,
            )
        return now_ms - led.incomplete_since[segment.id] >= SURE_MS

    def _is_needed(self, led: LedPartition, segment: RemoteLogSegmentMetadata) -> bool:
        """Some of its offsets may be read, and are neither in the local log nor in another copy."""
        log = led.tiered.log
        offset = max(segment.start_offset, log.log_start_offset)
        end = min(valid_end(segment, log.leader_epochs), log.local_log_start_offset)
        while offset < end:
            epoch = log.leader_epochs.epoch_for_offset(offset)
            if epoch is None:
                return True
            other = self._metadata.find(segment.partition, epoch, offset)
            if other is None:
                return True
            offset = other.end_offset + 1
        return False

    def is_in(
        self, led: LedPartition, segment: RemoteLogSegmentMetadata, state: SegmentState
    ) -> bool:
        """Whether the leadership certainly lasts and the segment is in this state now."""
        if not led.may_change:
            return False
        present = self._metadata.known_of(segment.partition).segment(segment.id)
        return present is not None and present.state is state
