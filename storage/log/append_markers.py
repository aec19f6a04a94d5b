"""Appending transaction markers: those of one event loop iteration for one log, in one write.

    markers, each let pass by `ProducerStateManager.check_marker`
       └──> batches of one layout, one after the other ──> one write ──> producers, aborted index

Transactions of many producers end in the same few logs, and every marker is a batch of 78 bytes
that this process makes itself: nothing in it needs to be read back, and it makes no difference to a
reader whether they were one write or many.

Source: Kafka, UnifiedLog.java (append), ProducerAppendInfo.java (appendEndTxnMarker).
"""

from collections.abc import Sequence

from protocol.records.control import MARKER_SIZE, build_end_transaction_marker
from storage.log.append import LogWriter
from storage.log.state import LogState
from storage.log.write_behind import OWNED
from storage.log.write_queue import QueuedWrite
from storage.producers.verification import TransactionTerms
from storage.segment.batch_append import BatchAppend
from storage.types.append_origin import AppendOrigin
from storage.types.transaction_marker import TransactionMarker


class MarkerWriter:
    """Appends the markers that end transactions.

    Owns nothing: it builds the batches, and the writer writes them. The partition calls it, on the
    owner's thread, for the transaction coordinator.
    """

    __slots__ = ("_state", "_writer")

    def __init__(self, state: LogState, writer: LogWriter) -> None:
        self._state = state
        self._writer = writer

    def append(
        self, markers: Sequence[TransactionMarker], *, leader_epoch: int, now_ms: int
    ) -> int:
        """Write the markers of different producers as leader.

        Args:
            markers: At least one; each has passed the producer state's `check_marker`.
            leader_epoch: Epoch of this leader (KIP-101), 0 or above.
            now_ms: Milliseconds since 1970 UTC.

        Returns:
            The first one's offset; the others follow on it.

        Raises:
            DiskError: The disk refused. Nothing was written, or what was is never acknowledged.
        """
        state = self._state
        if state.refusal is not None:
            state.check_refusal()
        first_offset = state.next_offset
        if self._writer.log_append_time or len(markers) * MARKER_SIZE > state.config.segment_bytes:
            self._append_one_by_one(markers, leader_epoch, now_ms)
            return first_offset
        records = bytearray()
        for offset, marker in enumerate(markers, first_offset):
            records += build_end_transaction_marker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                commit=marker.commit,
                coordinator_epoch=marker.coordinator_epoch,
                timestamp_ms=now_ms,
                base_offset=offset,
                leader_epoch=leader_epoch,
            )
        end_offset = first_offset + len(markers)
        where = self._writer.write_several(
            memoryview(records),
            first_offset,
            [
                BatchAppend(MARKER_SIZE, offset, now_ms)
                for offset in range(first_offset, end_offset)
            ],
            leader_epoch,
            OWNED,
        )
        aborted = state.producer_state.append_markers(markers, first_offset, now_ms)
        if isinstance(where, QueuedWrite):
            where.aborted = aborted
        elif aborted:
            self._writer.index_aborted(where, aborted)
        return first_offset

    def _append_one_by_one(
        self, markers: Sequence[TransactionMarker], leader_epoch: int, now_ms: int
    ) -> None:
        """One by one, where the topic's settings have every batch validated."""
        for marker in markers:
            batch = build_end_transaction_marker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                commit=marker.commit,
                coordinator_epoch=marker.coordinator_epoch,
                timestamp_ms=now_ms,
            )
            self._writer.append_as_leader(
                memoryview(batch),
                leader_epoch=leader_epoch,
                now_ms=now_ms,
                origin=AppendOrigin.COORDINATOR,
                terms=TransactionTerms(version=marker.transaction_version),
            )
