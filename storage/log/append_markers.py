"""Append of transaction markers: those of many producers in one write.

    markers, each let pass by `ProducerStateManager.check_marker`
       └──> batches of one layout, one after the other ──> one write ──> producers, aborted index

Transactions of many producers end in the same few logs, and every marker is a batch of 78 bytes
that this process makes itself: nothing in it needs to be read back, and a consumer sees no
difference between one write and many.

Source: Kafka, UnifiedLog.java (append), ProducerAppendInfo.java (appendEndTxnMarker).
"""

from collections.abc import Sequence

from protocol.records.control import MARKER_SIZE, build_end_transaction_marker
from storage.log.append import LogAppends
from storage.log.write_behind import OWNED
from storage.log.write_queue import QueuedWrite
from storage.producers.verification import TransactionTerms
from storage.segment.segment import BatchAppend
from storage.types.append_origin import AppendOrigin
from storage.types.transaction_marker import TransactionMarker


class LogMarkers(LogAppends):
    """The part of a log that ends transactions."""

    __slots__ = ()

    def append_markers(
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
        if self.refusal is not None:
            self._check_refusal()
        first_offset = self.next_offset
        if self._validator.log_append_time or len(markers) * MARKER_SIZE > self._segment_bytes:
            self._append_each(markers, leader_epoch, now_ms)
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
        where = self._write_several(
            memoryview(records),
            first_offset,
            [
                BatchAppend(MARKER_SIZE, offset, now_ms)
                for offset in range(first_offset, end_offset)
            ],
            leader_epoch,
            OWNED,
        )
        aborted = self.producer_state.append_markers(markers, first_offset, now_ms)
        if isinstance(where, QueuedWrite):
            where.aborted = aborted
        elif aborted:
            self._index_aborted(where, aborted)
        return first_offset

    def _append_each(
        self, markers: Sequence[TransactionMarker], leader_epoch: int, now_ms: int
    ) -> None:
        """Append one by one, where the topic's settings need every batch validated."""
        for marker in markers:
            batch = build_end_transaction_marker(
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                commit=marker.commit,
                coordinator_epoch=marker.coordinator_epoch,
                timestamp_ms=now_ms,
            )
            self.append_as_leader(
                memoryview(batch),
                leader_epoch=leader_epoch,
                now_ms=now_ms,
                origin=AppendOrigin.COORDINATOR,
                terms=TransactionTerms(version=marker.transaction_version),
            )
