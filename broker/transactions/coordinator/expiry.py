"""Expiry of transactions, which are aborted, and of transactional ids, which are deleted.

Both scan all transactional ids periodically, in slices, so that a million of them do not hold the
loop. A transaction that has timed out is aborted with an epoch that fences its producer; it may get
some seconds more than its timeout (`transaction.abort.timed.out...cleanup.interval.ms`). That time
is measured by the monotonic clock: a wall clock that is set back by hours would leave the
transaction of a dead producer open that long, and read_committed consumers standing before it; one
that is set forward would abort them all. In Kafka it does.

Source: Kafka, TransactionStateManager.scala (timedOutTransactions, removeExpiredTransactionalIds).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable

from broker.transactions.coordinator.end_transaction import EndTransaction
from broker.transactions.coordinator.shard import TransactionShard
from broker.transactions.coordinator.stats import TransactionStats
from broker.transactions.coordinator.transaction_metadata import TransactionMetadata
from broker.transactions.coordinator.transaction_state import TransactionState
from protocol.error_codes import ErrorCode
from storage.environment.clock import Clock

logger = logging.getLogger(__name__)

IDS_PER_SLICE = 1_000
"""Transactional ids that are scanned before yielding to the event loop."""

ABORTS_PER_SLICE = 20
"""Transactions aborted before yielding to the event loop; each writes several records."""

TOMBSTONES_PER_BATCH = 100
TOMBSTONE_BYTES_PER_BATCH = 64 * 1024
"""Transactional ids deleted with one write, and their bytes after which it is full: far below the
largest batch."""

NO_TIMEOUT_MS = 0x7FFFFFFF
"""No timeout: the transaction waits for an external coordinator (KIP-939)."""


class Expiry:
    """See the module."""

    __slots__ = ("_clock", "_end", "_expiration_ms", "_shards", "_stats", "_transaction_version")

    def __init__(
        self,
        shards: Callable[[], Iterable[TransactionShard]],
        end: EndTransaction,
        *,
        clock: Clock,
        stats: TransactionStats,
        expiration_ms: int,
        transaction_version: Callable[[], int],
    ) -> None:
        self._shards = shards
        self._end = end
        self._clock = clock
        self._stats = stats
        self._expiration_ms = expiration_ms
        self._transaction_version = transaction_version

    async def abort_timed_out(self) -> None:
        """Abort every transaction that has been open for longer than its timeout."""
        aborted = 0
        for shard in list(self._shards()):
            for position, metadata in enumerate(list(shard.transactions.values()), 1):
                if shard.log.is_closed:
                    break
                if self._is_timed_out(metadata):
                    self._abort(shard, metadata)
                    aborted += 1
                    if aborted % ABORTS_PER_SLICE == 0:
                        await asyncio.sleep(0)
                if position % IDS_PER_SLICE == 0:
                    await asyncio.sleep(0)
            await asyncio.sleep(0)

    def _is_timed_out(self, metadata: TransactionMetadata) -> bool:
        return (
            metadata.state is TransactionState.ONGOING
            and metadata.pending is None
            and metadata.timeout_ms != NO_TIMEOUT_MS
            and metadata.begun_ms + metadata.timeout_ms < self._clock.monotonic_ms()
        )

    def _abort(self, shard: TransactionShard, metadata: TransactionMetadata) -> None:
        def aborting(code: ErrorCode) -> None:
            if code is ErrorCode.NONE:
                self._stats.timeouts += 1
            logger.info(
                "transaction timed out transactional_id=%s producer_id=%d outcome=%s",
                metadata.transactional_id,
                metadata.producer_id,
                "aborted" if code is ErrorCode.NONE else code.name,
            )

        self._end.abort_by_coordinator(
            shard, metadata, transaction_version=self._transaction_version(), done=aborting
        )

    async def expire_ids(self) -> None:
        """Delete transactional ids that were idle for `transactional.id.expiration.ms`."""
        for shard in list(self._shards()):
            due: list[TransactionMetadata] = []
            size = 0
            for position, metadata in enumerate(list(shard.transactions.values()), 1):
                if shard.log.is_closed:
                    break
                if self._is_expired(metadata):
                    metadata.prepare_dead()
                    due.append(metadata)
                    size += len(metadata.record_key)
                if len(due) == TOMBSTONES_PER_BATCH or size >= TOMBSTONE_BYTES_PER_BATCH:
                    self._forget(shard, due)
                    due = []
                    size = 0
                    await asyncio.sleep(0)
                elif position % IDS_PER_SLICE == 0:
                    # Nothing stays pending across loop iterations.
                    self._forget(shard, due)
                    due = []
                    size = 0
                    await asyncio.sleep(0)
            self._forget(shard, due)
            await asyncio.sleep(0)

    def _is_expired(self, metadata: TransactionMetadata) -> bool:
        return (
            metadata.state.may_expire
            and metadata.pending is None
            and metadata.last_update_timestamp_ms <= self._clock.now_ms() - self._expiration_ms
        )

    def _forget(self, shard: TransactionShard, due: list[TransactionMetadata]) -> None:
        if not due:
            return

        def forgotten(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE:
                logger.warning(
                    "append to __transaction_state failed, transactional ids not expired "
                    "count=%d error=%s",
                    len(due),
                    code.name,
                )
                return
            for metadata in due:
                shard.remove(metadata.transactional_id)
            self._stats.expired_ids += len(due)

        shard.append_tombstones(due, forgotten)
