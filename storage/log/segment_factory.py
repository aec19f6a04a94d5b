"""Making the segments of a log with the topic's settings: of files there are, and new ones."""

from storage.environment.randomness import Randomness
from storage.log.state import LogState
from storage.segment.segment import Segment


class SegmentFactory:
    """Makes `Segment` objects; owns nothing but the source of jitter.

    Called where a segment is added to the log, or described: opening, rolling, truncation, and
    compaction. `describe` and `new` touch no disk.
    """

    __slots__ = ("_randomness", "_state")

    def __init__(self, state: LogState, randomness: Randomness) -> None:
        """`randomness`: for `segment.jitter.ms`."""
        self._state = state
        self._randomness = randomness

    def describe(self, base_offset: int, size: int, has_transaction_index: bool) -> Segment:
        """A segment whose files are there."""
        state = self._state
        return Segment(
            state.directory,
            base_offset,
            state.filesystem,
            index_interval_bytes=state.config.index_interval_bytes,
            index_max_bytes=state.config.segment_index_bytes,
            size=size,
            created_ms=state.clock.now_ms(),
            roll_jitter_ms=self._jitter_ms(),
            has_transaction_index=has_transaction_index,
        )

    def new(self, base_offset: int) -> Segment:
        """A segment whose files are not there yet."""
        return self.describe(base_offset, 0, False)

    def create(self, base_offset: int) -> Segment:
        """An empty segment with its `.log` file; the directory is not synced.

        Raises:
            DiskError: The disk refused.
        """
        segment = self.new(base_offset)
        config = self._state.config
        segment.create_file(config.segment_bytes if config.preallocate else 0)
        return segment

    def _jitter_ms(self) -> int:
        config = self._state.config
        return self._randomness.below(min(config.segment_jitter_ms, config.segment_ms))
