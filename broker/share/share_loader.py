"""Reads a partition of `__share_group_state` into a shard, record by record, in slices."""

import asyncio
import logging

from broker.share.share_shard import ShareShard
from broker.transactions.loader import BATCH_SIZE_MAX, InternalReader
from protocol.errors import DecodeError
from protocol.records.batch import BatchHeader, iterate_batches
from protocol.records.record import iterate_records
from storage.types.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

RECORDS_PER_SLICE = 100
"""Records that are worked on before the loop gets its turn: about two milliseconds."""


class ShareLoader:
    """Reads one partition once."""

    __slots__ = ("_read_size", "_reader", "_shard", "_topic_partition", "records")

    def __init__(
        self,
        reader: InternalReader,
        topic_partition: TopicPartition,
        shard: ShareShard,
        *,
        read_size: int,
    ) -> None:
        self._reader = reader
        self._topic_partition = topic_partition
        self._shard = shard
        self._read_size = read_size
        self.records = 0

    async def read(self, start_offset: int, end_offset: int) -> None:
        """Replay [start_offset, end_offset), all of it committed.

        A record that is damaged in itself is passed over with a line in the log; so is an update
        whose snapshot is not there, which happens below the log start after a prune.

        Raises:
            DecodeError: A batch is damaged.
            StorageError, OSError, KeyError: The log cannot be read, or is not here any more.
        """
        offset = start_offset
        while offset < end_offset:
            view = await self._reader.read_internal(self._topic_partition, offset, self._read_size)
            next_offset = offset
            for position, header in iterate_batches(view, allow_partial=True):
                if header.last_offset >= offset and not header.is_control:
                    await self._read_batch(view[position:], header, offset)
                next_offset = header.next_offset
            if next_offset <= offset:
                return
            offset = next_offset
            await asyncio.sleep(0)

    async def _read_batch(self, batch: memoryview, header: BatchHeader, from_offset: int) -> None:
        for offset, _, key, value, _ in iterate_records(batch, max_size=BATCH_SIZE_MAX):
            if offset < from_offset or key is None:
                continue
            self.records += 1
            try:
                self._shard.replay(key, value, offset)
            except DecodeError as error:
                self._shard.skipped_records += 1
                logger.error(
                    "record passed over partition=%s offset=%d error=%s",
                    self._topic_partition,
                    offset,
                    error,
                )
            if not self.records % RECORDS_PER_SLICE:
                await asyncio.sleep(0)
