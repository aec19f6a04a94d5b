"""Copy of one closed segment to remote storage.

    describe ──> publish COPY_SEGMENT_STARTED ──> upload ──> publish COPY_SEGMENT_FINISHED
                                                    │
                                                    ├─failed─> delete the copy at once
                                                    │          (`tiered.tasks.segment_deletion`)
                                                    └─the next leader gives it up meanwhile
                                                               ─> remove its objects

Before it begins and before it counts the bucket must be the one that this broker has claimed
(`tiered.maintenance.bucket_ownership`): into an empty folder, where the bucket's disk is not
mounted, everything can be copied. One that stood there for a part of the upload has got the first
objects, so that all of them are looked for before the copy counts.

Every attempt has a new id, so nothing is ever overwritten. What a crash, a lost leadership or a
failed deletion leaves in the bucket is found by the expirer (`tiered.tasks.unfinished_copies`).

A leader that is not certain to be one (any more) publishes nothing, and deletes nothing: the next
one may have taken the copy over. What it publishes too late all the same is refused by everybody
who reads it, since the copy was ended before. Objects that were uploaded after the next leader had
removed what there was are removed once the metadata says that the copy was ended, and its upload
has ended, too.

Source: Kafka, RemoteLogManager.java (RLMCopyTask.copyLogSegment).
"""

import logging
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final
from uuid import UUID

from config.tier import TierConfig
from storage.checkpoints.checkpoint_files import encode_epochs
from storage.environment.environment import Environment
from storage.errors import DiskError, StorageError
from storage.log.log import Log
from storage.segment.segment import Segment
from storage.types.log_files import LOG_SUFFIX, SKIPPED_SUFFIX, log_file_name
from tiered.deadline import CallDeadlines
from tiered.errors import (
    CorruptSegmentError,
    RemoteStorageError,
    RemoteStorageNotReadyError,
    TieredError,
)
from tiered.maintenance.bucket_ownership import Claim
from tiered.metadata.publisher import MetadataPublisher
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    SegmentEpoch,
    SegmentState,
)
from tiered.tasks.copy_watch import CopyWatch
from tiered.tasks.led_partition import LedPartition
from tiered.tasks.segment_deletion import SegmentDeletion
from tiered.tasks.task_counters import TaskCounters
from tiered.tier import CopyResult, SegmentFiles, Tier, bytes_moved

_log = logging.getLogger(__name__)

LEFT_MAX: Final = 1_000
"""Copies that are followed until their end is known; of more, the oldest are not any more."""

_CALLS: Final = 4
"""Of an upload beside the log's bytes: indexes, manifest, and deleting what was uploaded."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A local segment and its end offset, exclusive."""

    segment: Segment
    end_offset: int


