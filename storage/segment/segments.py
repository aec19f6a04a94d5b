"""The segments of one log, in order, and which of them holds an offset."""

from bisect import bisect_right
from collections.abc import Iterator

from storage.segment.segment import Segment


class Segments:
    """Ascending by base offset; never empty once a log is open. The last one is active."""

    __slots__ = ("_bases", "_segments")

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._segments: list[Segment] = []

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, at: int) -> Segment:
        return self._segments[at]

    @property
    def active(self) -> Segment:
        """The one that is appended to."""
        return self._segments[-1]

    def add(self, segment: Segment) -> None:
        """Put a segment in its place; there must be none with its base offset."""
        at = bisect_right(self._bases, segment.base_offset)
        assert at == 0 or self._bases[at - 1] < segment.base_offset, segment
        self._bases.insert(at, segment.base_offset)
        self._segments.insert(at, segment)

    def remove(self, segment: Segment) -> None:
        """Take a segment out; its files stay."""
        at = self._segments.index(segment)
        del self._segments[at]
        del self._bases[at]

    def clear(self) -> None:
        """Take all out."""
        self._segments.clear()
        self._bases.clear()

    def index_of(self, offset: int) -> int:
        """Index of the segment that holds `offset`, -1 if it is before the first."""
        return bisect_right(self._bases, offset) - 1

    def floor(self, offset: int) -> Segment | None:
        """The segment that holds `offset`, None if it is before the first."""
        at = bisect_right(self._bases, offset) - 1
        return self._segments[at] if at >= 0 else None

    def from_offset(self, offset: int) -> list[Segment]:
        """The segment that holds `offset` and all after it; all if it is before the first."""
        return self._segments[max(self.index_of(offset), 0) :]

    def end_of(self, at: int, log_end_offset: int) -> int:
        """Exclusive end of the segment at index `at`: the next one's base offset."""
        return self._bases[at + 1] if at + 1 < len(self._bases) else log_end_offset
