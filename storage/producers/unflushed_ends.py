"""Ended transactions whose markers may not be on disk yet: where the first of them began.

After a power cut they may be open, and be aborted then, although their records are on disk. Until
their markers are too, compaction must not take these records for the latest of their keys: the ones
before would be gone for good.

What is remembered is bounded, whatever is ended between two flushes: several become one, which
begins with the first of them and lasts until the last one's marker. So an answer may be lower than
it need be, until the next flush, and is never higher.
"""

from typing import Final

ENDS_MAX: Final = 64
"""As many are told apart."""


class UnflushedEnds:
    """Transactions that have ended, until a flush has reached their markers.

    Changed by the log's owner; `first_offset` may be asked in any thread.
    """

    __slots__ = ("_ends",)

    def __init__(self) -> None:
        # (offset of the marker, first offset), both ascending. Never changed, but replaced.
        self._ends: tuple[tuple[int, int], ...] = ()

    def note(self, first_offset: int, last_offset: int) -> None:
        """Transactions have ended: the least first offset, and the last marker's."""
        ends = self._ends
        if ends and ends[-1][0] > last_offset:
            last_offset = ends[-1][0]
        kept = len(ends)
        while kept and ends[kept - 1][1] >= first_offset:
            # Whoever is bounded by it is bounded by this one.
            kept -= 1
        ends = (*ends[:kept], (last_offset, first_offset))
        if len(ends) > ENDS_MAX:
            pairs = zip(ends[::2], ends[1::2], strict=False)
            merged = tuple((later[0], earlier[1]) for earlier, later in pairs)
            ends = merged + ends[2 * len(merged) :]
        self._ends = ends

    def let_go(self, recovery_point: int) -> None:
        """All below `recovery_point` is on disk."""
        if self._ends and self._ends[0][0] < recovery_point:
            self._ends = tuple(end for end in self._ends if end[0] >= recovery_point)

    def first_offset(self, recovery_point: int) -> int | None:
        """Where the first transaction began whose marker is not below `recovery_point`."""
        for last_offset, first_offset in self._ends:
            if last_offset >= recovery_point:
                return first_offset
        return None