class SegmentCopy:
    """Copies one segment; see the module. Shared by all partitions.

    Attributes:
        in_flight: Ids of the copies under way, their deletion after a failure included; at most as
            many as the copier pool has tasks. No other task changes these segments.
        watch: Which copies are stalled.
    """

    __slots__ = (
        "_claim",
        "_counters",
        "_deadlines",
        "_deletion",
        "_environment",
        "_left",
        "_metadata",
        "_publisher",
        "_settings",
        "_tier",
        "in_flight",
        "watch",
    )

    def __init__(
        self,
        *,
        metadata: RemoteLogMetadataManager,
        publisher: MetadataPublisher,
        tier: Tier,
        deadlines: CallDeadlines,
        deletion: SegmentDeletion,
        environment: Environment,
        settings: Callable[[], TierConfig],
        counters: TaskCounters,
        claim: Claim,
    ) -> None:
        """Copy nothing yet; `settings` gives the present ones, `deletion` is for failed copies."""
        self._metadata = metadata
        self._publisher = publisher
        self._tier = tier
        self._deadlines = deadlines
        self._deletion = deletion
        self._environment = environment
        self._settings = settings
        self._counters = counters
        self._claim = claim
        self.in_flight: set[UUID] = set()
        # Copies begun here of whose end nothing is known yet, oldest first.
        self._left: OrderedDict[UUID, RemoteLogSegmentMetadata] = OrderedDict()
        self.watch = CopyWatch(
            environment.clock,
            environment.timer,
            lambda segment: bytes_moved(tier.statistics(), segment),
        )

    async def run(self, led: LedPartition, candidate: Candidate) -> None:
        """Copy the segment, and raise the log's highest remote offset.

        Raises:
            CorruptSegmentError: It cannot be copied as it is.
            TieredError, StorageError: It failed, and was deleted as far as possible.
        """
        tiered = led.tiered
        counters = self._counters.of(tiered.partition.topic)
        self._claim.require_bucket()
        epochs = tiered.log.leader_epochs
        if not epochs.is_synced:
            # Retention may delete the local segment once it is copied, and its batches hold them.
            try:
                await self._environment.run_blocking(epochs.sync)
            except DiskError as error:
                if error.is_disk_failure:
                    # The kernel tells of a failed sync once: the next one would prove nothing.
                    tiered.on_disk_failed(error)
                raise
        files = self._files(tiered.log, candidate)
        metadata = self._describe(led, candidate, files)
        _require_certainty(led)
        self.in_flight.add(metadata.id)
        try:
            await self._publisher.copy_started(metadata)
            counters.copy_requests += 1
            self._leave(metadata)
            try:
                result = await self._upload(led, metadata, files)
                self._check_custom_metadata(led, result)
                await self._claim.require_bucket_now()
                await self._require_whole(metadata)
            except (TieredError, StorageError, OSError):
                if led.may_change and await self._roll_back(metadata):
                    self._left.pop(metadata.id, None)
                raise
            _require_certainty(led)
            await self._publisher.segment_state(
                metadata, SegmentState.COPY_SEGMENT_FINISHED, result.custom_metadata
            )
            self._left.pop(metadata.id, None)
        finally:
            # Unless it went well, the metadata may know more of it than was answered.
            led.is_settled = False
            self.in_flight.discard(metadata.id)
        counters.copy_bytes += candidate.segment.size
        counters.copied_segments += 1
        counters.uploaded_bytes += result.uploaded_bytes
        if led.is_active:
            tiered.log.highest_remote_offset = max(
                tiered.log.highest_remote_offset, metadata.end_offset
            )
            # Where it has filled a hole, what lies behind it is copied already.
            last_epoch = metadata.segment_leader_epochs[-1].epoch
            highest = self._metadata.highest_offset(tiered.partition, last_epoch)
            led.is_settled = highest is None or highest <= metadata.end_offset

    def _files(self, log: Log, candidate: Candidate) -> SegmentFiles:
        segment, end = candidate.segment, candidate.end_offset
        snapshot = log.producer_snapshot_path(end)
        if not self._environment.filesystem.exists(snapshot):
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
        """The base offset of the empty segments directly before this one; None: there are none.

        Compaction has emptied them. Skipped ones (`tiered.tasks.skip`) do not count: their records
        are lost.
        """
        segments = log.segment_facts()
        at = first = bisect_left(segments, segment.base_offset, key=lambda one: one.base_offset)
        while first and not segments[first - 1].size:
            before = segments[first - 1]
            name = log_file_name(before.base_offset, LOG_SUFFIX, SKIPPED_SUFFIX)
            if self._environment.filesystem.exists(f"{before.directory}/{name}"):
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
            segment_id=RemoteLogSegmentId(
                led.tiered.partition, self._environment.randomness.uuid4()
            ),
            start_offset=segment.base_offset,
            end_offset=candidate.end_offset - 1,
            max_timestamp_ms=segment.largest_timestamp,
            broker_id=self._publisher.broker_id,
            event_timestamp_ms=self._environment.clock.now_ms(),
            segment_size_bytes=segment.size,
            segment_leader_epochs=tuple(SegmentEpoch(*entry) for entry in epochs),
            txn_index_empty=files.transaction_index is None,
        )

    async def _upload(
        self, led: LedPartition, metadata: RemoteLogSegmentMetadata, files: SegmentFiles
    ) -> CopyResult:
        settings = self._settings()
        deadline = self._deadlines.of(
            _CALLS,
            f"copy of {files.log}",
            size=metadata.segment_size_bytes,
            extra_ms=settings.tier_stalled_copy_ms,
        )
        with self.watch.watching(metadata.id, settings.tier_stalled_copy_ms):
            async with deadline:
                return await self._tier.copy_segment(metadata, files, led.tiered.facts())

    async def _require_whole(self, metadata: RemoteLogSegmentMetadata) -> None:
        """Look for all that was uploaded: the first objects may lie in another bucket.

        The claim alone shows where the last ones are.

        Raises:
            RemoteStorageError: Something is missing.
        """
        async with self._deadlines.of(_CALLS, f"look at the copy {metadata.id}"):
            is_whole = await self._tier.is_complete(metadata)
        if not is_whole:
            raise RemoteStorageError(f"{metadata.id}: what was uploaded is not all in the bucket")

    def _check_custom_metadata(self, led: LedPartition, result: CopyResult) -> None:
        limit = self._settings().remote_log_metadata_custom_metadata_max_bytes
        custom = result.custom_metadata
        if custom is not None and len(custom) > limit:
            problem = f"{len(custom)} bytes of custom metadata are above the limit of {limit}"
            led.stopped_copying = problem
            _log.error(
                "%s: copying to remote storage is blocked: %s", led.tiered.partition, problem
            )
            raise RemoteStorageError(problem)

    # -- copies whose end is another leader's to say -------------------------------------------

    def _leave(self, metadata: RemoteLogSegmentMetadata) -> None:
        self._left[metadata.id] = metadata
        while len(self._left) > LEFT_MAX:
            self._left.popitem(last=False)

    def has_given_up(self) -> bool:
        """Whether another leader has ended copies of this process, whose uploads have ended too."""
        for metadata in list(self._left.values()):
            if self._is_ready(metadata) and self._end_of(metadata) is _End.FINISHED:
                del self._left[metadata.id]
        return any(self._is_given_up(metadata) for metadata in self._left.values())

    async def remove_given_up(self) -> None:
        """Remove the objects of such copies: what came after the other's removal has no record.

        Raises:
            TieredError: Not all of it is done; call again.
        """
        for metadata in list(self._left.values()):
            if not self._is_given_up(metadata):
                continue
            _log.warning(
                "%s: copy %s was given up, here or by another leader: removing its objects",
                metadata.partition,
                metadata.id,
            )
            async with self._deadlines.of(_CALLS, f"removal of {metadata.id}"):
                await self._tier.delete_segment(metadata)
            self._left.pop(metadata.id, None)

    def _is_given_up(self, metadata: RemoteLogSegmentMetadata) -> bool:
        return (
            # What an upload under way has not put yet would come after the removal.
            metadata.id not in self.in_flight
            and self._is_ready(metadata)
            and self._end_of(metadata) is _End.GIVEN_UP
        )

    def _is_ready(self, metadata: RemoteLogSegmentMetadata) -> bool:
        partition = metadata.partition
        # Where events may be lost, that one is unknown says nothing.
        return self._metadata.is_ready(partition) and not self._metadata.doubt(partition)

    def _end_of(self, metadata: RemoteLogSegmentMetadata) -> "_End":
        """What has become of it; its beginning was read back, so unknown means removed."""
        known = self._metadata.known_of(metadata.partition).segment(metadata.id)
        if known is None or known.state is SegmentState.DELETE_SEGMENT_STARTED:
            return _End.GIVEN_UP
        if known.state is SegmentState.COPY_SEGMENT_FINISHED:
            return _End.FINISHED
        return _End.OPEN

    async def _roll_back(self, metadata: RemoteLogSegmentMetadata) -> bool:
        try:
            await self._deletion.delete(metadata, own=True)
        except TieredError as error:
            _log.warning(
                "failed copy of remote segment %s is left to the expiration task: %s",
                metadata.id,
                error,
            )
            return False
        return True


class _End(Enum):
    """What the metadata says of a copy of this process."""

    OPEN = "open"
    FINISHED = "finished"
    GIVEN_UP = "given up"


def _require_certainty(led: LedPartition) -> None:
    """Raises RemoteStorageNotReadyError: another broker may lead the partition by now."""
    if not led.may_change:
        raise RemoteStorageNotReadyError(
            f"{led.tiered.partition}: nothing is published, another broker may lead it by now"
        )
