"""Transactions of the segments that compaction reads: which of their batches it may drop.

Fed with every batch of the segments in order, and with the aborted transactions that touch them:

    data of an aborted transaction    always; consumers would skip it anyway
    abort marker                      once no data of its transaction was met: then no reader needs
                                      it, and its entry leaves the transaction index
    commit marker                     once no data of its transaction was met
    data of a committed transaction   never for that reason

Markers that may go are still kept for `delete.retention.ms`, see `storage.cleaner.cleaner`.

Source: Kafka, CleanedTransactionMetadata.java.
"""

import heapq
from collections.abc import Callable, Iterable

from protocol.records.batch import BatchHeader
from storage.index.transaction_index import AbortedTxn
from storage.producers.state import ABORT_MARKER, COMMIT_MARKER


class CleanedTransactions:
    """Transactions seen while a range of segments is read from start to end.

    Attributes:
        keep_aborted: Called with each aborted transaction whose data is still in the log, so that
            the cleaned segment's index keeps it.
    """

    __slots__ = ("_aborted", "_coming", "_committed", "keep_aborted")

    def __init__(self) -> None:
        self.keep_aborted: Callable[[AbortedTxn], None] | None = None
        self._committed: set[int] = set()
        # Producer id -> its aborted transaction that is under way, and whether data was met.
        self._aborted: dict[int, tuple[AbortedTxn, bool]] = {}
        self._coming: list[tuple[int, AbortedTxn]] = []

    def add_aborted(self, transactions: Iterable[AbortedTxn]) -> None:
        """Announce aborted transactions that touch the segments to be read next."""
        for txn in transactions:
            heapq.heappush(self._coming, (txn.first_offset, txn))

    def on_data_batch(self, header: BatchHeader) -> bool:
        """Take in a data batch; True if it belongs to an aborted transaction."""
        self._start_aborted_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        under_way = self._aborted.get(header.producer_id)
        if under_way is None:
            self._committed.add(header.producer_id)
            return False
        self._aborted[header.producer_id] = (under_way[0], True)
        return True

    def on_control_batch(self, header: BatchHeader, control_type: int | None) -> bool:
        """Take in a marker; True if no reader needs it any more.

        Args:
            header: Of the control batch.
            control_type: 0 abort, 1 commit; None: the batch has been emptied before.
        """
        self._start_aborted_up_to(header.last_offset)
        if control_type is None:
            return True
        if control_type == ABORT_MARKER:
            ended = self._aborted.pop(header.producer_id, None)
            if ended is None or not ended[1]:
                return True
            if self.keep_aborted is not None:
                self.keep_aborted(ended[0])
            return False
        if control_type == COMMIT_MARKER:
            if header.producer_id not in self._committed:
                return True
            self._committed.remove(header.producer_id)
        return False

    def _start_aborted_up_to(self, offset: int) -> None:
        coming = self._coming
        while coming and coming[0][0] <= offset:
            txn = heapq.heappop(coming)[1]
            self._aborted.setdefault(txn.producer_id, (txn, False))
