"""Retention: which segments of a log may go, and why. Decides only; the log deletes.

Oldest first and without a gap, in Kafka's order:

    log start    all of it is below the log start offset (DeleteRecords, or the remote log's)
    size         without it the log still has `retention.bytes`
    time         its newest record is older than `retention.ms`

Never a segment that reaches beyond the high watermark: no follower, and no remote copy, could have
it all. Never the active segment either: when time or size reach it, the log is to roll first, and
the next pass takes it.

With remote storage on, `local.retention.*` count instead, and a segment must have been copied, or
lie below the log start offset altogether.

Source: Kafka, UnifiedLog.java (deleteOldSegments, deletableSegments); KIP-405, KIP-1020.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from config.topic import TopicConfig

NO_LIMIT: Final = -1
AS_TOTAL: Final = -2
"""`local.retention.*`: as `retention.*`."""


class SegmentFacts(Protocol):
    """What retention asks of a segment. `largest_timestamp` is only asked for when it counts."""

    @property
    def base_offset(self) -> int:
        """First offset it may hold."""
        ...

    @property
    def size(self) -> int:
        """Bytes of its log file."""
        ...

    @property
    def largest_timestamp(self) -> int:
        """Of its records, ms; where they have none, the file's last modification."""
        ...


class RetentionReason(Enum):
    """Why a segment goes."""

    LOG_START_OFFSET = "below the log start offset"
    SIZE = "beyond retention.bytes"
    TIME = "older than retention.ms"


@dataclass(frozen=True, slots=True)
class RetentionPlan:
    """What to delete, oldest first.

    Attributes:
        reasons: One for each of the oldest segments; as many go as there are reasons.
        roll_active: Time or size reach the active segment: roll it, so that the next pass finds it.
    """

    reasons: tuple[RetentionReason, ...]
    roll_active: bool

    def __len__(self) -> int:
        return len(self.reasons)


def plan_retention(
    segments: Sequence[SegmentFacts],
    config: "TopicConfig",
    *,
    log_start_offset: int,
    high_watermark: int,
    log_end_offset: int,
    now_ms: int,
    remote_storage: bool = False,
    highest_remote_offset: int = -1,
) -> RetentionPlan:
    """Decide which of the oldest segments go.

    Args:
        segments: All of the log's, ascending; the last one is the active segment.
        config: Of the topic.
        log_start_offset: With remote storage on, the local one.
        high_watermark: Segments that reach beyond it stay.
        log_end_offset: Where the active segment ends.
        now_ms: Wall clock.
        remote_storage: Whether segments are copied to remote storage (and copying is not disabled:
            else the topic's whole retention counts here too).
        highest_remote_offset: Last offset copied, inclusive; -1: none.
    """
    total = sum(segment.size for segment in segments)
    retention_ms, retention_bytes = _limits(config, remote_storage)
    by_policy = "delete" in config.cleanup_policy or (remote_storage and not config.cleanup_policy)
    reasons: list[RetentionReason] = []
    excess = total - retention_bytes if by_policy and retention_bytes >= 0 else -1
    for index, segment in enumerate(segments):
        is_active = index == len(segments) - 1
        end = log_end_offset if is_active else segments[index + 1].base_offset
        if high_watermark < end:
            break
        below_log_start = not is_active and end <= log_start_offset
        if below_log_start:
            reason = RetentionReason.LOG_START_OFFSET
        elif excess >= 0 and excess - segment.size >= 0:
            reason = RetentionReason.SIZE
        elif by_policy and retention_ms >= 0 and now_ms - segment.largest_timestamp > retention_ms:
            reason = RetentionReason.TIME
        else:
            break
        if is_active:
            return RetentionPlan(tuple(reasons), roll_active=segment.size > 0)
        if remote_storage and not below_log_start and end - 1 > highest_remote_offset:
            break
        excess -= segment.size
        reasons.append(reason)
    return RetentionPlan(tuple(reasons), roll_active=False)


def _limits(config: "TopicConfig", remote_storage: bool) -> tuple[int, int]:
    """(ms, bytes) that count locally; negative: no limit."""
    if not remote_storage:
        return config.retention_ms, config.retention_bytes
    local_ms, local_bytes = config.local_retention_ms, config.local_retention_bytes
    return (
        config.retention_ms if local_ms == AS_TOTAL else local_ms,
        config.retention_bytes if local_bytes == AS_TOTAL else local_bytes,
    )
