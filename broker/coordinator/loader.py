"""The replay of a partition of a coordinator's topic into a shard, in slices of time.

    [log start, end) ──read_size bytes──> batches ──┬── control ──> replay_marker
                                                    └── records ──> replay(key, value, offset, id)

All of it is committed: every record of the log counts, also one whose append timed out before it
was committed. So the runtime starts loading only when the high watermark is the log end offset.

Source: Kafka, CoordinatorLoaderImpl.java.
"""

import logging
from collections.abc import Callable
from typing import Final, Protocol

from broker.coordinator.shard import NO_PRODUCER
from broker.coordinator.slices import Slices
from protocol.errors import DecodeError
from protocol.records.batch import BatchHeader, iterate_batches
from protocol.records.control import ControlType, parse_end_transaction_marker
from protocol.records.record import iterate_records
from storage.types.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

BATCH_SIZE_MAX: Final = 64 * 1024 * 1024
"""Most bytes one batch may decompress to."""


class InternalReader(Protocol):
    """The replica manager's interface for coordinators' reads."""

    async def read_internal(
        self, topic_partition: TopicPartition, offset: int, max_bytes: int
    ) -> memoryview:
        """Read whole batches from `offset`, perhaps a part of one more; empty at the end."""
        ...


class Replayed(Protocol):
    """The target of a replay; a `Shard` as a rule."""

    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
        """See `Shard.replay`."""
        ...

    def replay_marker(self, producer_id: int, *, commit: bool) -> None:
        """See `Shard.replay_marker`."""
        ...


class ShardLoader:
    """One load of one partition.

    Attributes:
        records: Read so far.
        skipped_records: Of these, passed over because they are damaged.
    """

    __slots__ = (
        "_is_wanted",
        "_read_size",
        "_reader",
        "_shard",
        "_slices",
        "_topic_partition",
        "records",
        "skipped_records",
    )

    def __init__(
        self,
        reader: InternalReader,
        topic_partition: TopicPartition,
        shard: Replayed,
        *,
        read_size: int,
        slices: Slices,
        is_wanted: Callable[[], bool],
    ) -> None:
        """`is_wanted` is called before each read; once it returns False, loading ends."""
        self._reader = reader
        self._topic_partition = topic_partition
        self._shard = shard
        self._read_size = read_size
        self._slices = slices
        self._is_wanted = is_wanted
        self.records = 0
        self.skipped_records = 0

    async def load(self, start_offset: int, end_offset: int) -> None:
        """Replay the records of [start_offset, end_offset).

        Raises:
            DecodeError: A batch is damaged.
            StorageError, OSError, KeyError: The log cannot be read, or is not here any more.
        """
        offset = start_offset
        while offset < end_offset and self._is_wanted():
            view = await self._reader.read_internal(self._topic_partition, offset, self._read_size)
            next_offset = offset
            for position, header in iterate_batches(view, allow_partial=True):
                if header.last_offset >= offset:
                    if header.is_control:
                        self._replay_marker(view[position:], header)
                    else:
                        await self._replay_batch(view[position:], header, offset)
                next_offset = header.next_offset
            if next_offset <= offset:
                return
            offset = next_offset
            await self._slices.pause()

    def _replay_marker(self, batch: memoryview, header: BatchHeader) -> None:
        marker = parse_end_transaction_marker(batch)
        if marker is not None:
            commit = marker.control_type is ControlType.COMMIT
            self._shard.replay_marker(header.producer_id, commit=commit)

    async def _replay_batch(self, batch: memoryview, header: BatchHeader, first: int) -> None:
        """Replay the records from offset `first` on: the log may start inside of a batch."""
        producer_id = header.producer_id if header.is_transactional else NO_PRODUCER
        replay = self._shard.replay
        slices = self._slices
        for offset, _, key, value, _ in iterate_records(batch, max_size=BATCH_SIZE_MAX):
            if offset < first:
                continue
            self.records += 1
            if key is not None:
                try:
                    replay(key, value, offset, producer_id)
                except DecodeError as error:
                    self.skipped_records += 1
                    logger.error(
                        "record skipped while loading partition=%s offset=%d error=%s",
                        self._topic_partition,
                        offset,
                        error,
                    )
            if slices.is_due():
                await slices.pause()
