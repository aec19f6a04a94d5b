"""InitProducerId of a transactional id: a producer begins a new life.

    unknown ──────────────> Empty, a new producer id, epoch 0
    at rest ──────────────> Empty, the next epoch (or a new producer id when there is none left)
    Ongoing ──────────────> aborted and fenced; CONCURRENT_TRANSACTIONS until that is over
    Prepare... , pending ─> CONCURRENT_TRANSACTIONS

A client that says which producer id and epoch it has (KIP-360) goes on as the same process after an
error: it gets the next epoch only if nobody else has begun a life in between.

Source: Kafka, TransactionCoordinator.scala (handleInitProducerId).
"""

import logging
from collections.abc import Callable
from functools import partial

from broker.transactions.coordinator.end_transaction import (
    NOBODY,
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
"""Characters, of at most four bytes each: what a record has room for, whatever they are."""


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
        """Begin a life; `done` gets who the producer is, when that is committed.

        Args:
            transactional_id: Not null; an empty one is refused.
            timeout_ms: Of its transactions.
            expected: Who the client believes to be.
            done: See above.
            fresh_producer_id: One that was waited for.
        """
        if not transactional_id or len(transactional_id) > TRANSACTIONAL_ID_LENGTH_MAX:
            done(ErrorCode.INVALID_REQUEST, NOBODY)
            return
        if not 0 < timeout_ms <= self._max_timeout_ms:
            done(ErrorCode.INVALID_TRANSACTION_TIMEOUT, NOBODY)
            return
        shard = self._find(transactional_id)
        if isinstance(shard, ErrorCode):
            done(shard, NOBODY)
            return
        expected_epoch = None if expected is None else expected.epoch
        metadata = shard.transactions.get(transactional_id)
        code = None if metadata is None else _check(metadata, expected)
        if code is not None:
            done(code, NOBODY)
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
                    lambda failure: done(failure, NOBODY),
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
            done(ErrorCode.POLICY_VIOLATION, NOBODY)
            return
        # Whoever the client believed to be is long expired: it begins anew.
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
            done(ErrorCode.PRODUCER_FENCED, NOBODY)
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
                # The log has never heard of it.
                shard.remove(metadata.transactional_id)
            done(code, NOBODY)

        shard.append(metadata, transition, written)

    def _fence(
        self, shard: TransactionShard, metadata: TransactionMetadata, done: ProducerDone
    ) -> None:
        def aborting(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                self._stats.fenced += 1
                code = ErrorCode.CONCURRENT_TRANSACTIONS
            done(code, NOBODY)

        self._end.abort_by_coordinator(
            shard, metadata, transaction_version=self._transaction_version(), done=aborting
        )


def _check(metadata: TransactionMetadata, expected: ProducerIdAndEpoch | None) -> ErrorCode | None:
    """Why not now; None when the new life may begin."""
    if metadata.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if expected is not None and not (
        expected.producer_id == metadata.producer_id
        # A retry after a change of the producer id, of which the answer was lost.
        or (
            expected.producer_id == metadata.previous_producer_id
            and is_epoch_exhausted(expected.epoch)
        )
    ):
        return ErrorCode.PRODUCER_FENCED
    if metadata.state.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return None
