"""Expiry plan: which remote segments expire, and why. `tiered.tasks.expirer` carries it out.

    leftover        COPY_SEGMENT_STARTED that no copy of this broker owns
    unfinished      DELETE_SEGMENT_STARTED: a removal that did not get through
    log start       all of it is below the log start offset (DeleteRecords, earlier retention)
    time            its newest record is at least `retention.ms` old
    size            without it the log still has `retention.bytes`, local and remote together

Time and size apply to finished segments of the lineage, oldest first, and stop at the first that
stays: the log has no holes. What is copied and local counts once.

A segment outside the lineage (the epochs of a past that was truncated, or that this replica never
knew) is not readable here, and not counted. It goes when it lies below the log start, unless a
later leader than this one wrote it. Above the log start it is kept: an empty disk, or a replica
that was elected unclean, would otherwise destroy what a restore could still use (KAFKA-14888).
Kafka removes such segments when their epochs are all below the first one known; the price of
keeping them is space until the log start has passed them, and a gauge shows it.

Source: Kafka, RemoteLogManager.java (cleanupExpiredRemoteLogSegments, buildRetentionSizeData);
KAFKA-16511, KAFKA-17428.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from tiered.metadata.lineage import Lineage
from tiered.metadata.readable_bytes import ReadableBytes
from tiered.segment_metadata import RemoteLogSegmentMetadata, SegmentState


class ExpiryReason(Enum):
    """Why a segment goes."""

    UNFINISHED = "its removal was not finished"
    LOG_START_OFFSET = "below the log start offset"
    TIME = "older than retention.ms"
    SIZE = "beyond retention.bytes"


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """Retention limits of the topic; None: no limit.

    Attributes:
        keep_after_ms: Wall clock: segments whose newest record is not younger go.
        keep_bytes: `retention.bytes`.
    """

    keep_after_ms: int | None
    keep_bytes: int | None


@dataclass(slots=True)
class ExpiryPlan:
    """What to do.

    Attributes:
        leftovers: To be resolved.
        removals: To be removed, in this order.
        log_start_offset: To be set before the first removal; None: as it is.
        unreferenced: Finished segments outside the lineage that are kept.
    """

    leftovers: list[RemoteLogSegmentMetadata] = field(default_factory=list)
    removals: list[tuple[RemoteLogSegmentMetadata, ExpiryReason]] = field(default_factory=list)
    log_start_offset: int | None = None
    unreferenced: int = 0

    @property
    def is_empty(self) -> bool:
        """There is nothing to do."""
        return not self.leftovers and not self.removals


def plan_expiry(
    segments: Sequence[RemoteLogSegmentMetadata],
    unfinished: Iterable[RemoteLogSegmentMetadata],
    lineage: Lineage,
    limits: RetentionLimits,
    readable: ReadableBytes,
    *,
    log_start_offset: int,
    leader_epoch: int,
    only_local_bytes: int,
    in_flight: Collection[RemoteLogSegmentMetadata],
) -> ExpiryPlan:
    """See the module. Examines the oldest segments only, up to the first that stays.

    Args:
        segments: All of the partition's in any state, ascending by start offset.
        unfinished: Those that are not COPY_SEGMENT_FINISHED, in the same order.
        lineage: Of the leader.
        limits: Of the topic.
        readable: The sums, up to date.
        log_start_offset: Of the log.
        leader_epoch: Of the leadership.
        only_local_bytes: Of segments that are not copied, the active one included.
        in_flight: Those that a copy owns: left alone.
    """
    plan = ExpiryPlan()
    owned = {segment.id for segment in in_flight}
    for segment in unfinished:
        if segment.id in owned:
            continue
        if segment.state is SegmentState.COPY_SEGMENT_STARTED:
            plan.leftovers.append(segment)
        elif segment.state is SegmentState.DELETE_SEGMENT_STARTED:
            plan.removals.append((segment, ExpiryReason.UNFINISHED))

    def is_below(segment: RemoteLogSegmentMetadata) -> bool:
        return segment.end_offset < log_start_offset and _is_ours(segment, lineage, leader_epoch)

    remote_bytes = readable.bytes
    for segment in in_flight:
        if segment.state is SegmentState.COPY_SEGMENT_FINISHED and readable.counts(segment):
            remote_bytes -= segment.segment_size_bytes
    for segment in segments:
        if segment.start_offset >= log_start_offset:
            break
        is_finished = segment.state is SegmentState.COPY_SEGMENT_FINISHED
        if is_finished and segment.id not in owned and is_below(segment):
            plan.removals.append((segment, ExpiryReason.LOG_START_OFFSET))
            if readable.counts(segment):
                remote_bytes -= segment.segment_size_bytes
    plan.unreferenced = sum(
        segment.id not in owned and not is_below(segment) for segment in readable.outside.values()
    )
    oldest_first = (
        segment
        for segment in segments
        if segment.state is SegmentState.COPY_SEGMENT_FINISHED
        and segment.id not in owned
        and not is_below(segment)
        and lineage.contains(segment)
    )
    excess = 0
    if limits.keep_bytes is not None:
        excess = only_local_bytes + remote_bytes - limits.keep_bytes
    _add_expired(plan, oldest_first, limits, excess)
    return plan


def _is_ours(segment: RemoteLogSegmentMetadata, lineage: Lineage, leader_epoch: int) -> bool:
    """No later leader wrote it: a leader that was replaced, and does not know, keeps its hands off.

    Kafka asks for the lineage's first epoch instead. A segment that was overwritten by a later
    epoch would then stay until the first epoch has gone too: for ever, on a topic whose leader
    never changes again.
    """
    latest = max(leader_epoch, lineage.last_epoch if lineage.last_epoch is not None else -1)
    return segment.segment_leader_epochs[-1].epoch <= latest


def _add_expired(
    plan: ExpiryPlan,
    readable: Iterable[RemoteLogSegmentMetadata],
    limits: RetentionLimits,
    excess: int,
) -> None:
    for segment in readable:
        size = segment.segment_size_bytes
        if limits.keep_after_ms is not None and segment.max_timestamp_ms <= limits.keep_after_ms:
            reason = ExpiryReason.TIME
        elif excess > 0 and excess >= size:
            reason = ExpiryReason.SIZE
        else:
            break
        excess = max(0, excess - size)
        plan.removals.append((segment, reason))
        end = segment.end_offset + 1
        plan.log_start_offset = max(end, plan.log_start_offset or 0)
