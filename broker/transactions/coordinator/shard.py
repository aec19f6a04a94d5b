"""A shard of the transaction coordinator: transactional ids in one partition of the topic.

    replay ──> newest records ──on_loaded──> metadata of each id ──on_active──> prepared ones go on

Memory follows the log, and never goes ahead: a transition is applied when its record is committed.
One that is refused has changed nothing; if the outcome is unknown, the shard is loaded again, since
a wrong guess could give two clients two outcomes.

A shard lives from a load to a resignation; the next load makes a new one, so a caller that resumes
after a wait checks `log.is_closed`.

Source: Kafka, TransactionStateManager.scala (loadTransactionMetadata, appendTransactionToLog).
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final
from uuid import UUID

from broker.coordinator.latest_records import LatestRecords
from broker.coordinator.outcome import Done, KeyValue
from broker.coordinator.shard_log import ShardLog
from broker.coordinator.slices import Slices
from broker.coordinator.topics_change import TopicsChange
from broker.transactions.coordinator.stats import TransactionStats
from broker.transactions.coordinator.transaction_metadata import TransactionMetadata, Transition
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from protocol.internal.transaction_log import (
    FLEXIBLE_VALUE_VERSION,
    decode_transaction_log_key,
    decode_transaction_log_value,
)
from storage.environment.clock import Clock

logger = logging.getLogger(__name__)

TRANSACTIONAL_IDS_MAX = 100_000
"""Most transactional ids in one shard, so that a client that makes up names cannot fill memory.
With 50 partitions this is five million on a broker."""

FLEXIBLE_FROM: Final = 1
"""The transaction.version from which on records are flexible."""

RESUMED_PER_SLICE: Final = 20
"""Prepared transactions resumed before yielding to the event loop; each writes several records."""

Resume = Callable[["TransactionShard", TransactionMetadata], None]
"""Completes a transaction whose Prepare record was found in the log."""


class TooManyTransactionalIdsError(Exception):
    """A shard holds `TRANSACTIONAL_IDS_MAX` already. Client sees POLICY_VIOLATION."""


class TransactionShard:
    """Transactional ids whose coordinator is the leader of one partition.

    Implements `broker.coordinator.shard.Shard`.
    """

    __slots__ = (
        "_clock",
        "_read",
        "_resume",
        "_stats",
        "_version",
        "coordinator_epoch",
        "log",
        "partition_index",
        "transactions",
    )

    def __init__(
        self,
        log: ShardLog,
        coordinator_epoch: int,
        *,
        transaction_version: Callable[[], int],
        resume: Resume,
        clock: Clock,
        stats: TransactionStats,
    ) -> None:
        """An empty shard.

        Args:
            log: Of the shard.
            coordinator_epoch: The leader epoch of the partition; it is part of every marker.
            transaction_version: The cluster's, called for every record.
            resume: Called for every prepared transaction once the shard serves.
            clock: For slices.
            stats: Added to.
        """
        self.partition_index = log.topic_partition.partition
        self.coordinator_epoch = coordinator_epoch
        self.log = log
        self.transactions: dict[str, TransactionMetadata] = {}
        self._version = transaction_version
        self._resume = resume
        self._clock = clock
        self._stats = stats
        self._read = LatestRecords()

    # -- loading ---------------------------------------------------------------------------------

    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
        """See `Shard.replay`."""
        self._read.replay(key, value, offset, producer_id)

    def replay_marker(self, producer_id: int, *, commit: bool) -> None:
        """Do nothing: no record is transactional."""

    async def on_loaded(self) -> None:
        """Decode the records; one that is damaged or of a newer release is skipped."""
        slices = Slices(self._clock)
        read, self._read = self._read, LatestRecords()
        for raw_key, record in read.latest.items():
            try:
                transactional_id = decode_transaction_log_key(raw_key)
                if transactional_id is None:
                    self._stats.skipped_records += 1
                else:
                    value = decode_transaction_log_value(record.value)
                    metadata = TransactionMetadata.from_record(transactional_id, value)
                    metadata.begun_ms = self._begun_ms(metadata)
                    self.transactions[transactional_id] = metadata
            except (DecodeError, ValueError) as error:
                self._stats.skipped_records += 1
                logger.error(
                    "record of __transaction_state skipped while loading partition=%s offset=%d "
                    "error=%s",
                    self.log.topic_partition,
                    record.offset,
                    error,
                )
            if slices.is_due():
                await slices.pause()

    def _begun_ms(self, metadata: TransactionMetadata) -> float:
        """When a transaction of the log began, on the monotonic clock.

        One from the future was begun by a coordinator whose clock is ahead: it begins now.
        """
        age_ms = self._clock.now_ms() - metadata.start_timestamp_ms
        return self._clock.monotonic_ms() - max(age_ms, 0)

    async def on_active(self, _deleted_topics: Mapping[UUID, str]) -> None:
        """Resume prepared transactions."""
        prepared = [m for m in self.transactions.values() if m.state.is_prepared]
        for count, metadata in enumerate(prepared, 1):
            if self.log.is_closed:
                return
            try:
                self._resume(self, metadata)
            except Exception:
                # It stays prepared; all others are resumed.
                logger.exception(
                    "transaction could not be completed after loading transactional_id=%s",
                    metadata.transactional_id,
                )
            if not count % RESUMED_PER_SLICE:
                await asyncio.sleep(0)

    async def on_topics_changed(self, _change: TopicsChange) -> None:
        """Do nothing: deleted partitions are found when their markers are written."""

    def on_unloaded(self) -> None:
        """See `Shard.on_unloaded`."""
        self.log.close()

    def summary(self) -> str:
        """See `Shard.summary`."""
        return f"transactional_ids={len(self.transactions)}" if self.transactions else ""

    # -- ids -------------------------------------------------------------------------------------

    def add(self, metadata: TransactionMetadata) -> None:
        """Add a transactional id that is not in the log yet.

        Raises:
            TooManyTransactionalIdsError: No further one fits.
        """
        if len(self.transactions) >= TRANSACTIONAL_IDS_MAX:
            raise TooManyTransactionalIdsError(metadata.transactional_id)
        self.transactions[metadata.transactional_id] = metadata

    def remove(self, transactional_id: str) -> None:
        """Remove one: it has expired, or its first record was refused."""
        self.transactions.pop(transactional_id, None)

    # -- records ---------------------------------------------------------------------------------

    def append(self, metadata: TransactionMetadata, transition: Transition, done: Done) -> None:
        """Append the record of a prepared transition, then complete or cancel it.

        `done` gets NONE when it is complete, else the client's error code.
        """
        self.log.append(
            [self._record(metadata, transition)],
            None,
            partial(self._appended, metadata, transition, done),
        )

    def _appended(
        self, metadata: TransactionMetadata, transition: Transition, done: Done, code: ErrorCode
    ) -> None:
        if self.log.is_closed:
            # Another shard serves the partition now: the outcome has no effect here.
            done(ErrorCode.NOT_COORDINATOR if code is ErrorCode.NONE else code)
            return
        if code is ErrorCode.NONE:
            metadata.complete(transition)
        else:
            metadata.cancel()
        done(code)

    def append_later(self, metadata: TransactionMetadata, transition: Transition) -> None:
        """Complete a prepared transition, and defer its record, which must follow from the last.

        A refused append is retried until it succeeds.
        """
        if self.log.is_closed:
            return
        metadata.complete(transition)
        self.log.append_later(self._record(metadata, transition))

    def append_tombstones(self, expired: Sequence[TransactionMetadata], done: Done) -> None:
        """Delete transactional ids that were prepared for it; all of them or none."""
        records: list[KeyValue] = [(metadata.record_key, None) for metadata in expired]

        def appended(code: ErrorCode) -> None:
            if code is ErrorCode.NONE and self.log.is_closed:
                code = ErrorCode.NOT_COORDINATOR
            if code is not ErrorCode.NONE:
                for metadata in expired:
                    metadata.cancel()
            done(code)

        self.log.append(records, None, appended)

    def _record(self, metadata: TransactionMetadata, transition: Transition) -> KeyValue:
        version = FLEXIBLE_VALUE_VERSION if self._version() >= FLEXIBLE_FROM else 0
        return metadata.record_key, transition.to_record(version)
