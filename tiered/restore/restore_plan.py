"""Restore plan of one partition: which segments, from where to where. Decides only.

The newest segment decides on the history: the one whose last leader epoch is the highest, and among
these the one that ends last. With it the leader epochs of the whole log were stored, and a segment
that does not fit them is of another history (`tiered.metadata.lineage`). The others are laid side
by side:

    lineage   epoch 0 @ 0                       epoch 2 @ 150              newest
    found     [0 ........ 99] [80 ..... 149]    [150 ... 199]              [300 ... 399]
                   [50 ... 120] superseded: the ones around it are enough
              [90 ... 160] epoch 1: another history
    restored  without gaps: 300 .. 399;  with gaps: 0 .. 399, and 200 .. 299 are lost

What lies below the log start is not restored, also where a segment reaches below it: records that
DeleteRecords has removed stay removed. Should it lie above all segments the log is empty, and goes
on from there; one without segments goes on from where its history says that they ended.

Of copies that begin early enough, the one that reaches furthest is taken; of equal ones the latest.

No gap are offsets of which the copy behind them says that the log had no record there: compaction
had emptied those segments, and empty ones are not copied.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from tiered.metadata.lineage import Lineage, without_empty_epochs
from tiered.segment_metadata import RemoteLogSegmentMetadata, TopicIdPartition

FOREIGN: Final = "of another history"
"""Why a segment is left out that does not fit the leader epochs."""


class FoundCopy(Protocol):
    """A segment that was found, by its manifest or by a reference to it."""

    @property
    def metadata(self) -> RemoteLogSegmentMetadata:
        """What is known of it."""
        ...

    @property
    def created_ms(self) -> int:
        """When it was copied."""
        ...


C = TypeVar("C", bound=FoundCopy)


class Gap(NamedTuple):
    """Offsets that no segment has, `end` exclusive."""

    start: int
    end: int


class LeftOut(NamedTuple):
    """A segment that is not restored."""

    segment: RemoteLogSegmentMetadata
    reason: str


class PartitionPlan(NamedTuple, Generic[C]):
    """What a partition will be.

    Attributes:
        partition: Which.
        log_start_offset: First offset to be read.
        end_offset: The next record's offset; exclusive end of what is restored.
        leader_epochs: (epoch, start offset) of all of it, ascending.
        segments: Those restored, ascending; together they cover it, but for `gaps`. None where the
            log start lies above them.
        newest: The one that decided: its producer snapshot is the log's at its end. None where no
            segment can be read, and the partition's history tells where the log ended.
        gaps: Found between the first and the last segment, whether or not they are in the range;
            and before the first, where it is known that the log began earlier.
        left_out: Segments that are not restored, and why.
    """

    partition: TopicIdPartition
    log_start_offset: int
    end_offset: int
    leader_epochs: tuple[tuple[int, int], ...]
    segments: tuple[C, ...]
    newest: C | None
    gaps: tuple[Gap, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def size_bytes(self) -> int:
        """Of the restored segments' logs."""
        return sum(one.metadata.segment_size_bytes for one in self.segments)


def newest_first(segments: Iterable[C]) -> list[C]:
    """In the order in which they may decide on a partition's history."""

    def rank(one: C) -> tuple[int, int, int, int]:
        metadata = one.metadata
        epochs = without_empty_epochs(metadata.segment_leader_epochs)
        return epochs[-1][0], metadata.end_offset, metadata.start_offset, one.created_ms

    return sorted(segments, key=rank, reverse=True)


def _unknown(_: FoundCopy) -> int | None:
    return None


