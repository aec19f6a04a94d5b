"""A log without the rows of which its bucket does not say whether they were committed.

A transaction's marker may lie in a later segment than its rows. Where that one is missing, or its
index cannot be read, what was open when the hole began may have been aborted in it:

    offsets   [ segment ........ 7 begins ... ][ hole: 7's marker? ][ segment ........ ]
    snapshot  of the segment before the hole: 7 is open since ^
    kept      [ ................ )                                  [ ................ )

So the rows from the first transaction on that was open there are made part of the hole: a broker
that is given is asked for them, and without one they are lost. Who begins behind the hole ends
behind it, and what began before it and ended behind it is told by the later segment's index.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pipeline.plan.aborts import AbortedTransactions, read_aborts
from pipeline.plan.bucket import Bucket
from pipeline.plan.errors import DamagedBucketError
from pipeline.plan.layout import Gap, LaidSegment
from pipeline.plan.listing import KEYS
from pipeline.plan.partition_log import DamagedObject, PartitionLog
from pipeline.plan.segment_files import read_segment_files
from pipeline.plan.tail import stable_end
from storage.errors import CorruptFileError
from tiered.tier import SideFile


class KnownOutcomes(NamedTuple):
    """A log whose rows of a range are known to be committed, or aborted.

    Attributes:
        log: Without the rows that may be either: they are gaps.
        aborted: Those of the range.
    """

    log: PartitionLog
    aborted: AbortedTransactions


async def with_known_outcomes(
    bucket: Bucket, log: PartitionLog, start: int, end: int
) -> KnownOutcomes:
    """Read the transaction indexes for [start, end), and leave out what they do not cover.

    That costs the indexes alone, and one request more for each gap behind `start`. An index that
    cannot be read is in the log's `damaged`, and its segment is a hole.

    Raises:
        ObjectNotFoundError: A segment was removed: read the partition's log again.
        RemoteStorageError: The store cannot give one, or a key pair is missing.
        PlanError: There are too many aborted transactions.
    """
    readable = log
    broken: list[LaidSegment] = []
    damaged: list[DamagedObject] = []
    while True:
        try:
            aborted = await read_aborts(bucket, readable, start, end)
        except DamagedBucketError as error:
            found = _segment_of(readable.segments, error.key)
            if found is None:
                raise
            broken.append(found)
            damaged.append(
                DamagedObject(
                    error.key, error.position, error.problem, max(found.start_offset, start)
                )
            )
            rest = tuple(one for one in readable.segments if one is not found)
            readable = readable._replace(segments=rest)
        else:
            break
    holes = [Gap(gap.start, gap.start) for gap in log.gaps if gap.start > start]
    holes += [Gap(one.start_offset, one.end_offset) for one in broken if one.end_offset > start]
    if not holes:
        return KnownOutcomes(log, aborted)
    hidden = [Gap(await _settled_end(bucket, readable, hole.start), hole.end) for hole in holes]
    without = _without(log, [gap for gap in hidden if gap.start < min(gap.end, end)])
    return KnownOutcomes(without._replace(damaged=(*log.damaged, *damaged)), aborted)


def _segment_of(segments: Sequence[LaidSegment], key: str) -> LaidSegment | None:
    return next((one for one in segments if key in KEYS.segment_keys(one.metadata)), None)


async def _settled_end(bucket: Bucket, log: PartitionLog, hole_start: int) -> int:
    """End of the rows before a hole whose transactions had ended by then, exclusive."""
    for one in reversed(log.segments):
        if one.end_offset > hole_start or one.end_offset != one.metadata.end_offset + 1:
            # Of a segment that is cut the snapshot says what was open at another offset.
            continue
        try:
            _, _, files = await read_segment_files(
                bucket, one.metadata, (SideFile.PRODUCER_SNAPSHOT,)
            )
            return stable_end(
                files[SideFile.PRODUCER_SNAPSHOT], log.log_start_offset, one.end_offset
            )
        except (DamagedBucketError, CorruptFileError, KeyError):
            continue
    return log.log_start_offset


def _without(log: PartitionLog, hidden: Iterable[Gap]) -> PartitionLog:
    """A log with more gaps."""
    gaps: list[Gap] = []
    for gap in sorted([*log.gaps, *hidden]):
        if gaps and gap.start <= gaps[-1].end:
            gaps[-1] = Gap(gaps[-1].start, max(gap.end, gaps[-1].end))
        else:
            gaps.append(gap)
    segments: list[LaidSegment] = []
    for one in log.segments:
        at = one.start_offset
        for gap in gaps:
            if gap.end <= at or gap.start >= one.end_offset:
                continue
            if at < gap.start:
                segments.append(one._replace(start_offset=at, end_offset=gap.start))
            at = gap.end
        if at < one.end_offset:
            segments.append(one._replace(start_offset=at))
    return log._replace(segments=tuple(segments), gaps=tuple(gaps))
