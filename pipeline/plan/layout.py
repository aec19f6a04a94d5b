"""Layout of a partition: the segments that are its log, and the offsets each of them gives.

The choice is that of a restore (`tiered.restore.restore_plan`): the newest segment decides by its
leader epochs, other histories are out, of overlapping copies the one that reaches furthest. A
reader adds two things: each segment is cut where the one before it ended, so that every offset
comes once; and of a segment whose end was overwritten by a later leader, what was not overwritten
is still read, as the broker reads it (`tiered.metadata.epoch_bounds`):

    lineage   epoch 0 @ 0                  epoch 3 @ 180                    newest
    found     [0 ........ 99] [80 ................ 220]  [180 ..... 260] [261 .. 399]
    laid      0 ......... 99   100 .... 179               180 ..... 260   261 .. 399
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from tiered.metadata.lineage import without_empty_epochs
from tiered.restore.restore_plan import FOREIGN, Gap, newest_first, plan_partition
from tiered.segment_metadata import RemoteLogSegmentMetadata

__all__ = ["FoundSegment", "Gap", "LaidSegment", "Layout", "lay_out", "newest_first"]


class FoundSegment(NamedTuple):
    """A segment that was found whole, by its manifest or in a history object.

    Attributes:
        metadata: As it is in the layout: its end may be cut off.
        created_ms: When it was copied.
        whole: As it was copied.
    """

    metadata: RemoteLogSegmentMetadata
    created_ms: int
    whole: RemoteLogSegmentMetadata


class LaidSegment(NamedTuple):
    """A segment and the offsets that are read from it, exclusive end.

    Attributes:
        metadata: As it was copied.
        start_offset, end_offset: Rows it gives; within the segment.
    """

    metadata: RemoteLogSegmentMetadata
    start_offset: int
    end_offset: int


class Layout(NamedTuple):
    """A partition's log as its bucket has it.

    Attributes:
        log_start_offset: Least offset to be read.
        end_offset: Exclusive.
        leader_epochs: (epoch, start offset) of all of it, ascending.
        segments: Ascending; their offsets do not overlap.
        gaps: Offsets between them that no segment has.
    """

    log_start_offset: int
    end_offset: int
    leader_epochs: tuple[tuple[int, int], ...]
    segments: tuple[LaidSegment, ...]
    gaps: tuple[Gap, ...]


def lay_out(
    newest: FoundSegment,
    others: Iterable[FoundSegment],
    leader_epochs: Sequence[tuple[int, int]],
    log_start_offset: int | None = None,
) -> Layout:
    """Choose and cut.

    Args:
        newest: The first of `newest_first` that can be read.
        others: The partition's other segments.
        leader_epochs: Stored with `newest`: of the log up to its end.
        log_start_offset: As its leader has recorded, perhaps before `newest` was copied; what is
            below is not read, and what is missing from there on is a gap. None: it begins with the
            first segment.
    """
    end = newest.metadata.end_offset + 1
    rest = [*others]
    plan = plan_partition(newest, rest, leader_epochs, allow_gaps=True)
    foreign = {one.segment.segment_id for one in plan.left_out if one.reason == FOREIGN}
    if foreign:
        epochs = without_empty_epochs(entry for entry in leader_epochs if entry[1] < end)
        cut = [
            _not_overwritten(one, epochs, end) for one in rest if one.metadata.segment_id in foreign
        ]
        kept = [one for one in cut if one is not None]
        if kept:
            plan = plan_partition(newest, [*rest, *kept], leader_epochs, allow_gaps=True)
    start = plan.log_start_offset
    if log_start_offset is not None:
        start = max(log_start_offset, _start_of_copy(rest, leader_epochs, log_start_offset))
    segments = []
    gaps = []
    covered = start
    for one in plan.segments:
        stop = one.metadata.end_offset + 1
        first = max(one.metadata.start_offset, covered)
        if first < stop:
            if first > covered:
                gaps.append(Gap(covered, first))
            segments.append(LaidSegment(one.whole, first, stop))
            covered = stop
    return Layout(
        start,
        max(start, end),
        _epochs_from(plan.leader_epochs, start),
        tuple(segments),
        tuple(gaps),
    )


def _start_of_copy(
    others: Iterable[FoundSegment], leader_epochs: Sequence[tuple[int, int]], recorded: int
) -> int:
    """Where the log began when the newest segment was copied, by the epochs stored with it.

    What was recorded may be older than that: records that were never copied have expired since.
    Where there is a copy of what lies between, one of the two is wrong, and nothing is passed over.
    """
    start = min((offset for _, offset in leader_epochs), default=0)
    if any(one.whole.start_offset < start and one.whole.end_offset >= recorded for one in others):
        return recorded
    return start


def found(metadata: RemoteLogSegmentMetadata, created_ms: int) -> FoundSegment:
    """A segment as it was copied."""
    return FoundSegment(metadata, created_ms, metadata)


def _not_overwritten(
    one: FoundSegment, lineage: Sequence[tuple[int, int]], end: int
) -> FoundSegment | None:
    """The part up to the last offset at which the lineage has the segment's own epoch.

    Two logs with the same epoch at an offset are the same up to there (KIP-101).
    """
    metadata = one.metadata
    own = without_empty_epochs(metadata.segment_leader_epochs)
    ranges = {
        epoch: (start, lineage[at + 1][1] if at + 1 < len(lineage) else end)
        for at, (epoch, start) in enumerate(lineage)
    }
    valid = metadata.start_offset
    for at, (epoch, start) in enumerate(own):
        stop = own[at + 1][1] if at + 1 < len(own) else metadata.end_offset + 1
        start_here, stop_here = ranges.get(epoch, (0, 0))
        if max(start, start_here) < min(stop, stop_here):
            valid = min(stop, stop_here)
    if valid <= metadata.start_offset:
        return None
    cut = replace(
        metadata,
        end_offset=valid - 1,
        segment_leader_epochs=tuple(
            entry for entry in metadata.segment_leader_epochs if entry.offset < valid
        ),
    )
    return one._replace(metadata=cut)


def _epochs_from(epochs: Sequence[tuple[int, int]], start: int) -> tuple[tuple[int, int], ...]:
    """The epochs of what begins at `start`: the one it begins in begins there."""
    before = [epoch for epoch, offset in epochs if offset <= start]
    after = tuple(entry for entry in epochs if entry[1] > start)
    return ((before[-1], start), *after) if before else after
