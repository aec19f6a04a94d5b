"""Copier: the task that copies closed segments to remote storage.

A segment is a candidate when it is closed, all of it is committed (its end is at most the last
stable offset) and on disk (at most the recovery point: its indexes too), and some of it lies above
the highest remote offset. One at a time per partition, oldest first:

    candidate ──> copy (`tiered.tasks.segment_copy`) ──> next candidate
                    │
                    ├─ its index is corrupt ──> rebuild the index, copy again
                    ├─ it was cut ──> blocked; another replica is asked for what is missing
                    └─ it is corrupt itself ──> blocked: alert, retry after BLOCKED_RETRY_MS

A segment that may not be copied holds up those after it. To pass it over would raise the highest
remote offset across a gap, and local retention would then delete the only good copy of what cannot
be read; Kafka too copies in order. It is reported once, counted, kept, and checked again later.

Source: Kafka, RemoteLogManager.java (RLMCopyTask).
"""

import logging
from collections.abc import Callable
from typing import Final

from config.tier import TierConfig
from storage.environment.alerts import AlertKind, Alerts
from storage.environment.environment import Environment
from storage.errors import CutSegmentError, StorageError
from storage.segment.indexed_segment import IndexedSegment
from storage.segment.segment import Segment
from tiered.deadline import CallDeadlines
from tiered.errors import CorruptSegmentError, RemoteStorageError, TieredError
from tiered.maintenance.bucket_trouble import BucketTrouble, Work
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.tasks.copy_quota import CopyQuota
from tiered.tasks.led_partition import BlockedSegment, LedPartition, uncopied_segments
from tiered.tasks.segment_copy import Candidate, SegmentCopy
from tiered.tasks.segment_deletion import SegmentDeletion
from tiered.tasks.task_counters import TaskCounters

_log = logging.getLogger(__name__)

BLOCKED_RETRY_MS: Final = 600_000.0
"""A refused segment is read again so often: it costs a pass over all of it."""


