"""EndTxn, and aborts by the coordinator.

    check ──> Prepare... record ── committed ──> answer ──> markers, Complete... record (Completion)

The client is answered when the outcome is final. On one broker the completion is as a rule done
before the client has read the response; a request before that gets CONCURRENT_TRANSACTIONS and is
retried.

Source: Kafka, TransactionCoordinator.scala.
"""

import logging
from collections.abc import Callable
from functools import partial

from broker.coordinator.outcome import Done
from broker.transactions.coordinator.completion import Completion
from broker.transactions.coordinator.end_rules import check_end, check_end_before_version_2
from broker.transactions.coordinator.producer_id_source import ProducerIdSource
from broker.transactions.coordinator.shard import TransactionShard
from broker.transactions.coordinator.transaction_metadata import (
    EPOCH_BUMP_VERSION,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TransactionMetadata,
)
from broker.transactions.coordinator.unconfirmed_refusals import (
    HasLedSince,
    UnconfirmedRefusals,
)
from broker.transactions.interfaces import ProducerIdAndEpoch
from protocol.error_codes import ErrorCode
from storage.environment.clock import Clock

logger = logging.getLogger(__name__)

NO_PRODUCER = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)

ProducerDone = Callable[[ErrorCode, ProducerIdAndEpoch], None]
"""Called once with the error code, and with the new producer id and epoch if they have changed."""

FindShard = Callable[[str], TransactionShard | ErrorCode]
"""The shard of a transactional id, or why it cannot be served here and now."""


class EndTransaction:
    """See the module."""

    __slots__ = ("_clock", "_completion", "_find", "_producer_ids", "_refusals")

    def __init__(
        self,
        find: FindShard,
        completion: Completion,
        producer_ids: ProducerIdSource,
        clock: Clock,
        has_led_since: HasLedSince,
    ) -> None:
        self._refusals = UnconfirmedRefusals(has_led_since)
        self._find = find
        self._completion = completion
        self._producer_ids = producer_ids
        self._clock = clock

    def end(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        *,
        commit: bool,
        client_transaction_version: int,
        done: ProducerDone,
        fresh_producer_id: int | None = None,
    ) -> None:
        """End a client's transaction.

        Args:
            transactional_id: Of the client.
            producer: The client's producer id and epoch.
            commit: Or abort.
            client_transaction_version: 2 when the client expects a new epoch in the answer.
            done: Gets (NONE, next producer) from version 2 on, else (code, NO_PRODUCER).
            fresh_producer_id: A producer id that was requested before.
        """
        if not transactional_id:
            done(ErrorCode.INVALID_REQUEST, NO_PRODUCER)
            return
        shard = self._find(transactional_id)
        if isinstance(shard, ErrorCode):
            done(shard, NO_PRODUCER)
            return
        metadata = shard.transactions.get(transactional_id)
        if metadata is None:
            done(ErrorCode.INVALID_PRODUCER_ID_MAPPING, NO_PRODUCER)
            return
        bumps = client_transaction_version >= EPOCH_BUMP_VERSION
        check = check_end if bumps else check_end_before_version_2
        code = check(metadata, producer, commit=commit)
        if code is ErrorCode.INVALID_TXN_STATE and not self._refusals.may_be_said(
            shard, transactional_id, producer, commit=commit, now_ms=self._clock.monotonic_ms()
        ):
            code = ErrorCode.NOT_COORDINATOR
        if code is not None:
            done(code, metadata.producer if bumps and code is ErrorCode.NONE else NO_PRODUCER)
            return
        next_producer_id = NO_PRODUCER_ID
        if bumps and metadata.is_epoch_exhausted:
            taken = fresh_producer_id
            if taken is None:
                taken = self._producer_ids.try_next()
            if taken is None:
                self._producer_ids.request(
                    lambda fresh: self.end(
                        transactional_id,
                        producer,
                        commit=commit,
                        client_transaction_version=client_transaction_version,
                        done=done,
                        fresh_producer_id=fresh,
                    ),
                    lambda failure: done(failure, NO_PRODUCER),
                )
                return
            next_producer_id = taken
        transition = metadata.prepare_end(
            commit=commit,
            client_transaction_version=client_transaction_version,
            now_ms=self._clock.now_ms(),
            next_producer_id=next_producer_id,
        )
        shard.append(metadata, transition, partial(self._prepared, shard, metadata, bumps, done))

    def abort_by_coordinator(
        self,
        shard: TransactionShard,
        metadata: TransactionMetadata,
        *,
        transaction_version: int,
        done: Done,
    ) -> None:
        """Fence the producer and abort its ongoing transaction; nothing may be pending.

        `transaction_version` is the cluster's: there is no client.
        """
        transition = metadata.prepare_fence(
            client_transaction_version=transaction_version, now_ms=self._clock.now_ms()
        )

        def prepared(code: ErrorCode, _producer: ProducerIdAndEpoch) -> None:
            done(code)

        shard.append(
            metadata, transition, partial(self._prepared, shard, metadata, False, prepared)
        )

    def _prepared(
        self,
        shard: TransactionShard,
        metadata: TransactionMetadata,
        with_producer: bool,
        done: ProducerDone,
        code: ErrorCode,
    ) -> None:
        if code is not ErrorCode.NONE:
            done(code, NO_PRODUCER)
            return
        transition = metadata.prepare_complete(now_ms=self._clock.now_ms())
        producer = ProducerIdAndEpoch(transition.producer_id, transition.producer_epoch)
        try:
            done(ErrorCode.NONE, producer if with_producer else NO_PRODUCER)
        finally:
            # Whatever becomes of the answer: nobody else would complete it.
            self._completion.begin(shard, metadata, transition)
