"""Whether closed segments have all that was written to them, or their files have been cut.

What is missing of a file would else be a gap that no reader hears of: Kafka passes over it. A cut
within a batch shows in its segment; one between two batches shows where the next segment begins
later than it should, unless the log may have gaps, as compaction leaves them. Who finds a cut
segment reports it (`LogState.on_cut`), to have it filled up from another replica.
"""

from functools import partial

from storage.errors import CutSegmentError
from storage.index.reads import WAITING, Reads
from storage.log.state import LogState
from storage.segment.gaps import SegmentFile, has_gaps_within
from storage.segment.segment import Segment


class Wholeness:
    """Checks the closed segments of one log; each is looked at once (`ReadableSegment.whole_end`).

    Segments made by this process are whole and cost nothing: ask only where `may_be_cut`.
    """

    __slots__ = ("_state",)

    def __init__(self, state: LogState) -> None:
        self._state = state

    def end_of(self, segment: Segment, following: Segment, reads: Reads) -> int:
        """Where the last whole batch of a segment ends; `segment.may_be_cut` says more.

        Args:
            segment: A closed one that `may_be_cut`.
            following: The next one.
            reads: Whether it may wait for the disk.

        Raises:
            WouldBlockError: As `LogReader.read`.
        """
        state = self._state
        if state.gaps_until is not None:
            is_known = following.base_offset > state.gaps_until
            return segment.whole_end(reads, following.base_offset if is_known else None)
        is_meant = partial(self._has_gaps, segment)
        end = segment.whole_end(reads, following.base_offset, is_meant)
        if not segment.may_be_cut and segment.whole_next_offset < following.base_offset:
            # It holds of all that was there: what is written now leaves no gaps.
            state.gaps_until = state.active_base_offset
        return end

    def check(self, segment: Segment) -> None:
        """Check that nothing of a closed segment is missing. Reads from the disk, in any thread.

        Raises:
            CutSegmentError: Something is, and others hear of it.
            DiskError: The disk refused.
        """
        segments = tuple(self._state.segments)
        at = segments.index(segment) if segment in segments else len(segments)
        if at + 1 < len(segments) and segment.may_be_cut:
            self.end_of(segment, segments[at + 1], WAITING)
            if segment.may_be_cut:
                raise self.cut(segment, segment.whole_next_offset, segments[at + 1].base_offset)

    def check_at_time(
        self, segment: Segment, following: Segment, timestamp_ms: int, end_offset: int
    ) -> None:
        """Check that nothing of a closed segment is missing which may be as late as a time.

        What is missing is taken to be earlier than what follows on it.

        Raises:
            CutSegmentError: Something is, below `end_offset`.
        """
        if not segment.may_be_cut or following.first_timestamp < timestamp_ms:
            return
        self.end_of(segment, following, WAITING)
        if segment.may_be_cut and segment.whole_next_offset < end_offset:
            raise self.cut(segment, segment.whole_next_offset, following.base_offset)

    def cut(self, segment: Segment, offset: int, next_offset: int) -> CutSegmentError:
        """The error of a reader who asks for an offset that is missing; others hear of it, too.

        `next_offset` is where the next segment begins, or the log ends.
        """
        cut = CutSegmentError(segment.path, offset, next_offset)
        self._state.on_cut(cut)
        return cut

    def _has_gaps(self, segment: Segment) -> bool:
        segments = tuple(self._state.segments)
        if segment not in segments:
            return False
        files = [SegmentFile(one.path, one.base_offset, one.size) for one in segments]
        return has_gaps_within(self._state.filesystem, files, segments.index(segment))
