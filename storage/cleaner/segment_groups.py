"""Neighbouring segments that compaction makes one of, so that their number stays low."""

from collections.abc import Callable, Sequence
from typing import Final

from storage.cleaner.cleaning import SegmentSize

_RELATIVE_OFFSET_MAX: Final = 2**31 - 1


def _next_base_offset(segment: SegmentSize, segments: Sequence[SegmentSize]) -> int:
    return next(s.base_offset for s in segments if s.base_offset > segment.base_offset)


def group_segments(
    cleanable: Sequence[SegmentSize],
    segments: Sequence[SegmentSize],
    *,
    size_max: int,
    index_size_max: int,
    index_sizes: Callable[[SegmentSize], int],
    first_uncleanable_offset: int,
) -> list[list[SegmentSize]]:
    """Split the segments to be cleaned into runs whose remains fit one segment each.

    Compaction makes segments small; putting neighbours together keeps their number down. A group
    is bounded by log size, index size, and the range of relative offsets.

    Args:
        cleanable: Segments to be cleaned, ascending.
        segments: All of the log's: a segment ends where the next begins.
        size_max: `segment.bytes`.
        index_size_max: `segment.index.bytes`.
        index_sizes: Size of a segment's offset index file, in bytes.
        first_uncleanable_offset: Where the last one ends at most.
    """
    groups: list[list[SegmentSize]] = []
    size = index_size = 0
    for segment in cleanable:
        end = min(_next_base_offset(segment, segments), max(first_uncleanable_offset, 0))
        segment_index_size = index_sizes(segment)
        fits = (
            bool(groups)
            and size + segment.size <= size_max
            and index_size + segment_index_size <= index_size_max
            and (segment.size == 0 or end - 1 - groups[-1][0].base_offset <= _RELATIVE_OFFSET_MAX)
        )
        if fits:
            groups[-1].append(segment)
            size += segment.size
            index_size += segment_index_size
        else:
            groups.append([segment])
            size, index_size = segment.size, segment_index_size
    return groups
