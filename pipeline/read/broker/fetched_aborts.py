"""Batches of a Fetch answer that belong to aborted transactions.

The answer names aborted transactions by producer and first offset; where each ends says its marker:

    aborted   (producer 7, first 100)
    batches   7@100  8@110  7@120  [7 ABORT @130]  7@140 ...
    range     100 ............... 130                        ours: AbortedRange(7, 100, 130)

A marker that has not come yet lies behind the answer's end: all of the producer's batches up to
there are out, and the next answer names the transaction again.

Source: Kafka, CompletedFetch.java (consumeAbortedTransactionsUpTo, containsAbortMarker).
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

from pipeline.plan.piece import AbortedRange
from protocol.records.batch import iterate_batches

_OFFSET_MAX: Final = (1 << 63) - 1


def aborted_ranges(
    records: memoryview, aborted: Iterable[tuple[int, int]]
) -> Sequence[AbortedRange]:
    """Ranges for the batches of one answer, ascending by first offset.

    Args:
        records: Whole batches.
        aborted: (producer id, first offset), as the answer has them.

    Raises:
        DecodeError: There is no batch where one should be.
    """
    named = sorted(set(aborted), key=lambda one: (one[1], one[0]))
    if not named:
        return ()
    producers = {producer_id for producer_id, _ in named}
    markers: dict[int, list[int]] = {producer_id: [] for producer_id in producers}
    for _, header in iterate_batches(records):
        if header.is_control and header.producer_id in producers:
            markers[header.producer_id].append(header.base_offset)
    ranges = []
    for producer_id, first in named:
        # The producer's next marker ends the transaction: it has one at a time.
        ends = markers[producer_id]
        at = bisect_left(ends, first)
        ranges.append(AbortedRange(producer_id, first, ends[at] if at < len(ends) else _OFFSET_MAX))
    return ranges
