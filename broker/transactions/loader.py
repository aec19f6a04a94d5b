"""Reads a partition of `__transaction_state` back into a shard.

The log holds every transition since its last compaction, so first only the newest value of each key
is kept, undecoded; then what is left is decoded once. Between slices the loop gets its turn.

Everything that is in the log counts, also a record whose writer gave up waiting for its commit. So
the coordinator begins to load when the end of the log is committed, and not before.

Source: Kafka, TransactionStateManager.scala (loadTransactionMetadata).
"""

import asyncio
import logging
from typing import Protocol

from broker.transactions.shard import TransactionShard
from broker.transactions.stats import TransactionStats
from broker.transactions.transaction_metadata import TransactionMetadata
from protocol.errors import DecodeError
from protocol.internal.transaction_log import (
    decode_transaction_log_key,
    decode_transaction_log_value,
)
from protocol.records.batch import BatchHeader, iterate_batches
from protocol.records.record import iterate_records
from storage.types.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

RECORDS_PER_SLICE = 250
"""Records that are worked on before the loop gets its turn: about a millisecond."""

BATCH_SIZE_MAX = 64 * 1024 * 1024
"""Most bytes one batch may decompress to."""


class InternalReader(Protocol):
    """The part of the replica manager that coordinators read through."""

    async def read_internal(self, tp: TopicPartition, offset: int, max_bytes: int) -> memoryview:
        """Whole batches from `offset`, perhaps a part of one more; empty at the end."""
        ...


class TransactionLoader:
    """Reads one partition once."""

    __slots__ = ("_latest", "_read_size", "_reader", "_topic_partition", "records")

    def __init__(
        self, reader: InternalReader, topic_partition: TopicPartition, *, read_size: int
    ) -> None:
        self._reader = reader
        self._topic_partition = topic_partition
        self._read_size = read_size
        # Undecoded key to (undecoded value, record offset).
        self._latest: dict[bytes, tuple[bytes, int]] = {}
        self.records = 0

    async def read(self, start_offset: int, end_offset: int) -> None:
        """Read [start_offset, end_offset), all of it committed.

        Raises:
            DecodeError: A batch is damaged.
            StorageError, OSError, KeyError: The log cannot be read, or is not here any more.
        """
        offset = start_offset
        while offset < end_offset:
            view = await self._reader.read_internal(self._topic_partition, offset, self._read_size)
            next_offset = offset
            for position, header in iterate_batches(view, allow_partial=True):
                if header.last_offset >= offset:
                    await self._read_batch(view[position:], header)
                next_offset = header.next_offset
            if next_offset <= offset:
                return
            offset = next_offset
            await asyncio.sleep(0)

    async def _read_batch(self, batch: memoryview, header: BatchHeader) -> None:
        if header.is_control:
            return
        for offset, _, key, value, _ in iterate_records(batch, max_size=BATCH_SIZE_MAX):
            self.records += 1
            if key is not None:
                if value is None:
                    self._latest.pop(key, None)
                else:
                    self._latest[key] = (value, offset)
            if not self.records % RECORDS_PER_SLICE:
                await asyncio.sleep(0)

    async def fill(self, shard: TransactionShard, stats: TransactionStats) -> None:
        """Decode what was read; a record that is damaged or of a newer release is passed over."""
        for position, (raw_key, (raw_value, offset)) in enumerate(self._latest.items(), 1):
            try:
                transactional_id = decode_transaction_log_key(raw_key)
                if transactional_id is None:
                    stats.skipped_records += 1
                else:
                    value = decode_transaction_log_value(raw_value)
                    shard.add_loaded(TransactionMetadata.from_record(transactional_id, value))
            except (DecodeError, ValueError) as error:
                stats.skipped_records += 1
                logger.error(
                    "record passed over partition=%s offset=%d error=%s",
                    self._topic_partition,
                    offset,
                    error,
                )
            if not position % RECORDS_PER_SLICE:
                await asyncio.sleep(0)
