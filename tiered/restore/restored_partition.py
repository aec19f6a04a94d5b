"""What of one partition can be restored: its newest segment, or its history, decides."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from storage.checkpoints.checkpoint_files import decode_epochs
from storage.errors import CorruptFileError
from storage.producers.snapshot import decode_snapshot, encode_rows
from tiered.errors import CorruptRemoteDataError, ObjectNotFoundError
from tiered.format.manifest import SegmentManifest
from tiered.metadata.history import HistorySummary
from tiered.restore.restore_plan import (
    LeftOut,
    PartitionPlan,
    newest_first,
    plan_empty,
    plan_partition,
)
from tiered.segment_metadata import TopicIdPartition
from tiered.tier import SideFile, Tier


@dataclass(slots=True)
class RestoredPartition:
    """A partition and what its local log begins with.

    Attributes:
        plan: Its segments.
        producer_snapshot: As of their end; without producers where none can be read.
        history_epoch: The latest leader epoch that its history knows of; -1: none.
    """

    plan: PartitionPlan[SegmentManifest]
    producer_snapshot: bytes
    history_epoch: int = -1


async def restored_partition(
    tier: Tier,
    partition: TopicIdPartition,
    segments: list[SegmentManifest],
    history: HistorySummary | None,
    problems: list[str],
    *,
    allow_gaps: bool,
) -> RestoredPartition | None:
    """What the partition's log begins with; None: no segment can be read, and there is no history.

    Args:
        tier: Reads the bucket.
        partition: Which.
        segments: All of it, in any order.
        history: Its history; None: it has none.
        problems: Gets sentences about what cannot be given back.
        allow_gaps: See `plan_partition`.

    Raises:
        RemoteStorageError: The bucket cannot be read now.
    """
    unusable: list[LeftOut] = []
    decided = await decide(tier, segments, history, problems, unusable, allow_gaps=allow_gaps)
    if decided is not None:
        plan, snapshot = decided
        plan = plan._replace(left_out=(*plan.left_out, *unusable))
        problems += missing_in(plan)
        if history is not None:
            problems += _lost_end(history, plan.leader_epochs, plan.end_offset)
        return RestoredPartition(plan, snapshot, -1 if history is None else history.leader_epoch)
    if history is None:
        return None
    problems += _lost_end(history, (), history.log_start_offset)
    empty: PartitionPlan[SegmentManifest] = plan_empty(
        partition, history.leader_epochs, history.end_offset, unusable
    )
    return RestoredPartition(empty, encode_rows((), 0), history.leader_epoch)


async def decide(
    tier: Tier,
    segments: Iterable[SegmentManifest],
    history: HistorySummary | None,
    problems: list[str],
    unusable: list[LeftOut],
    *,
    allow_gaps: bool,
) -> tuple[PartitionPlan[SegmentManifest], bytes] | None:
    """The plan by the newest segment that can be read, and its producer snapshot; None: no such.

    `problems` and `unusable` get the segments whose side files are damaged or gone.
    """
    waiting = newest_first(segments)
    while waiting:
        newest = waiting.pop(0)
        try:
            data = await tier.fetch_side_file(newest.metadata, SideFile.LEADER_EPOCH)
            epochs = decode_epochs(data, "leader epochs")
            snapshot = await tier.fetch_side_file(newest.metadata, SideFile.PRODUCER_SNAPSHOT)
        except (CorruptRemoteDataError, CorruptFileError, ObjectNotFoundError) as error:
            problems.append(f"{newest.metadata.partition}: {error}")
            unusable.append(LeftOut(newest.metadata, "its side files cannot be read"))
            continue
        plan = plan_partition(
            newest,
            waiting,
            epochs,
            allow_gaps=allow_gaps,
            log_start_offset=0 if history is None else history.log_start_offset,
            copied_from=_copied_from(history),
            empty_from=lambda one: one.empty_from,
        )
        return plan, snapshot
    return None


def missing_in(plan: PartitionPlan[SegmentManifest]) -> list[str]:
    """A sentence for each gap of a plan."""
    return [
        f"{plan.partition}: offsets {gap.start} to {gap.end - 1} are missing" for gap in plan.gaps
    ]


async def unsettled_before_gaps(tier: Tier, plan: PartitionPlan[SegmentManifest]) -> list[str]:
    """Sentences about records before a gap whose transactions may have been aborted in it.

    Whether they were is told by the transaction index of the segment that has the marker, and
    nothing else; so brokers give them to read_committed consumers.
    """
    sentences = []
    for gap in plan.gaps:
        before = [one for one in plan.segments if one.metadata.end_offset < gap.start]
        if not before:
            continue
        try:
            data = await tier.fetch_side_file(before[-1].metadata, SideFile.PRODUCER_SNAPSHOT)
            producers = decode_snapshot(data, "of the segment before a gap")
        except (CorruptRemoteDataError, CorruptFileError, ObjectNotFoundError):
            first = before[-1].metadata.start_offset
        else:
            open_at = [one.txn_first_offset for one in producers if one.txn_first_offset >= 0]
            if not open_at:
                continue
            first = max(min(open_at), plan.log_start_offset)
        sentences.append(
            f"{plan.partition}: transactions that were open before offset {gap.start}, from offset "
            f"{first} on, may have been aborted in what is missing: read_committed consumers get "
            "their records"
        )
    return sentences


def _copied_from(history: HistorySummary | None) -> int | None:
    """Where the copies begin that a history names; None where it names none.

    One that names none may be older than the first copies behind its end, and these may have
    expired since: only what a history names goes after it was written anew.
    """
    if history is None or history.log_start_offset >= history.end_offset:
        return None
    return history.log_start_offset


def _lost_end(
    history: HistorySummary, leader_epochs: Sequence[tuple[int, int]], end_offset: int
) -> list[str]:
    """A sentence where a history has more of a log than there is: its end is never removed.

    A later leader may have overwritten that end, and the history may be from before that: then
    there are leader epochs which it does not know.
    """
    known = max((epoch for epoch, _ in history.leader_epochs), default=-1)
    if history.end_offset <= end_offset or any(epoch > known for epoch, _ in leader_epochs):
        return []
    return [f"{history.partition}: offsets {end_offset} to {history.end_offset - 1} are missing"]
