"""Rebuilds the offset and the time index of a segment from the batches in it."""

from storage.index.offset_index import OffsetIndex
from storage.index.time_index import NO_TIMESTAMP, TimeIndex


class IndexBuilder:
    """Fills both indexes of a segment by the rule that appending follows.

    Attributes:
        interval: `index.interval.bytes`.
        timestamp: Greatest max timestamp so far, ms; -1 if no batch has one.
        timestamp_offset: Last offset of the first batch that has it.
    """

    __slots__ = (
        "_last_entry_end",
        "_offset_index",
        "_time_index",
        "interval",
        "timestamp",
        "timestamp_offset",
    )

    def __init__(self, offset_index: OffsetIndex, time_index: TimeIndex, interval: int) -> None:
        """Empty both indexes."""
        self._offset_index = offset_index
        self._time_index = time_index
        self.interval = interval
        self._last_entry_end = 0
        self.timestamp = NO_TIMESTAMP
        self.timestamp_offset = time_index.base_offset
        offset_index.reset()
        time_index.reset()

    def add(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Add the next batch; arguments as for `Segment.append`."""
        if max_timestamp > self.timestamp:
            self.timestamp = max_timestamp
            self.timestamp_offset = last_offset
        if position - self._last_entry_end > self.interval:
            self._offset_index.append(last_offset, position)
            self._time_index.maybe_append(self.timestamp, self.timestamp_offset)
            self._last_entry_end = position

    def finish(self) -> None:
        """Write the final time index entry."""
        self._time_index.maybe_append(self.timestamp, self.timestamp_offset)
