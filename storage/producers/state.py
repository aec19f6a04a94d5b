"""Producer state of one partition: idempotence and transactions (KIP-98).

A produced batch is first `check`ed and, once written, `append`ed; a transaction marker is
`append_control`led and the transaction it ends handed to `complete_transaction`. The same state
follows from reading the log back (`replay`), helped by snapshots (`storage.producers.snapshot`).

Life of a transaction here:

    append(transactional) ──> open ──append_control──> completed ──complete_transaction──┐
                                                                                         v
                       gone <──on_high_watermark_updated(above the marker)── unreplicated

While one is open or unreplicated, `first_unstable_offset` holds back the last stable offset.

Not thread-safe: belongs to its log.

Source: Kafka, ProducerStateManager.java, ProducerAppendInfo.java, ProducerStateEntry.java.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from protocol.records.batch import BatchHeader
from storage.environment.filesystem import Filesystem
from storage.errors import InvalidTransactionStateError, OutOfOrderSequenceError
from storage.index.transaction_index import AbortedTxn
from storage.producers.entry import (
    NO_EPOCH,
    NO_OFFSET,
    SEQUENCE_MAX,
    BatchMetadata,
    CompletedTxn,
    DuplicateInfo,
    ProducerEntry,
)
from storage.producers.rules import (
    check_first_sequence,
    check_marker,
    find_duplicate,
    out_of_order,
    stale_epoch,
    used_before,
)
from storage.producers.table import PRODUCER_ID_EXPIRATION_MS, ProducerTable
from storage.producers.verification import TransactionTerms, VerificationGuard, Verifications
from storage.types.append_origin import AppendOrigin
from storage.types.topic_partition import TopicPartition
from storage.types.transaction_marker import TransactionMarker

ABORT_MARKER: Final = 0
COMMIT_MARKER: Final = 1


class ProducerStateManager(ProducerTable):
    """The producers of one partition, and what batches and markers may do and change.

    Attributes:
        requires_verification: `transaction.partition.verification.enable`: a batch that opens a
            transaction needs a guard (`storage.producers.verification`).
    """

    __slots__ = ("requires_verification",)

    def __init__(
        self,
        topic_partition: TopicPartition,
        directory: str,
        filesystem: Filesystem,
        *,
        producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS,
        snapshot_offsets: Iterable[int] | None = None,
        requires_verification: bool = False,
    ) -> None:
        """Start empty, as `ProducerTable` does.

        Args:
            topic_partition: For messages.
            directory: The partition's directory.
            filesystem: Where snapshots are.
            producer_id_expiration_ms: `producer.id.expiration.ms`.
            snapshot_offsets: Of the snapshot files there are; None: not listed yet.
            requires_verification: Whether transactions must be verified (KIP-890).
        """
        super().__init__(
            topic_partition,
            directory,
            filesystem,
            producer_id_expiration_ms=producer_id_expiration_ms,
            snapshot_offsets=snapshot_offsets,
        )
        self.requires_verification = requires_verification

    # -- verification ------------------------------------------------------------------------

    def begin_verification(
        self,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        now_ms: int,
        *,
        supports_epoch_bump: bool,
    ) -> VerificationGuard | None:
        """Before a transactional batch: the guard to ask the coordinator under.

        Args:
            producer_id: Of the batch.
            producer_epoch: Of the batch.
            base_sequence: Of the batch; -1 for offset commits, which have none.
            now_ms: Wall clock.
            supports_epoch_bump: The client speaks transaction version 2.

        Returns:
            None: the transaction is open here already, there is nothing to ask.

        Raises:
            InvalidProducerEpochError: A newer producer with this id has written.
        """
        entry = self._producers.get(producer_id)
        if entry is not None:
            if producer_epoch < entry.epoch:
                raise stale_epoch(self._topic_partition, producer_id, producer_epoch, entry.epoch)
            if entry.txn_first_offset != NO_OFFSET and entry.epoch == producer_epoch:
                return None
        if self._verifications is None:
            self._verifications = Verifications()
        return self._verifications.begin(
            producer_id,
            base_sequence,
            producer_epoch,
            now_ms,
            supports_epoch_bump=supports_epoch_bump,
        )

    def _check_opening(
        self,
        entry: ProducerEntry | None,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        origin: AppendOrigin,
        terms: TransactionTerms | None,
    ) -> None:
        if entry is not None and producer_epoch < entry.epoch:
            raise stale_epoch(self._topic_partition, producer_id, producer_epoch, entry.epoch)
        verification = None if self._verifications is None else self._verifications.get(producer_id)
        guard = None if terms is None else terms.guard
        if self.requires_verification and (
            verification is None or guard is None or verification.guard is not guard
        ):
            raise InvalidTransactionStateError(
                f"producer {producer_id} has no verified transaction in {self._topic_partition}"
            )
        if verification is not None and origin is AppendOrigin.CLIENT:
            check_first_sequence(
                self._topic_partition, entry, verification, producer_id, base_sequence
            )

    # -- appending ---------------------------------------------------------------------------

    def check(
        self,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        last_sequence: int,
        is_transactional: bool = False,
        is_control: bool = False,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        coordinator_epoch: int = -1,
        terms: TransactionTerms | None = None,
    ) -> DuplicateInfo | None:
        """Whether a batch may be written; changes nothing.

        A producer this partition does not know may start with any sequence: what it wrote before
        may have been deleted by retention.

        Args:
            producer_id: 0 or above.
            producer_epoch: Of the batch.
            base_sequence: Of the first record.
            last_sequence: Of the last record, wrapped.
            is_transactional: Attribute bit 4.
            is_control: A transaction marker (only coordinators write these).
            origin: See `AppendOrigin`.
            coordinator_epoch: Of the marker; only with `is_control`.
            terms: What is known of the transaction; None: nothing.

        Returns:
            None to go ahead. Else the batch is a retry of one of the last five: do not write it,
            answer with what its original got.

        Raises:
            OutOfOrderSequenceError: A batch before it is missing, it is older than five, or its
                sequence is that of a batch in a transaction that has ended: its producer waited
                for that one's answer before the end, so this is another one.
            InvalidProducerEpochError: A newer producer with this id has written.
            InvalidTransactionStateError: No transactional batch, while a transaction is open; or
                one that would open a transaction which is not verified.
            TransactionCoordinatorFencedError: A marker of a coordinator that has been replaced.
        """
        entry = self._producers.get(producer_id)
        if origin is AppendOrigin.REPLICATION:
            return None
        if is_control:
            if entry is not None:
                version = 0 if terms is None else terms.version
                check_marker(
                    self._topic_partition, entry, producer_epoch, coordinator_epoch, version
                )
            return None
        if is_transactional and (
            entry is None or entry.txn_first_offset == NO_OFFSET or entry.epoch != producer_epoch
        ):
            # No transaction of it is open here: what is remembered is of one that has ended.
            if (
                entry is not None
                and origin is AppendOrigin.CLIENT
                and find_duplicate(entry, producer_epoch, base_sequence, last_sequence) is not None
            ):
                raise used_before(self._topic_partition, producer_id, base_sequence)
            self._check_opening(entry, producer_id, producer_epoch, base_sequence, origin, terms)
        if entry is None:
            return None
        epoch = entry.epoch
        if origin is AppendOrigin.CLIENT:
            if producer_epoch == epoch:
                batches = entry.batches
                last = batches[-1][0] if batches else -1
                if base_sequence != last + 1 and (base_sequence != 0 or last != SEQUENCE_MAX):
                    duplicate = find_duplicate(entry, producer_epoch, base_sequence, last_sequence)
                    if duplicate is not None:
                        if is_transactional and duplicate.first_offset < entry.txn_first_offset:
                            raise used_before(self._topic_partition, producer_id, base_sequence)
                        return duplicate
                    raise out_of_order(self._topic_partition, producer_id, base_sequence, last)
            elif producer_epoch < epoch:
                raise stale_epoch(self._topic_partition, producer_id, producer_epoch, epoch)
            elif base_sequence != 0 and epoch != NO_EPOCH:
                raise OutOfOrderSequenceError(
                    f"producer {producer_id} starts epoch {producer_epoch} with sequence "
                    f"{base_sequence} instead of 0 in {self._topic_partition}"
                    f" (current epoch {epoch})"
                )
        elif producer_epoch < epoch:
            raise stale_epoch(self._topic_partition, producer_id, producer_epoch, epoch)
        if entry.txn_first_offset != NO_OFFSET and not is_transactional:
            raise InvalidTransactionStateError(
                f"producer {producer_id} has a transaction open since offset "
                f"{entry.txn_first_offset} in {self._topic_partition}, the batch is not part of it"
            )
        return None

    def check_marker(self, marker: TransactionMarker) -> None:
        """Whether a marker may be written; changes nothing.

        Raises:
            InvalidProducerEpochError: The producer has moved on.
            TransactionCoordinatorFencedError: It comes from a coordinator that has been replaced.
        """
        entry = self._producers.get(marker.producer_id)
        if entry is not None:
            _, epoch, _, coordinator_epoch, version = marker
            check_marker(self._topic_partition, entry, epoch, coordinator_epoch, version)

    def append(
        self,
        producer_id: int,
        producer_epoch: int,
        first_sequence: int,
        last_sequence: int,
        first_offset: int,
        last_offset: int,
        timestamp: int,
        is_transactional: bool = False,
    ) -> None:
        """Remember a batch that was written (`check` came before, or another leader checked).

        Opens a transaction when the batch is transactional and the producer has none open.

        Args:
            producer_id: 0 or above.
            producer_epoch: Of the batch.
            first_sequence: Of the first record; follows from `last_sequence`, kept for symmetry.
            last_sequence: Of the last record, wrapped.
            first_offset: Offset given to the first record.
            last_offset: Offset given to the last record, inclusive.
            timestamp: Max timestamp of the batch, ms.
            is_transactional: Attribute bit 4.
        """
        entry = self._producers.get(producer_id)
        if entry is None:
            entry = self._producers[producer_id] = ProducerEntry(producer_id, producer_epoch)
        else:
            if self._captures is not None:
                self._keep(entry)
            if entry.epoch != producer_epoch:
                entry.move_to_epoch(producer_epoch)
        entry.add_batch(
            BatchMetadata(last_sequence, last_offset, last_offset - first_offset, timestamp)
        )
        if is_transactional:
            if self._verifications is not None:
                self._verifications.end(producer_id)
            if entry.txn_first_offset == NO_OFFSET:
                entry.txn_first_offset = first_offset
                if self._ongoing is None:
                    self._ongoing = {}
                self._ongoing[first_offset] = producer_id
                if self.first_unstable_offset is None:
                    self.first_unstable_offset = first_offset
        self.map_end_offset = last_offset + 1

    def append_control(
        self,
        producer_id: int,
        producer_epoch: int,
        control_type: int,
        coordinator_epoch: int,
        offset: int,
        timestamp: int,
    ) -> CompletedTxn | None:
        """Remember a transaction marker that was written.

        Args:
            producer_id: Whose transaction ends.
            producer_epoch: Of the marker.
            control_type: 0 abort, 1 commit; others (not of a transaction) change nothing.
            coordinator_epoch: Of the marker's value.
            offset: Of the marker.
            timestamp: Of the marker, ms.

        Returns:
            The transaction it ended, to be given to `complete_transaction`. None when the producer
            has none open here: such a marker moves only the epoch.
        """
        self.map_end_offset = offset + 1
        if control_type not in (ABORT_MARKER, COMMIT_MARKER):
            return None
        if self._verifications is not None:
            self._verifications.end(producer_id)
        entry = self._producers.get(producer_id)
        if entry is None:
            entry = self._producers[producer_id] = ProducerEntry(producer_id, producer_epoch)
        elif self._captures is not None:
            self._keep(entry)
        completed = None
        if entry.txn_first_offset != NO_OFFSET:
            is_aborted = control_type == ABORT_MARKER
            completed = CompletedTxn(producer_id, entry.txn_first_offset, offset, is_aborted)
        entry.move_to_epoch(producer_epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        entry.txn_first_offset = NO_OFFSET
        return completed

    def append_markers(
        self, markers: Sequence[TransactionMarker], first_offset: int, timestamp: int
    ) -> list[AbortedTxn]:
        """Remember markers that were written one after the other, and complete what they end.

        As `append_control` and `complete_transaction` for each of them.

        Args:
            markers: Of different producers.
            first_offset: Of the first of them.
            timestamp: Of all of them, ms.

        Returns:
            What goes into the transaction index.
        """
        producers = self._producers
        ongoing = self._ongoing
        aborted: list[AbortedTxn] = []
        for offset, marker in enumerate(markers, first_offset):
            producer_id, epoch, commit, coordinator_epoch, _ = marker
            if self._verifications is not None:
                self._verifications.end(producer_id)
            entry = producers.get(producer_id)
            if entry is None:
                entry = producers[producer_id] = ProducerEntry(producer_id, epoch)
            else:
                if self._captures is not None:
                    self._keep(entry)
                if entry.epoch != epoch:
                    entry.move_to_epoch(epoch)
            entry.coordinator_epoch = coordinator_epoch
            entry.last_timestamp = timestamp
            begun = entry.txn_first_offset
            if begun == NO_OFFSET:
                continue
            entry.txn_first_offset = NO_OFFSET
            assert ongoing is not None
            assert ongoing.get(begun) == producer_id, marker
            del ongoing[begun]
            if self._unreplicated is None:
                self._unreplicated = {}
            self._unreplicated[begun] = offset
            if not commit:
                stable = next(iter(ongoing), offset + 1)
                aborted.append(AbortedTxn(producer_id, begun, offset, stable))
        self._update_first_unstable_offset()
        self.map_end_offset = first_offset + len(markers)
        return aborted

    def complete_transaction(self, completed: CompletedTxn) -> int:
        """Move a transaction from open to waiting for the high watermark.

        Returns:
            The last stable offset as of its marker: first offset of the oldest other open
            transaction, else the offset after the marker. This goes into the transaction index.
        """
        ongoing = self._ongoing or {}
        assert ongoing.get(completed.first_offset) == completed.producer_id, completed
        del ongoing[completed.first_offset]
        if self._unreplicated is None:
            self._unreplicated = {}
        self._unreplicated[completed.first_offset] = completed.last_offset
        self._update_first_unstable_offset()
        return next(iter(ongoing), completed.last_offset + 1)

    def replay(
        self, header: BatchHeader, marker: tuple[int, int] | None = None
    ) -> CompletedTxn | None:
        """Take in a batch that is read back from the log, or came from the leader.

        Args:
            header: Of any batch, also of one without a producer id.
            marker: (control type, coordinator epoch) for a control batch that still has its
                record; compaction leaves empty ones, which keep only the producer's epoch.

        Returns:
            A transaction that it ended, to be given to `complete_transaction` (and, if aborted,
            to the transaction index when that is rebuilt).
        """
        last_offset = header.base_offset + header.last_offset_delta
        completed = None
        if header.producer_id >= 0:
            if not header.is_control:
                self.append(
                    header.producer_id,
                    header.producer_epoch,
                    header.base_sequence,
                    header.last_sequence,
                    header.base_offset,
                    last_offset,
                    header.max_timestamp,
                    header.is_transactional,
                )
            elif marker is not None:
                completed = self.append_control(
                    header.producer_id,
                    header.producer_epoch,
                    marker[0],
                    marker[1],
                    header.base_offset,
                    header.max_timestamp,
                )
            elif header.records_count == 0:
                self._fence(header)
        self.map_end_offset = last_offset + 1
        return completed

    def _fence(self, header: BatchHeader) -> None:
        """Take the epoch of a marker whose record is gone; its transaction was gone before it."""
        entry = self._producers.get(header.producer_id)
        if entry is None:
            entry = self._producers[header.producer_id] = ProducerEntry(header.producer_id)
        if header.producer_epoch > entry.epoch:
            if self._captures is not None:
                self._keep(entry)
            entry.move_to_epoch(header.producer_epoch)
            entry.last_timestamp = header.max_timestamp

    # -- one in place of another ------------------------------------------------------------

    def empty_copy(self) -> "ProducerStateManager":
        """Another one for the same log, that knows nothing but which snapshots there are."""
        return ProducerStateManager(
            self._topic_partition,
            self._directory,
            self._filesystem,
            producer_id_expiration_ms=self.expiration_ms,
            snapshot_offsets=tuple(self.snapshots.offsets()),
            requires_verification=self.requires_verification,
        )

    def hand_over(self, other: "ProducerStateManager") -> None:
        """`other` takes this one's place: what is not in the log stays known."""
        other._verifications = self._verifications
        # It has read what is in the log; what was ended below the high watermark has not changed.
        other.unflushed_ends = self.unflushed_ends
        other.requires_verification = self.requires_verification