class Copier:
    """See the module.

    Attributes:
        copy: Does it, one segment at a time per partition.
        quota: Of all copies.
    """

    __slots__ = (
        "_alerts",
        "_counters",
        "_deadlines",
        "_deletion",
        "_environment",
        "_metadata",
        "_settings",
        "_trouble",
        "copy",
        "quota",
    )

    def __init__(
        self,
        *,
        metadata: RemoteLogMetadataManager,
        copy: SegmentCopy,
        deletion: SegmentDeletion,
        deadlines: CallDeadlines,
        environment: Environment,
        settings: Callable[[], TierConfig],
        counters: TaskCounters,
        alerts: Alerts,
        trouble: BucketTrouble,
    ) -> None:
        """Nothing runs before `run`; `settings` gives the present ones."""
        self._metadata = metadata
        self._deletion = deletion
        self._deadlines = deadlines
        self._environment = environment
        self._settings = settings
        self._counters = counters
        self._alerts = alerts
        self._trouble = trouble
        self.copy = copy
        self.quota = CopyQuota(environment.clock, settings())

    # -- what to copy ------------------------------------------------------------------------

    def candidate(self, led: LedPartition) -> Candidate | None:
        """The next segment to copy, whether copying is allowed now or not."""
        log = led.tiered.log
        waiting = uncopied_segments(led, 1)
        if not waiting:
            return None
        segment, end = waiting[0]
        if end > min(log.last_stable_offset, log.recovery_point):
            return None
        if end <= log.log_start_offset:
            # Given up by DeleteRecords, and its leader epochs are forgotten: it cannot be described
            # any more. When that is on disk it is no candidate; until then it is waited for.
            return None
        return Candidate(segment, end)

    def is_due(self, led: LedPartition) -> bool:
        """Whether `run` would do something; the quota is not checked."""
        if not (led.may_change and led.tiered.log.copies_to_remote) or led.stopped_copying:
            return False
        if self._settings().tier_copy_paused or led.tiered.copy_paused():
            return False
        if not self._metadata.is_ready(led.tiered.partition):
            return False
        if not led.is_settled:
            return True
        candidate = self.candidate(led)
        if candidate is None:
            self.unblock(led)
            return False
        blocked = led.blocked
        if blocked is None:
            return True
        if blocked.base_offset != candidate.segment.base_offset:
            self.unblock(led)
            return True
        return self._environment.clock.monotonic_ms() >= blocked.retry_at_ms

    async def run(self, led: LedPartition) -> float | None:
        """Copy the next segment, if there is one and it may be copied now.

        Returns:
            When to check again, in ms (0: there is more); None: after the task interval.

        Raises:
            TieredError, StorageError: It failed, and was rolled back as far as possible.
        """
        if not self.is_due(led):
            return None
        if not led.is_settled:
            led.settle(self._metadata, self._deletion)
            if not self.is_due(led):
                return None
        candidate = self.candidate(led)
        if candidate is None:
            return None
        wait_ms = self.quota.wait_ms()
        if wait_ms > 0:
            return wait_ms
        self.quota.charge(candidate.segment.size)
        try:
            await self._copy_or_rebuild(led, candidate)
        except CorruptSegmentError as error:
            self._counters.of(led.tiered.partition.topic).copy_errors += 1
            self._block(led, candidate, error)
            return None
        except (TieredError, StorageError) as error:
            self._counters.of(led.tiered.partition.topic).copy_errors += 1
            if isinstance(error, RemoteStorageError):
                self._trouble.failed(Work.COPIES, error)
            raise
        self._trouble.worked(Work.COPIES)
        if led.is_active:
            self.unblock(led)
        return 0.0 if self.is_due(led) else None

    # -- how ---------------------------------------------------------------------------------

    async def _copy_or_rebuild(self, led: LedPartition, candidate: Candidate) -> None:
        if candidate.segment.may_be_cut:
            await self._check_whole(led, candidate.segment)
            if not candidate.segment.size:
                return
        try:
            await self.copy.run(led, candidate)
        except CorruptSegmentError as error:
            if not error.rebuildable:
                raise
            _log.warning(
                "%s: rebuilding a segment's indexes before it is copied: %s",
                led.tiered.partition,
                error,
            )
        else:
            return
        await self._rebuild(candidate.segment)
        self._counters.of(led.tiered.partition.topic).rebuilt_indexes += 1
        if led.may_change:
            await self.copy.run(led, candidate)

    async def _check_whole(self, led: LedPartition, segment: Segment) -> None:
        """What is missing of a file would be lost with its copy: first another replica is asked.

        The reader that finds it has it filled up; a later attempt finds the segment whole.
        """
        wholeness = led.tiered.log.reader.wholeness
        try:
            await self._environment.run_blocking(lambda: wholeness.check(segment))
        except CutSegmentError as error:
            raise CorruptSegmentError(segment.path, -1, str(error), rebuildable=False) from error

    async def _rebuild(self, segment: Segment) -> None:
        rebuilt: list[IndexedSegment] = []

        def rebuild() -> None:
            # In files of their own: the loop reads those in use meanwhile.
            rebuilt.append(segment.rebuild_beside())

        deadline = self._deadlines.of(1, f"rebuilding {segment.path}", size=segment.size)
        try:
            async with deadline:
                await self._environment.run_blocking(rebuild)
            segment.take_indexes(rebuilt[0])
        except StorageError as error:
            raise CorruptSegmentError(segment.path, -1, str(error), rebuildable=False) from error

    def unblock(self, led: LedPartition) -> None:
        """Nothing is known to hold up the copying of a partition."""
        led.blocked = None
        self._alerts.clear(AlertKind.TIER_COPY_BLOCKED, str(led.tiered.partition))

    def _block(self, led: LedPartition, candidate: Candidate, error: CorruptSegmentError) -> None:
        base_offset = candidate.segment.base_offset
        partition = led.tiered.partition
        self._alerts.set(
            AlertKind.TIER_COPY_BLOCKED,
            str(partition),
            f"The segment of {partition} at offset {base_offset} is not copied, nor what follows "
            f"it, and the local log grows: {error}. Replace the file by an intact copy, or "
            f"skip it: `varve tier skip {partition.topic}:{partition.partition} --start "
            f"{base_offset} --execute`.",
        )
        if led.blocked is None or led.blocked.base_offset != base_offset:
            self._counters.of(led.tiered.partition.topic).corrupt_segments += 1
        led.blocked = BlockedSegment(
            base_offset,
            error.path,
            str(error),
            self._environment.clock.monotonic_ms() + BLOCKED_RETRY_MS,
        )
