"""Removing what need not be kept in remote storage; `tiered.tasks.expiry_plan` says what.

    1  the log start offset goes up: from now on nobody may read what is removed
    2  leftovers are resolved
    3  segments are removed, one after the other, oldest first and without leaving one out
    4  the log's remote offsets are brought in agreement with the metadata again

A crash between 1 and 3 loses the new log start, but nothing else: the next leader finds the same
segments by the same rule, or finds them gone and moves its log start to the first that is there.

A leftover is a copy whose end was never told: its broker died, lost the leadership, or could not
take it back. Waiting for retention would leave it in the bucket for weeks, so it is resolved at
once. While its offsets are in the local log, or in another copy, it is removed, and they are
copied anew. If they are nowhere else and all of it is there, the copy was good and only its last
record is missing: it is told finished now.

Source: Kafka, RemoteLogManager.java (RLMExpirationTask); KAFKA-16511, KAFKA-17428.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Final
from uuid import UUID

from storage.environment.clock import Clock
from storage.environment.timer import Timer
from storage.log.log import Log
from tiered.deadline import METADATA_DEADLINE_MS, Deadline, call_deadline_ms
from tiered.errors import (
    InvalidTransitionError,
    RemoteStorageNotReadyError,
    StoreUnavailableError,
    TieredError,
    TierProcessError,
)
from tiered.maintenance.bucket_ownership import Claim
from tiered.metadata.epoch_bounds import valid_end
from tiered.metadata.interface import RemoteLogMetadataManager
from tiered.metadata.lineage import Lineage
from tiered.segment_metadata import (
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    SegmentState,
)
from tiered.settings import TierSettings
from tiered.tasks.expiry_plan import ExpiryPlan, RetentionLimits, plan_expiry
from tiered.tasks.led_partition import LedPartition, only_local_bytes
from tiered.tasks.segment_deletion import SegmentDeletion
from tiered.tasks.task_counters import TaskCounters
from tiered.tier import Tier

_log = logging.getLogger(__name__)

STEPS_PER_TURN: Final = 1000
"""Segments that are looked at in one turn of the loop: one to two milliseconds."""

_UNAVAILABLE = (StoreUnavailableError, TierProcessError, RemoteStorageNotReadyError)
_UNAVAILABLE_MAX = 3
"""So many segments of one run may meet a store that does not answer; then the run ends.

More than one, so that a single segment that always times out does not hold up all others; few,
since each of them waits for its deadline.
"""


class Expirer:
    """See the module. One for all partitions."""

    __slots__ = (
        "_broker_id",
        "_claim",
        "_clock",
        "_counters",
        "_deletion",
        "_in_flight",
        "_metadata",
        "_settings",
        "_tier",
        "_timer",
    )

    def __init__(
        self,
        *,
        metadata: RemoteLogMetadataManager,
        tier: Tier,
        deletion: SegmentDeletion,
        clock: Clock,
        timer: Timer,
        broker_id: int,
        settings: Callable[[], TierSettings],
        counters: TaskCounters,
        in_flight: Collection[UUID],
        claim: Claim,
    ) -> None:
        """Nothing runs before `run`; `in_flight`: the copier's, looked at all the time."""
        self._metadata = metadata
        self._tier = tier
        self._deletion = deletion
        self._clock = clock
        self._timer = timer
        self._broker_id = broker_id
        self._settings = settings
        self._counters = counters
        self._in_flight = in_flight
        self._claim = claim

    def plan(self, led: LedPartition) -> ExpiryPlan | None:
        """What there is to do now; brings the delete-lag gauges up to date.

        Returns:
            None: the sums are not there yet; to be asked again in another turn of the loop.

        Raises:
            RemoteStorageNotReadyError: Metadata is still being read.
        """
        tiered = led.tiered
        log = tiered.log
        began_ms = self._clock.monotonic_ms()
        known = self._metadata.known_of(tiered.partition)
        if not led.readable.advance(known, log, STEPS_PER_TURN):
            return None
        in_flight = [known.segment(one) for one in self._in_flight]
        plan = plan_expiry(
            known.segments(),
            known.unfinished(),
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
        if not led.is_active or not self._metadata.is_ready(led.tiered.partition):
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
            await self._attempt(led, segment, self._resolve, errors)
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
            elif self._is_in(led, segment, SegmentState.COPY_SEGMENT_FINISHED):
                # In order: whoever forgets the log start in a crash finds it again by the first
                # segment that is left, which must not have a hole behind it.
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
        if not led.is_active:
            return False
        try:
            await work(led, segment)
        except InvalidTransitionError as error:
            # Somebody was faster: what the metadata says next time is what counts.
            _log.info("%s: %s", led.tiered.partition, error)
            return False
        except TieredError as error:
            errors.append(error)
            if sum(isinstance(each, _UNAVAILABLE) for each in errors) >= _UNAVAILABLE_MAX:
                raise
            _log.warning("%s: segment %s: %s", led.tiered.partition, segment.id, error)
            return False
        return True

    async def _remove(self, led: LedPartition, segment: RemoteLogSegmentMetadata) -> None:
        await self._deletion.delete(segment)

    # -- leftovers ---------------------------------------------------------------------------

    async def _resolve(self, led: LedPartition, segment: RemoteLogSegmentMetadata) -> None:
        if self._is_needed(led, segment):
            deadline_ms = call_deadline_ms(self._settings().store.call_timeout_ms, 2)
            async with Deadline(self._timer, deadline_ms, f"look at {segment.id}"):
                complete = await self._tier.is_complete(segment)
            # Its end may have been told late meanwhile, by us or by the last leader.
            if not self._is_in(led, segment, SegmentState.COPY_SEGMENT_STARTED):
                return
            counters = self._counters.of(segment.partition.topic)
            if complete:
                await self._adopt(segment)
                counters.adopted_segments += 1
                return
            counters.lost_segments += 1
            _log.error(
                "%s: offsets %d to %d are neither here nor whole in remote storage",
                segment.partition,
                segment.start_offset,
                segment.end_offset,
            )
        if self._is_in(led, segment, SegmentState.COPY_SEGMENT_STARTED):
            await self._deletion.delete(segment)

    def _is_in(
        self, led: LedPartition, segment: RemoteLogSegmentMetadata, state: SegmentState
    ) -> bool:
        """The leadership lasts, and the segment is in this state now."""
        if not led.is_active:
            return False
        present = self._metadata.known_of(segment.partition).segment(segment.id)
        return present is not None and present.state is state

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

    async def _adopt(self, segment: RemoteLogSegmentMetadata) -> None:
        _log.warning("%s: copy %s is complete: told finished", segment.partition, segment.id)
        update = RemoteLogSegmentMetadataUpdate(
            segment_id=segment.segment_id,
            event_timestamp_ms=self._clock.now_ms(),
            state=SegmentState.COPY_SEGMENT_FINISHED,
            broker_id=self._broker_id,
        )
        async with Deadline(self._timer, METADATA_DEADLINE_MS, "telling of a copy's end"):
            await self._metadata.update(update)


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
