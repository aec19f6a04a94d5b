"""Handover from a bucket's part of a log to a broker's, and the check that they are one log.

    offsets    broker's start                handover                 broker's end
               v                             v                        v
    rows       [ bucket                      )[ Fetch                 )

The broker's word counts for start and end. That the bucket is a part of its log is asked once: the
leader epoch of the bucket's last record must reach as far in the broker's log (KIP-320). A bucket
that does not fit belongs to another history: a node restored from an older state, an unclean
leader, a recreated topic. That is reported; rows of two histories are never mixed.
"""

from typing import Final, NamedTuple
from uuid import UUID

from pipeline.plan.partition_log import PartitionLog
from pipeline.plan.piece import PartitionName

_NIL: Final = UUID(int=0)


class EpochEnd(NamedTuple):
    """A broker's answer to OffsetForLeaderEpoch.

    Attributes:
        leader_epoch: The greatest one at or below the one asked for; -1: it knows none.
        end_offset: Where it ended, exclusive; -1 likewise.
    """

    leader_epoch: int
    end_offset: int


class BrokerLog(NamedTuple):
    """Offsets and leader epoch of a partition on its broker.

    Attributes:
        partition: With the topic's id; all zeros where the broker has none.
        start_offset: The earliest one.
        end_offset: Exclusive: the high watermark, or the last stable offset for committed readers.
        leader_epoch: Of the leader, -1: unknown.
        epoch_end: The answer to `epoch_to_ask`; None: it was not asked.
    """

    partition: PartitionName
    start_offset: int
    end_offset: int
    leader_epoch: int = -1
    epoch_end: EpochEnd | None = None


class Handover(NamedTuple):
    """Offsets that come from the bucket, and those that come from the broker.

    Attributes:
        start_offset, end_offset: Of the log; the end is exclusive.
        offset: Below it the bucket is read, from it on the broker.
        leader_epoch: For Fetch.
        problem: Why the bucket is no part of the broker's log, as a sentence; "": it is. Then
            nothing is to be read from the bucket.
    """

    start_offset: int
    end_offset: int
    offset: int
    leader_epoch: int
    problem: str = ""


def epoch_to_ask(log: PartitionLog, *, read_committed: bool) -> int | None:
    """The leader epoch of the last record that would come from the bucket; None without one."""
    end = log.end(read_committed=read_committed)
    if end <= log.log_start_offset:
        return None
    epochs = [epoch for epoch, offset in log.leader_epochs if offset < end]
    return epochs[-1] if epochs else None


def hand_over(log: PartitionLog | None, broker: BrokerLog, *, read_committed: bool) -> Handover:
    """Compare a bucket's log with what the broker says of the partition.

    Args:
        log: As the bucket has it; None: it has nothing.
        broker: As the leader has it, asked after the bucket was read.
        read_committed: Where the bucket's part ends is its stable end then.
    """
    start, end = broker.start_offset, broker.end_offset
    whole = Handover(start, end, start, broker.leader_epoch)
    if log is None:
        return whole
    bucket_end = log.end(read_committed=read_committed)
    problem = _problem(log, bucket_end, broker, read_committed=read_committed)
    if problem:
        return whole._replace(problem=problem)
    return whole._replace(offset=max(start, min(bucket_end, end)))


def _problem(log: PartitionLog, bucket_end: int, broker: BrokerLog, *, read_committed: bool) -> str:
    name = f"{log.partition.topic}-{log.partition.partition}"
    broker_topic_id = broker.partition.topic_id
    if broker_topic_id != _NIL and broker_topic_id != log.partition.topic_id:
        return (
            f"{name}: the bucket has topic id {log.partition.topic_id}, the broker "
            f"{broker_topic_id}: the topic was recreated"
        )
    epoch = epoch_to_ask(log, read_committed=read_committed)
    if epoch is None:
        return ""
    if bucket_end > broker.end_offset:
        return (
            f"{name}: the bucket ends at offset {bucket_end}, the broker's log at "
            f"{broker.end_offset}: it is another history, as of a node that was restored from an "
            "older state"
        )
    if broker.epoch_end is None or broker.start_offset >= bucket_end:
        return ""  # the bucket is not read, or there is nothing to compare with
    known, known_end = broker.epoch_end
    if known != epoch or known_end < bucket_end:
        there = "none" if known < 0 else f"epoch {known} up to offset {known_end}"
        return (
            f"{name}: the bucket ends at offset {bucket_end} in leader epoch {epoch}, of which the "
            f"broker's log has {there}: it is another history"
        )
    return ""


def absent_ranges(
    log: PartitionLog | None, handover_offset: int, start: int, end: int
) -> list[tuple[int, int]]:
    """Parts of [start, end) that are not the bucket's: its gaps, and all from the handover on."""
    missing = [] if log is None else log.missing(start, min(end, handover_offset))
    ranges = [*missing, (max(start, handover_offset), end)]
    return [(first, last) for first, last in ranges if first < last]
