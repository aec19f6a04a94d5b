"""Which segments compaction makes one of."""

from storage.cleaner.cleaning import SegmentSize
from storage.cleaner.segment_groups import group_segments


def groups(
    segments: list[SegmentSize],
    *,
    size_max: int = 100,
    index_size_max: int = 100,
    index_size: int = 1,
    first_uncleanable_offset: int | None = None,
) -> list[list[int]]:
    """Base offsets of the groups of all but the last segment."""
    end = first_uncleanable_offset
    return [
        [segment.base_offset for segment in group]
        for group in group_segments(
            segments[:-1],
            segments,
            size_max=size_max,
            index_size_max=index_size_max,
            index_sizes=lambda _: index_size,
            first_uncleanable_offset=segments[-1].base_offset if end is None else end,
        )
    ]


def sizes(*entries: int) -> list[SegmentSize]:
    """Segments of ten offsets each."""
    return [SegmentSize(index * 10, size) for index, size in enumerate(entries)]


def test_as_many_as_fit() -> None:
    """A segment that fills one alone stays alone."""
    assert groups(sizes(40, 60, 1, 100, 30, 30, 30, 30, 5)) == [
        [0, 10],
        [20],
        [30],
        [40, 50, 60],
        [70],
    ]


def test_index_counts_too() -> None:
    """Many small batches need many entries."""
    assert groups(sizes(1, 1, 1, 1, 1), index_size=50) == [[0, 10], [20, 30]]


def test_relative_offsets_fit_31_bits() -> None:
    """An empty segment has none, whatever its range."""
    far = 2**31
    segments = [SegmentSize(0, 1), SegmentSize(10, 1), SegmentSize(far, 1), SegmentSize(far + 1, 1)]
    assert groups(segments) == [[0, 10], [far]]
    segments[1] = SegmentSize(10, 0)
    assert groups([*segments[:2], SegmentSize(far + 5, 1)]) == [[0, 10]]
    segments[1] = SegmentSize(10, 1)
    assert groups([*segments[:2], SegmentSize(far + 5, 1)]) == [[0], [10]]


def test_nothing_to_group() -> None:
    """An active segment alone."""
    assert groups(sizes(50)) == []
