"""Copying closed segments to remote storage.

A segment is a candidate when it is closed, all of it is committed (its end is at most the last
stable offset) and on disk (at most the recovery point: its indexes too), and some of it lies above
the highest remote offset. One at a time per partition, oldest first:

    tell COPY_SEGMENT_STARTED ──> upload ──> tell COPY_SEGMENT_FINISHED ──> highest remote offset
                                     │
                                     └─failed─> remove it again at once
                                     (`tiered.tasks.segment_deletion`)

Every attempt has a new id, so nothing is ever overwritten. Whatever is left behind, by a crash, a
lost leadership or a failed removal, is found by the expirer.

A segment that may not be copied holds up those after it. To pass it over would raise the highest
remote offset across a gap, and local retention would then delete the only good copy of what cannot
be read; Kafka too copies in order. It is reported once, counted, kept, and looked at again later.

Source: Kafka, RemoteLogManager.java (RLMCopyTask).
"""

import logging
from bisect import bisect_left
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from storage.checkpoints.checkpoint_files import encode_epochs
from storage.environment.alerts import AlertKind, Alerts
from storage.environment.clock import Clock
from storage.environment.filesystem import Filesystem
from storage.environment.randomness import Randomness
from storage.environment.timer import Timer
from storage.errors import StorageError
from storage.log.log import Log
from storage.segment.segment import Segment
from storage.types.log_files import LOG_SUFFIX, SKIPPED_SUFFIX, log_file_name
from tiered.deadline import METADATA_DEADLINE_MS, Deadline, call_deadline_ms
from tiered.errors import CorruptSegmentError, RemoteStorageError, TieredError
from tiered.metadata.interface import RemoteLogMetadataManager
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    SegmentEpoch,
    SegmentState,
)
from tiered.settings import TierSettings
from tiered.tasks.copy_quota import CopyQuota
from tiered.tasks.copy_watch import CopyWatch
from tiered.tasks.led_partition import BlockedSegment, LedPartition, uncopied_segments
from tiered.tasks.segment_deletion import SegmentDeletion
from tiered.tasks.task_counters import TaskCounters
from tiered.tier import CopyResult, SegmentFiles, Tier

_log = logging.getLogger(__name__)

BLOCKED_RETRY_MS: Final = 600_000.0
"""A refused segment is read again so often: it costs a pass over all of it."""

_CALLS: Final = 4
"""Of an upload beside the log's bytes: indexes, manifest, and taking back what was uploaded."""

Run = Callable[[Callable[[], None]], Awaitable[None]]
"""Calls something that blocks, where it does not hold up the loop."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A local segment and its end offset, exclusive."""

    segment: Segment
    end_offset: int


