"""Transactional batches that belong to an aborted transaction.

A batch of producer p with base offset o is out if a range of p has first <= o <= last. Ranges of
all segments come together, so the same may come twice, and those of one producer may overlap.

Source: Kafka, AbortedTxn.java, CompletedFetch.java (isBatchAborted).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pipeline.plan.piece import AbortedRange


class AbortedBatches:
    """Aborted ranges as arrays by producer, to be asked for thousands of batches at once."""

    def __init__(self, ranges: Sequence[AbortedRange]) -> None:
        by_producer: dict[int, list[tuple[int, int]]] = {}
        for producer_id, first, last in ranges:
            by_producer.setdefault(producer_id, []).append((first, last))
        self._by_producer: dict[int, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = {}
        for producer_id, pairs in by_producer.items():
            table = np.array(sorted(pairs), np.int64)
            # Of all ranges that begin at or before an offset, how far the furthest reaches.
            reach = np.maximum.accumulate(table[:, 1])
            self._by_producer[producer_id] = table[:, 0].copy(), reach

    def __bool__(self) -> bool:
        return bool(self._by_producer)

    def contain(
        self, producer_ids: npt.NDArray[np.int64], base_offsets: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Whether each batch lies in a range of its producer; only ask for transactional ones."""
        out = np.zeros(len(producer_ids), np.bool_)
        for producer_id in np.unique(producer_ids).tolist():
            ranges = self._by_producer.get(producer_id)
            if ranges is None:
                continue
            firsts, reach = ranges
            mine = np.flatnonzero(producer_ids == producer_id)
            offsets = base_offsets[mine]
            index = np.searchsorted(firsts, offsets, "right") - 1
            out[mine] = (index >= 0) & (reach[index] >= offsets)
        return out


__all__ = ["AbortedBatches"]