def plan_partition(
    newest: C,
    others: Iterable[C],
    leader_epochs: Sequence[tuple[int, int]],
    *,
    allow_gaps: bool = False,
    log_start_offset: int = 0,
    copied_from: int | None = None,
    empty_from: Callable[[C], int | None] = _unknown,
) -> PartitionPlan[C]:
    """Choose among a partition's segments.

    Args:
        newest: The first of `newest_first` that can be read.
        others: The partition's other segments, in any order.
        leader_epochs: What was stored with `newest`: of the log up to its end, from the log start
            offset it had then.
        allow_gaps: Keep what lies before a gap.
        log_start_offset: Where the log starts at least, as recorded elsewhere.
        copied_from: From where on there were copies, as recorded elsewhere; None: nowhere. What no
            segment has from there on is a gap.
        empty_from: From where up to a copy's start the log had no record; None: it had, or unknown.
    """
    end = newest.metadata.end_offset + 1
    epochs = [(epoch, offset) for epoch, offset in leader_epochs if offset < end]
    lineage = Lineage(epochs, end)
    left_out: list[LeftOut] = []
    usable: list[C] = [newest]
    # What was deleted from the log start on may still be in the bucket, for a while.
    floor = max(epochs[0][1] if epochs else newest.metadata.start_offset, log_start_offset)
    for one in others:
        if not lineage.contains(one.metadata):
            left_out.append(LeftOut(one.metadata, FOREIGN))
        elif one.metadata.end_offset < floor:
            left_out.append(LeftOut(one.metadata, "below the log start offset"))
        else:
            usable.append(one)
    if floor >= end:
        left_out += [LeftOut(one.metadata, "below the log start offset") for one in usable]
        return PartitionPlan(
            partition=newest.metadata.partition,
            log_start_offset=floor,
            end_offset=floor,
            leader_epochs=_from(epochs, floor),
            segments=(),
            newest=newest,
            gaps=(),
            left_out=tuple(sorted(left_out, key=lambda one: one.segment.start_offset)),
        )
    begin = None if copied_from is None else max(copied_from, floor)
    chain, gaps = _lay_out(usable, begin, empty_from)
    first = 0
    if gaps and not allow_gaps:
        first = next(
            at for at, one in enumerate(chain) if one.metadata.start_offset >= gaps[-1].end
        )
        left_out += [LeftOut(one.metadata, "before a gap") for one in chain[:first]]
    laid = {one.metadata.segment_id for one in chain}
    left_out += [
        LeftOut(one.metadata, "superseded by another copy")
        for one in usable
        if one.metadata.segment_id not in laid
    ]
    kept = tuple(chain[first:])
    start = max(kept[0].metadata.start_offset, floor)
    return PartitionPlan(
        partition=newest.metadata.partition,
        log_start_offset=start,
        end_offset=end,
        leader_epochs=_from(epochs, start),
        segments=kept,
        newest=newest,
        gaps=tuple(gaps),
        left_out=tuple(sorted(left_out, key=lambda one: one.segment.start_offset)),
    )


def plan_empty(
    partition: TopicIdPartition,
    leader_epochs: Sequence[tuple[int, int]],
    end_offset: int,
    left_out: Sequence[LeftOut] = (),
) -> "PartitionPlan[C]":
    """A log without records that goes on where it ended: its offsets are not given out again.

    Args:
        partition: Which.
        leader_epochs: (epoch, start offset) up to the end, ascending, as far as they are known.
        end_offset: The next record's.
        left_out: Segments that cannot be read.
    """
    epochs = [(epoch, offset) for epoch, offset in leader_epochs if offset <= end_offset]
    return PartitionPlan(
        partition=partition,
        log_start_offset=end_offset,
        end_offset=end_offset,
        leader_epochs=_from(epochs, end_offset),
        segments=(),
        newest=None,
        gaps=(),
        left_out=tuple(left_out),
    )


def _lay_out(
    segments: Sequence[C], start: int | None, empty_from: Callable[[C], int | None]
) -> tuple[list[C], list[Gap]]:
    """The fewest segments that cover what all cover, and what is not covered in between.

    `start`: the log began there; None: with the first of them.
    """
    waiting = sorted(segments, key=lambda one: one.metadata.start_offset)
    chain: list[C] = []
    gaps: list[Gap] = []
    covered = waiting[0].metadata.start_offset if start is None else start
    at = 0
    while at < len(waiting):
        best: C | None = None
        while at < len(waiting) and waiting[at].metadata.start_offset <= covered:
            one = waiting[at]
            if best is None or _reach(one) > _reach(best):
                best = one
            at += 1
        if best is None:
            following = waiting[at].metadata.start_offset
            known = [
                empty_from(one) for one in waiting[at:] if one.metadata.start_offset == following
            ]
            end = min((one for one in known if one is not None), default=following)
            if covered < end:
                gaps.append(Gap(covered, end))
            covered = following
            continue
        reached = best.metadata.end_offset + 1
        if reached > covered or not chain:
            chain.append(best)
            covered = max(covered, reached)
    return chain, gaps


def _reach(one: FoundCopy) -> tuple[int, int]:
    return one.metadata.end_offset, one.created_ms


def _from(epochs: Sequence[tuple[int, int]], start: int) -> tuple[tuple[int, int], ...]:
    """The epochs of what begins at `start`: the one it begins in begins there."""
    before = [epoch for epoch, offset in epochs if offset <= start]
    after = tuple((epoch, offset) for epoch, offset in epochs if offset > start)
    return ((before[-1], start), *after) if before else after
