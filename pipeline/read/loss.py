"""Report of the offsets that a piece could not give, logged once at its end.

With failOnDataLoss=false offsets that are gone, and chunks whose bytes are not those that were
written, are left out. It must neither flood the log nor be missed: one warning a
piece says which offsets, how many and why.
"""

import logging
from typing import Final, NamedTuple

from pipeline.plan.piece import PartitionName

_log = logging.getLogger(__name__)

SHOWN_MAX: Final = 20
"""Ranges that a warning names; of more it gives their number."""


class LostRange(NamedTuple):
    """Offsets that were left out, exclusive end; not each of them need have been a record."""

    start: int
    end: int
    reason: str


class LossReport:
    """Collects what one piece leaves out.

    Attributes:
        offsets: All that were left out.
        ranges: The first of them, at most SHOWN_MAX.
    """

    def __init__(self, partition: PartitionName) -> None:
        self.offsets = 0
        self.ranges: list[LostRange] = []
        self._partition = partition
        self._more = 0

    def add(self, start: int, end: int, reason: str) -> None:
        """Offsets that are left out; none if `end` is not above `start`."""
        if end <= start:
            return
        self.offsets += end - start
        if len(self.ranges) < SHOWN_MAX:
            self.ranges.append(LostRange(start, end, reason))
        else:
            self._more += 1

    def report(self) -> None:
        """Warn, once, if anything was left out."""
        if not self.offsets:
            return
        parts = [f"{lost.start} to {lost.end - 1} ({lost.reason})" for lost in self.ranges]
        if self._more:
            parts.append(f"and {self._more} more ranges")
        _log.warning(
            "%s-%d: %d offsets skipped (failOnDataLoss=false): %s",
            self._partition.topic,
            self._partition.partition,
            self.offsets,
            ", ".join(parts),
        )
        self.offsets = self._more = 0
        self.ranges.clear()
