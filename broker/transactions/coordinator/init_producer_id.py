"""InitProducerId of a transactional id: it assigns a producer id and a new epoch.

    unknown ──────────────> Empty, a new producer id, epoch 0
    completed ────────────> Empty, the next epoch (or a new producer id when there is none left)
    Ongoing ──────────────> aborted and fenced; CONCURRENT_TRANSACTIONS until that is over
    Prepare... , pending ─> CONCURRENT_TRANSACTIONS

A client that sends its producer id and epoch (KIP-360) continues as the same process after an
error: it gets the next epoch only if no other process was initialized in between.

Source: Kafka, TransactionCoordinator.scala (handleInitProducerId).
"""

import logging
from collections.abc import Callable
from functools import partial

from broker.transactions.coordinator.end_transaction import (
    NO_PRODUCER,
    EndTransaction,
    FindShard,
    ProducerDone,
)
from broker.transactions.coordinator.producer_id_source import ProducerIdSource
from broker.transactions.coordinator.shard import TooManyTransactionalIdsError, TransactionShard
from broker.transactions.coordinator.stats import TransactionStats
from broker.transactions.coordinator.transaction_metadata import (
    NO_PRODUCER_EPOCH,
    ProducerFencedError,
    TransactionMetadata,
    Transition,
    is_epoch_exhausted,
)
from broker.transactions.coordinator.transaction_state import TransactionState
from broker.transactions.interfaces import ProducerIdAndEpoch
from protocol.error_codes import ErrorCode
from protocol.primitives import STRING_SIZE_MAX
from storage.environment.clock import Clock

logger = logging.getLogger(__name__)

TRANSACTIONAL_ID_LENGTH_MAX = STRING_SIZE_MAX // 4
"""Longest id that a record has room for, in characters of at most four bytes each."""


class InitProducerId:
    """See the module."""

    __slots__ = (
        "_clock",
        "_end",
        "_find",
        "_max_timeout_ms",
        "_producer_ids",
        "_stats",
        "_transaction_version",
    )

    def __init__(
        self,
        find: FindShard,
        end: EndTransaction,
        producer_ids: ProducerIdSource,
        *,
        clock: Clock,
        stats: TransactionStats,
        max_timeout_ms: int,
        transaction_version: Callable[[], int],
    ) -> None:
        self._find = find
        self._end = end
        self._producer_ids = producer_ids
        self._clock = clock
        self._stats = stats
        self._max_timeout_ms = max_timeout_ms
        self._transaction_version = transaction_version

    def init(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        done: ProducerDone,
        fresh_producer_id: int | None = None,
    ) -> None:
        """Initialize a producer; `done` gets its id and epoch when they are committed.

        Args:
            transactional_id: Not null; an empty one is refused.
            timeout_ms: Of its transactions.
            expected: The client's producer id and epoch, if it sent them.
            done: See above.
            fresh_producer_id: A producer id that was requested before.
        """
        if not transactional_id or len(transactional_id) > TRANSACTIONAL_ID_LENGTH_MAX:
            done(ErrorCode.INVALID_REQUEST, NO_PRODUCER)
            return
        if not 0 < timeout_ms <= self._max_timeout_ms:
            done(ErrorCode.INVALID_TRANSACTION_TIMEOUT, NO_PRODUCER)
            return
        shard = self._find(transactional_id)
        if isinstance(shard, ErrorCode):
            done(shard, NO_PRODUCER)
            return
        expected_epoch = None if expected is None else expected.epoch
        metadata = shard.transactions.get(transactional_id)
        code = None if metadata is None else _check(metadata, expected)
        if code is not None:
            done(code, NO_PRODUCER)
        elif metadata is not None and metadata.state is TransactionState.ONGOING:
            self._fence(shard, metadata, done)
        elif metadata is not None and not metadata.needs_producer_id(expected_epoch):
            self._next_epoch(shard, metadata, timeout_ms, expected_epoch, done)
        else:
            if fresh_producer_id is None:
                fresh_producer_id = self._producer_ids.try_next()
            if fresh_producer_id is None:
                self._producer_ids.request(
                    partial(self.init, transactional_id, timeout_ms, expected, done),
                    lambda failure: done(failure, NO_PRODUCER),
                )
            elif metadata is None:
                self._create(shard, transactional_id, fresh_producer_id, timeout_ms, done)
            else:
                transition = metadata.prepare_producer_id_rotation(
                    fresh_producer_id,
                    timeout_ms=timeout_ms,
                    expected_epoch=expected_epoch,
                    now_ms=self._clock.now_ms(),
                )
                self._append(shard, metadata, transition, done)

    def _create(
        self,
        shard: TransactionShard,
        transactional_id: str,
        producer_id: int,
        timeout_ms: int,
        done: ProducerDone,
    ) -> None:
        now_ms = self._clock.now_ms()
        metadata = TransactionMetadata(
            transactional_id, producer_id, timeout_ms=timeout_ms, last_update_timestamp_ms=now_ms
        )
        try:
            shard.add(metadata)
        except TooManyTransactionalIdsError:
            logger.warning(
                "too many transactional ids partition=__transaction_state-%d", shard.partition_index
            )
            done(ErrorCode.POLICY_VIOLATION, NO_PRODUCER)
            return
        # The client's producer id has expired: it gets a new one.
        transition = metadata.prepare_next_epoch(
            timeout_ms=timeout_ms, expected_epoch=None, now_ms=now_ms
        )
        self._append(shard, metadata, transition, done)

    def _next_epoch(
        self,
        shard: TransactionShard,
        metadata: TransactionMetadata,
        timeout_ms: int,
        expected_epoch: int | None,
        done: ProducerDone,
    ) -> None:
        try:
            transition = metadata.prepare_next_epoch(
                timeout_ms=timeout_ms,
                expected_epoch=expected_epoch,
                now_ms=self._clock.now_ms(),
            )
        except ProducerFencedError:
            done(ErrorCode.PRODUCER_FENCED, NO_PRODUCER)
            return
        self._append(shard, metadata, transition, done)

    def _append(
        self,
        shard: TransactionShard,
        metadata: TransactionMetadata,
        transition: Transition,
        done: ProducerDone,
    ) -> None:
        def written(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                done(code, ProducerIdAndEpoch(transition.producer_id, transition.producer_epoch))
                return
            if metadata.producer_epoch == NO_PRODUCER_EPOCH:
                # The log has no record of it.
                shard.remove(metadata.transactional_id)
            done(code, NO_PRODUCER)

        shard.append(metadata, transition, written)

    def _fence(
        self, shard: TransactionShard, metadata: TransactionMetadata, done: ProducerDone
    ) -> None:
        def aborting(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                self._stats.fenced += 1
                code = ErrorCode.CONCURRENT_TRANSACTIONS
            done(code, NO_PRODUCER)

        self._end.abort_by_coordinator(
            shard, metadata, transaction_version=self._transaction_version(), done=aborting
        )


def _check(metadata: TransactionMetadata, expected: ProducerIdAndEpoch | None) -> ErrorCode | None:
    """The error of the request; None when the producer may be initialized."""
    if metadata.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if expected is not None and not (
        expected.producer_id == metadata.producer_id
        # A retry after a change of the producer id, whose response was lost.
        or (
            expected.producer_id == metadata.previous_producer_id
            and is_epoch_exhausted(expected.epoch)
        )
    ):
        return ErrorCode.PRODUCER_FENCED
    if metadata.state.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return None
