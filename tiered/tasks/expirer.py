"""Expirer: deletes the remote segments that `tiered.tasks.expiry_plan` chooses.

    1  the log start offset goes up: from now on no client may read what is deleted
    2  unfinished copies are resolved (`tiered.tasks.unfinished_copies`)
    3  segments are removed, one after the other, oldest first and without leaving one out
    4  the log's remote offsets are brought in agreement with the metadata again

A crash between 1 and 3 loses the new log start, but nothing else: the next leader finds the same
segments by the same rule, or finds them gone and moves its log start to the first that is there, in
remote storage or on its disk: what is on the disk is copied again, and expires then.

Source: Kafka, RemoteLogManager.java (RLMExpirationTask).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Final
from uuid import UUID

from storage.environment.clock import Clock
from storage.log.log import Log
from tiered.errors import (
    InvalidTransitionError,
    RemoteStorageNotReadyError,
    StoreUnavailableError,
    TieredError,
    TierProcessError,
)
from tiered.maintenance.bucket_ownership import Claim
from tiered.metadata.lineage import Lineage
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import RemoteLogSegmentMetadata, SegmentState
from tiered.tasks.expiry_plan import ExpiryPlan, RetentionLimits, plan_expiry
from tiered.tasks.led_partition import LedPartition, only_local_bytes
from tiered.tasks.segment_deletion import SegmentDeletion
from tiered.tasks.unfinished_copies import UnfinishedCopies

_log = logging.getLogger(__name__)

STEPS_PER_SLICE: Final = 1000
"""Segments that are examined in one loop iteration: one to two milliseconds."""

_UNAVAILABLE = (StoreUnavailableError, TierProcessError, RemoteStorageNotReadyError)
_UNAVAILABLE_MAX = 3
"""So many segments of one run may meet a store that does not answer; then the run ends.

More than one, so that a single segment that always times out does not hold up all others; few,
since each of them waits for its deadline.
"""


class Expirer:
    """See the module. One for all partitions."""

    __slots__ = ("_claim", "_clock", "_deletion", "_in_flight", "_metadata", "_unfinished")

    def __init__(
        self,
        *,
        metadata: RemoteLogMetadataManager,
        deletion: SegmentDeletion,
        unfinished: UnfinishedCopies,
        clock: Clock,
        in_flight: Collection[UUID],
        claim: Claim,
    ) -> None:
        """Nothing runs before `run`; `in_flight`: the copier's, as it is at each run."""
        self._metadata = metadata
        self._deletion = deletion
        self._unfinished = unfinished
        self._clock = clock
        self._in_flight = in_flight
        self._claim = claim

    def plan(self, led: LedPartition) -> ExpiryPlan | None:
        """What there is to do now; brings the delete-lag gauges up to date.

        Returns:
            None: the sums are not there yet; to be called again in another loop iteration.

        Raises:
            RemoteStorageNotReadyError: Metadata is still being read.
        """
        tiered = led.tiered
        log = tiered.log
        began_ms = self._clock.monotonic_ms()
        known = self._metadata.known_of(tiered.partition)
        if not led.readable.advance(known, log, STEPS_PER_SLICE):
            return None
        in_flight = [known.segment(one) for one in self._in_flight]
        plan = plan_expiry(
            known.segments(),
            led.left_behind(known.unfinished(), self._unfinished.broker_id, began_ms),
            Lineage.of(log),
            _limits(log, self._clock.now_ms()),
            led.readable,
            log_start_offset=log.log_start_offset,
            leader_epoch=tiered.leader_epoch,
            only_local_bytes=only_local_bytes(led),
            in_flight=[one for one in in_flight if one is not None],
        )
        led.size_computation_ms = self._clock.monotonic_ms() - began_ms
        led.unreferenced_segments = plan.unreferenced
        led.delete_lag_segments = len(plan.removals)
        led.delete_lag_bytes = sum(segment.segment_size_bytes for segment, _ in plan.removals)
        return plan

    def is_due(self, led: LedPartition) -> bool:
        """Whether `run` would do something."""
        if not led.may_change or not self._metadata.is_ready(led.tiered.partition):
            return False
        if not self._claim.is_removing:
            return False
        plan = self.plan(led)
        return plan is None or not plan.is_empty

    async def run(self, led: LedPartition) -> None:
        """Do it.

        Raises:
            TieredError: Some of it failed, and is to be tried again.
        """
        plan = self.plan(led)
        while plan is None:
            # There are tens of thousands of segments, and a leadership has just begun.
            await asyncio.sleep(0)
            plan = self.plan(led)
        if plan.log_start_offset is not None:
            led.raise_log_start(plan.log_start_offset)
        errors: list[TieredError] = []
        for segment in plan.leftovers:
            await self._attempt(led, segment, self._unfinished.resolve, errors)
        log = led.tiered.log
        for segment, reason in plan.removals:
            if segment.state is SegmentState.COPY_SEGMENT_FINISHED:
                if segment.end_offset >= log.log_start_offset:
                    # The log start does not go beyond the high watermark.
                    continue
                _log.info(
                    "%s: removing remote segment %s, offsets %d to %d: %s",
                    led.tiered.partition,
                    segment.id,
                    segment.start_offset,
                    segment.end_offset,
                    reason.value,
                )
            if await self._attempt(led, segment, self._remove, errors):
                if led.is_active:
                    led.delete_lag_segments -= 1
                    led.delete_lag_bytes -= segment.segment_size_bytes
            elif self._unfinished.is_in(led, segment, SegmentState.COPY_SEGMENT_FINISHED):
                # In order: a log start that is lost in a crash is found again by the first segment
                # that is left, which must not have a hole behind it.
                break
        if led.is_active:
            led.settle(self._metadata, self._deletion)
        if errors:
            raise errors[0]

    async def _attempt(
        self,
        led: LedPartition,
        segment: RemoteLogSegmentMetadata,
        work: Callable[[LedPartition, RemoteLogSegmentMetadata], Awaitable[None]],
        errors: list[TieredError],
    ) -> bool:
        if not led.may_change:
            return False
        try:
            await work(led, segment)
        except InvalidTransitionError as error:
            # Another broker was faster: what the metadata says next time is what counts.
            _log.info("%s: remote segment has changed state: %s", led.tiered.partition, error)
            return False
        except TieredError as error:
            errors.append(error)
            if sum(isinstance(each, _UNAVAILABLE) for each in errors) >= _UNAVAILABLE_MAX:
                raise
            _log.warning(
                "%s: remote segment %s cannot be expired: %s",
                led.tiered.partition,
                segment.id,
                error,
            )
            return False
        return True

    async def _remove(self, led: LedPartition, segment: RemoteLogSegmentMetadata) -> None:
        await self._deletion.delete(segment)


def _limits(log: Log, now_ms: int) -> RetentionLimits:
    config = log.config
    if "delete" not in config.cleanup_policy:
        # Without that policy nothing expires, but by the log start offset.
        return RetentionLimits(None, None)
    keep_after_ms = now_ms - config.retention_ms
    return RetentionLimits(
        keep_after_ms if config.retention_ms >= 0 and keep_after_ms >= 0 else None,
        config.retention_bytes if config.retention_bytes >= 0 else None,
    )
