"""Offsets that are asked for and not there any more: an error, or one warning with their count.

Kafka's source of Spark has `failOnDataLoss` for the same; its text says only that some data may
have been missed. Here every sentence names topic, partition and offsets.
"""

import logging
from collections.abc import Sequence

from pipeline.plan.piece import PartitionName
from pipeline.read.read_errors import LostOffsetsError, ReadError

LOG = logging.getLogger("varve.spark")

SENTENCES_MAX = 10
"""Of one warning; the count is always whole."""


class PlanLosses:
    """Losses that one plan found; raises at the first where losses are errors."""

    def __init__(self, *, fail: bool) -> None:
        """`fail`: `failOnDataLoss`."""
        self._fail = fail
        self._lost_offsets = 0
        self._sentences: list[str] = []

    def lost(self, partition: PartitionName, start: int, end: int, reason: str) -> None:
        """Offsets of [start, end) are nowhere.

        Raises:
            LostOffsetsError: Losses are errors.
        """
        if start >= end:
            return
        error = LostOffsetsError(partition, start, end, reason)
        if self._fail:
            raise error
        self._lost_offsets += end - start
        self._sentences.append(
            f"{partition.topic}-{partition.partition}: offsets {start} to {end - 1} ({reason})"
        )

    def unreadable(self, sentence: str) -> None:
        """An object that may hold offsets cannot be read, and it is unknown which ones.

        Raises:
            ReadError: Losses are errors.
        """
        if self._fail:
            raise ReadError(f"{sentence} (failOnDataLoss=false skips it)")
        self._sentences.append(sentence)

    @property
    def sentences(self) -> Sequence[str]:
        """The losses that were found, in order."""
        return tuple(self._sentences)

    def warn(self) -> None:
        """One warning about all of it, if there is anything."""
        if not self._sentences:
            return
        shown = "; ".join(self._sentences[:SENTENCES_MAX])
        more = len(self._sentences) - SENTENCES_MAX
        LOG.warning(
            "%d offsets are lost and skipped (failOnDataLoss=false): %s%s",
            self._lost_offsets,
            shown,
            f"; and {more} more places" if more > 0 else "",
        )


def warn_of_options(names: Sequence[str]) -> None:
    """One warning that names what was given and does nothing."""
    if names:
        LOG.warning("options without effect: %s", ", ".join(names))
