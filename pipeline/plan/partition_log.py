"""A partition's log as its bucket has it: what planning works on.

offsets   log start          stable end       end
v                  v                v
rows      [ segment ][ segment ]   gap   [ segment ]
read_committed: up to the stable end, when there is no broker to ask for what follows
"""

from bisect import bisect_right
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple
from uuid import UUID

from pipeline.plan.layout import Gap, LaidSegment
from pipeline.plan.listing import HistoryStamp
from pipeline.plan.piece import PartitionName
from tiered.metadata.history import HistoryState, HistorySummary


class DamagedObject(NamedTuple):
    """An object that cannot be read: damaged, of a newer version, or not whole.

    Attributes:
        key: Its name.
        position: First byte known to be wrong; -1 if that is unknown.
        problem: What is wrong.
        start_offset: First offset that is lost with it, -1: unknown.
    """

    key: str
    position: int
    problem: str
    start_offset: int


class PartitionLog(NamedTuple):
    """See the module.

    Attributes:
        partition: Whose.
        log_start_offset: Least offset to be read.
        end_offset: Exclusive end of what is in the bucket.
        stable_end_offset: Where committed rows end without a broker; `tail` says why.
        leader_epochs: (epoch, start offset) up to the end, ascending.
        segments: Ascending; the offsets they give do not overlap.
        gaps: Offsets between log start and end that no segment has.
        damaged: Objects that could not be read; what others do not have either is a gap, or lies
            beyond the end.
        cluster_id: Whose manifest decided; "" where another program copied it.
        partition_count: Of the topic, as last recorded; 0: nowhere.
        newest_id: The segment that decided; None without segments.
        summary: Of the history object, as it was read; None without one.
        history_stamp: Of the history object that counts in here, None: not known which.
        listed_ids: Of the segments at the end that a listing found.
    """

    partition: PartitionName
    log_start_offset: int
    end_offset: int
    stable_end_offset: int
    leader_epochs: tuple[tuple[int, int], ...] = ()
    segments: Sequence[LaidSegment] = ()
    gaps: tuple[Gap, ...] = ()
    damaged: tuple[DamagedObject, ...] = ()
    cluster_id: str = ""
    partition_count: int = 0
    newest_id: UUID | None = None
    summary: HistorySummary | None = None
    history_stamp: HistoryStamp | None = None
    listed_ids: AbstractSet[UUID] = frozenset()

    @property
    def is_deleting(self) -> bool:
        """The topic is being deleted: what is left of it is no log."""
        return self.summary is not None and self.summary.state is HistoryState.DELETING

    @property
    def is_absent(self) -> bool:
        """No object says anything of it, not even a damaged one."""
        return self.summary is None and not self.segments and not self.damaged

    @property
    def problems(self) -> list[str]:
        """Sentences about what cannot be read."""
        name = f"{self.partition.topic}-{self.partition.partition}"
        return [
            *(f"{name}: {one.key} at byte {one.position}: {one.problem}" for one in self.damaged),
            *(f"{name}: offsets {gap.start} to {gap.end - 1} are missing" for gap in self.gaps),
        ]

    @property
    def size_bytes(self) -> int:
        """Of the segments' logs, before compression and encryption."""
        return sum(one.metadata.segment_size_bytes for one in self.segments)

    def end(self, *, read_committed: bool) -> int:
        """End of the rows of an isolation level, without a broker."""
        return self.stable_end_offset if read_committed else self.end_offset

    def segments_of(self, start: int, end: int) -> Sequence[LaidSegment]:
        """Segments that give rows of [start, end)."""
        first = bisect_right(self.segments, start, key=lambda one: one.end_offset)
        last = bisect_right(self.segments, end - 1, key=lambda one: one.start_offset)
        return self.segments[first:last]

    def missing(self, start: int, end: int) -> list[Gap]:
        """Offsets of [start, end) that the bucket does not have, gaps and what is outside of it.

        Offsets that were compacted away, or are a marker's, are not missing.
        """
        cut = [
            Gap(start, min(end, self.log_start_offset)),
            *(Gap(max(gap.start, start), min(gap.end, end)) for gap in self.gaps),
            Gap(max(start, self.end_offset), end),
        ]
        return [gap for gap in cut if gap.start < gap.end]
