"""The segments of a log, in order."""

from storage.segment.segment import Segment
from storage.segment.segments import Segments
from tests.fakes.filesystem import FakeFilesystem


def _segments(*bases: int) -> Segments:
    segments = Segments()
    for base in bases:
        segments.add(
            Segment("/d", base, FakeFilesystem(), index_interval_bytes=100, index_max_bytes=100)
        )
    return segments


def test_they_are_kept_in_order() -> None:
    """Whatever order they come in; the last one is active."""
    segments = _segments(20, 0, 10)
    assert [segment.base_offset for segment in segments] == [0, 10, 20]
    assert segments.active.base_offset == 20
    segments.remove(segments[1])
    assert [segment.base_offset for segment in segments] == [0, 20]
    segments.clear()
    assert len(segments) == 0


def test_the_floor_holds_the_offset() -> None:
    """None before the first."""
    segments = _segments(5, 10, 20)
    found = [segments.floor(offset) for offset in (4, 5, 9, 10, 19, 20, 99)]
    assert [segment and segment.base_offset for segment in found] == [None, 5, 5, 10, 10, 20, 20]
    assert [segment.base_offset for segment in segments.from_offset(12)] == [10, 20]
    assert [segment.base_offset for segment in segments.from_offset(0)] == [5, 10, 20]


def test_a_segment_ends_where_the_next_begins() -> None:
    """The active one at the log end offset."""
    segments = _segments(5, 10, 20)
    assert [segments.end_of(at, 33) for at in range(3)] == [10, 20, 33]