class Copier:
    """See the module.

    Attributes:
        in_flight: Ids of the copies under way, their removal after a failure included; at most
            `copier_tasks`. Nobody else touches these segments.
        quota: Of all copies.
        watch: Says which copies are stalled.
    """

    __slots__ = (
        "_alerts",
        "_broker_id",
        "_clock",
        "_counters",
        "_deletion",
        "_filesystem",
        "_metadata",
        "_randomness",
        "_run_blocking",
        "_settings",
        "_tier",
        "_timer",
        "in_flight",
        "quota",
        "watch",
    )

    def __init__(
        self,
        *,
        metadata: RemoteLogMetadataManager,
        tier: Tier,
        deletion: SegmentDeletion,
        clock: Clock,
        timer: Timer,
        randomness: Randomness,
        filesystem: Filesystem,
        broker_id: int,
        settings: Callable[[], TierSettings],
        counters: TaskCounters,
        run_blocking: Run,
        progress: Callable[[UUID], int] | None = None,
        alerts: Alerts | None = None,
    ) -> None:
        """Nothing runs before `run`.

        Args:
            metadata: Where copies are told.
            tier: Does the work.
            deletion: For failed copies.
            clock: Time.
            timer: Deadlines.
            randomness: Ids.
            filesystem: Of the logs.
            broker_id: Of this broker.
            settings: The present ones.
            counters: Per topic.
            run_blocking: See `Run`; for rebuilding an index.
            progress: Bytes that a copy has moved so far, by segment id; None: it cannot be told,
                and a copy counts as stalled when it takes longer than `stalled_copy_ms`.
            alerts: Where it is said that a segment holds up its partition.
        """
        self._metadata = metadata
        self._tier = tier
        self._deletion = deletion
        self._clock = clock
        self._timer = timer
        self._randomness = randomness
        self._filesystem = filesystem
        self._broker_id = broker_id
        self._settings = settings
        self._counters = counters
        self._run_blocking = run_blocking
        self._alerts = Alerts() if alerts is None else alerts
        self.in_flight: set[UUID] = set()
        self.quota = CopyQuota(clock, settings())
        self.watch = CopyWatch(clock, timer, progress)

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
        """Whether `run` would do something; the quota is not looked at."""
        if not (led.is_active and led.tiered.log.copies_to_remote) or led.stopped_copying:
            return False
        if self._settings().copy_paused or led.tiered.copy_paused():
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
        return self._clock.monotonic_ms() >= blocked.retry_at_ms

    async def run(self, led: LedPartition) -> float | None:
        """Copy the next segment, if there is one and it may be copied now.

        Returns:
            When to look again, in ms (0: there is more); None: after the task interval.

        Raises:
            TieredError, StorageError: It failed, and was taken back as far as possible.
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
        except (TieredError, StorageError):
            self._counters.of(led.tiered.partition.topic).copy_errors += 1
            raise
        return 0.0 if self.is_due(led) else None

    # -- how ---------------------------------------------------------------------------------

    async def _copy_or_rebuild(self, led: LedPartition, candidate: Candidate) -> None:
        try:
            await self._copy(led, candidate)
            return
        except CorruptSegmentError as error:
            if not error.rebuildable:
                raise
            _log.warning(
                "%s: rebuilding the index before the copy: %s", led.tiered.partition, error
            )
        await self._rebuild(candidate.segment)
        self._counters.of(led.tiered.partition.topic).rebuilt_indexes += 1
        if led.is_active:
            await self._copy(led, candidate)

    async def _rebuild(self, segment: Segment) -> None:
        rebuilt: list[Segment] = []

        def rebuild() -> None:
            # In files of their own: the loop reads those in use meanwhile.
            rebuilt.append(segment.rebuild_beside())

        deadline_ms = call_deadline_ms(self._settings().store.call_timeout_ms, 1, segment.size)
        try:
            async with Deadline(self._timer, deadline_ms, f"rebuilding {segment.path}"):
                await self._run_blocking(rebuild)
            segment.take_indexes(rebuilt[0])
        except StorageError as error:
            raise CorruptSegmentError(segment.path, -1, str(error), rebuildable=False) from error

    async def _copy(self, led: LedPartition, candidate: Candidate) -> None:
        tiered = led.tiered
        counters = self._counters.of(tiered.partition.topic)
        epochs = tiered.log.leader_epochs
        if not epochs.is_synced:
            # The segment may leave this disk once it is copied, and no batch tells them then.
            await self._run_blocking(epochs.sync)
        files = self._files(tiered.log, candidate)
        metadata = self._describe(led, candidate, files)
        self.in_flight.add(metadata.id)
        try:
            async with Deadline(self._timer, METADATA_DEADLINE_MS, "telling of a copy"):
                await self._metadata.add(metadata)
            counters.copy_requests += 1
            try:
                result = await self._upload(led, metadata, files)
                self._check_custom_metadata(led, result)
            except (TieredError, StorageError, OSError):
                await self._take_back(metadata)
                raise
            await self._tell_finished(metadata, result)
        finally:
            # Unless it went well, the metadata may know more of it than was answered.
            led.is_settled = False
            self.in_flight.discard(metadata.id)
        counters.copy_bytes += candidate.segment.size
        counters.copied_segments += 1
        counters.uploaded_bytes += result.uploaded_bytes
        if led.is_active:
            led.is_settled = True
            self.unblock(led)
            tiered.log.highest_remote_offset = max(
                tiered.log.highest_remote_offset, metadata.end_offset
            )

    def _files(self, log: Log, candidate: Candidate) -> SegmentFiles:
        segment, end = candidate.segment, candidate.end_offset
        snapshot = log.producer_snapshot_path(end)
        if not self._filesystem.exists(snapshot):
            # A follower that starts from this segment would take a retry for a new record.
            raise CorruptSegmentError(snapshot, -1, "no producer snapshot", rebuildable=False)
        epochs = [entry for entry in log.leader_epochs.entries() if entry[1] < end]
        index = segment.transaction_index
        return SegmentFiles(
            log=segment.path,
            offset_index=segment.offset_index.path,
            time_index=segment.time_index.path,
            producer_snapshot=snapshot,
            transaction_index=index.path if index.entry_count else None,
            leader_epochs=encode_epochs(epochs),
            empty_from=self._empty_from(log, segment),
        )

    def _empty_from(self, log: Log, segment: Segment) -> int | None:
        """Where the segments begin, directly before this one, that compaction has left empty.

        Those that somebody gave up (`tiered.tasks.skip`) are empty, too: their records are lost.
        """
        segments = log.segment_facts()
        at = first = bisect_left(segments, segment.base_offset, key=lambda one: one.base_offset)
        while first and not segments[first - 1].size:
            before = segments[first - 1]
            name = log_file_name(before.base_offset, LOG_SUFFIX, SKIPPED_SUFFIX)
            if self._filesystem.exists(f"{before.directory}/{name}"):
                break
            first -= 1
        return segments[first].base_offset if first < at else None

    def _describe(
        self, led: LedPartition, candidate: Candidate, files: SegmentFiles
    ) -> RemoteLogSegmentMetadata:
        log, segment = led.tiered.log, candidate.segment
        epochs = log.leader_epochs.entries_in_range(segment.base_offset, candidate.end_offset)
        if not epochs:
            raise CorruptSegmentError(segment.path, -1, "no known leader epoch", rebuildable=False)
        # DeleteRecords may have moved the start of the first known epoch into the segment.
        epochs[0] = (epochs[0][0], segment.base_offset)
        return RemoteLogSegmentMetadata(
            segment_id=RemoteLogSegmentId(led.tiered.partition, self._randomness.uuid4()),
            start_offset=segment.base_offset,
            end_offset=candidate.end_offset - 1,
            max_timestamp_ms=segment.largest_timestamp,
            broker_id=self._broker_id,
            event_timestamp_ms=self._clock.now_ms(),
            segment_size_bytes=segment.size,
            segment_leader_epochs=tuple(SegmentEpoch(*entry) for entry in epochs),
            txn_index_empty=files.transaction_index is None,
        )

    async def _upload(
        self, led: LedPartition, metadata: RemoteLogSegmentMetadata, files: SegmentFiles
    ) -> CopyResult:
        settings = self._settings()
        deadline_ms = settings.stalled_copy_ms + call_deadline_ms(
            settings.store.call_timeout_ms, _CALLS, metadata.segment_size_bytes
        )
        with self.watch.watching(metadata.id, settings.stalled_copy_ms):
            async with Deadline(self._timer, deadline_ms, f"copy of {files.log}"):
                return await self._tier.copy_segment(metadata, files, led.tiered.facts())

    def _check_custom_metadata(self, led: LedPartition, result: CopyResult) -> None:
        limit = self._settings().custom_metadata_max_bytes
        custom = result.custom_metadata
        if custom is not None and len(custom) > limit:
            problem = f"{len(custom)} bytes of custom metadata are above the limit of {limit}"
            led.stopped_copying = problem
            _log.error("%s: copying stops: %s", led.tiered.partition, problem)
            raise RemoteStorageError(problem)

    async def _take_back(self, metadata: RemoteLogSegmentMetadata) -> None:
        try:
            await self._deletion.delete(metadata, own=True)
        except TieredError as error:
            _log.warning("failed copy %s stays for the expiry task: %s", metadata.id, error)

    async def _tell_finished(self, metadata: RemoteLogSegmentMetadata, result: CopyResult) -> None:
        update = RemoteLogSegmentMetadataUpdate(
            segment_id=metadata.segment_id,
            event_timestamp_ms=self._clock.now_ms(),
            state=SegmentState.COPY_SEGMENT_FINISHED,
            broker_id=self._broker_id,
            custom_metadata=result.custom_metadata,
        )
        async with Deadline(self._timer, METADATA_DEADLINE_MS, "telling of a copy's end"):
            await self._metadata.update(update)

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
            f"it, and the local log grows: {error}. Put a sound copy of the file in its place, or "
            f"give it up: `varve tier skip {partition.topic}:{partition.partition} --start "
            f"{base_offset} --execute`.",
        )
        if led.blocked is None or led.blocked.base_offset != base_offset:
            self._counters.of(led.tiered.partition.topic).corrupt_segments += 1
        led.blocked = BlockedSegment(
            base_offset, error.path, str(error), self._clock.monotonic_ms() + BLOCKED_RETRY_MS
        )
