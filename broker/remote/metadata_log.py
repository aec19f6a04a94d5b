"""`MetadataLog` on this broker's own partitions of `__remote_log_metadata`.

    append ──> ReplicaManager.append_internal ──flushed (flush.messages=1)──> offset
    read   <── ReplicaManager.read_internal, up to the high watermark
    a partition's high watermark moves ──> its fetch watchers ──> listener.on_advanced

Of a single node, which has all partitions; `broker.remote.cluster_metadata_log` is a member's.
"""

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

from broker.remote.metadata_pages import page_of
from broker.remote.metadata_topic import REMOTE_LOG_METADATA, ensure_metadata_topic
from broker.remote.partition_watch import PartitionWatch
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from protocol.records.builder import build_batch
from storage.errors import OffsetOutOfRangeError, StorageError
from storage.types.topic_partition import TopicPartition
from tiered.errors import (
    RemoteOffsetNotFoundError,
    RemoteStorageError,
    RemoteStorageNotReadyError,
)
from tiered.metadata.log import LogOffsets, LogPage, MetadataLogListener

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.replicas.partition import Partition
    from broker.replicas.replica_manager import ReplicaManager
    from storage.environment.clock import Clock


class ReplicaMetadataLog:
    """See the module; the composition root calls `on_serving` for partitions of the topic."""

    def __init__(
        self,
        replicas: "ReplicaManager",
        controller: "Controller",
        *,
        clock: "Clock",
        partitions: int,
        replication_factor: int = 3,
    ) -> None:
        """Nothing is created before `open`.

        Args:
            replicas: Where the partitions are.
            controller: Creates the topic when it is missing.
            clock: Times of the records.
            partitions: Of a topic that has to be created (`metadata_partitions`).
            replication_factor: Likewise, at most the brokers there are.
        """
        self._replicas = replicas
        self._controller = controller
        self._clock = clock
        self._partitions = partitions
        self._replication_factor = replication_factor
        self._listener: MetadataLogListener | None = None
        self._topic_id = UUID(int=0)
        self._partition_count = 0
        self._watches: dict[int, PartitionWatch] = {}

    @property
    def topic_id(self) -> UUID:
        """See MetadataLog; another one once the topic was deleted and created again."""
        topic = self._controller.image.topics.get(REMOTE_LOG_METADATA)
        return self._topic_id if topic is None else topic.topic_id

    @property
    def partition_count(self) -> int:
        """See MetadataLog; as it was when opened, since it decides what is where."""
        return self._partition_count

    async def open(self, listener: MetadataLogListener) -> None:
        """See MetadataLog."""
        topic = await ensure_metadata_topic(
            self._controller,
            partitions=self._partitions,
            replication_factor=self._replication_factor,
        )
        self._topic_id = topic.topic_id
        self._partition_count = len(topic.partitions)
        self._listener = listener
        for index in range(self._partition_count):
            if self._replicas.leader_of(REMOTE_LOG_METADATA, index) is not None:
                self.on_serving(index)

    def on_role(self, partition: int) -> None:
        """This broker leads a partition of the topic, or has no role for it any more."""
        if self._replicas.leader_of(REMOTE_LOG_METADATA, partition) is None:
            self._on_gone(partition)
        else:
            self.on_serving(partition)

    def on_serving(self, partition: int) -> None:
        """A partition of the topic is open here, and led by this broker."""
        found = self._replicas.leader_of(REMOTE_LOG_METADATA, partition)
        if self._listener is None or found is None:
            # Before `open`, which finds them itself.
            return
        watch = self._watches.get(partition)
        if watch is not None:
            if watch.partition is found:
                return
            watch.abandon()
        watch = self._watches[partition] = PartitionWatch(found, self._look)
        found.watch_fetch().add(watch)
        self._listener.on_elected(partition)
        self._listener.on_advanced(partition)

    def _look(self, partition: "Partition") -> bool:
        """A partition's high watermark has moved, or it has gone; False: watch it no more."""
        index = partition.topic_partition.partition
        if partition.gone:
            self._on_gone(index)
            return False
        if self._listener is not None:
            self._listener.on_advanced(index)
        return True

    def _on_gone(self, partition: int) -> None:
        """A partition is not here any more."""
        watch = self._watches.pop(partition, None)
        if watch is not None:
            watch.abandon()
        if self._listener is not None:
            self._listener.on_resigned(partition)

    def _partition(self, index: int) -> "Partition":
        partition = self._replicas.leader_of(REMOTE_LOG_METADATA, index)
        if partition is None:
            raise RemoteStorageNotReadyError(f"{REMOTE_LOG_METADATA}-{index} is not served here")
        return partition

    async def append(self, partition: int, *values: bytes) -> int:
        """See MetadataLog."""
        self._partition(partition)
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def committed(code: ErrorCode, base_offset: int) -> None:
            if future.done():
                return
            if code is ErrorCode.NONE:
                future.set_result(base_offset)
            else:
                future.set_exception(
                    RemoteStorageError(f"{REMOTE_LOG_METADATA}-{partition}: {code.name}")
                )

        now_ms = self._clock.now_ms()
        batch = build_batch([(None, value, (), now_ms) for value in values])
        self._replicas.append_internal(
            TopicPartition(REMOTE_LOG_METADATA, partition), batch, committed
        )
        return await future

    async def read(self, partition: int, offset: int, max_bytes: int) -> LogPage:
        """See MetadataLog."""
        self._partition(partition)
        topic_partition = TopicPartition(REMOTE_LOG_METADATA, partition)
        try:
            view = await self._replicas.read_internal(topic_partition, offset, max_bytes)
            return page_of(view, offset)
        except OffsetOutOfRangeError as error:
            raise RemoteOffsetNotFoundError(topic_partition, None, offset) from error
        except (DecodeError, StorageError, OSError) as error:
            raise RemoteStorageError(f"{topic_partition} at {offset}: {error}") from error

    async def offsets(self, partition: int) -> LogOffsets:
        """See MetadataLog."""
        log = self._partition(partition).log
        return LogOffsets(log.log_start_offset, log.high_watermark)

    def close(self) -> None:
        """See MetadataLog."""
        self._listener = None
        for watch in self._watches.values():
            watch.abandon()
        self._watches.clear()
