"""`MetadataLog` of a member of a cluster, on partitions of which it may lead some, or none.

    append ──> MetadataWriter ──> the leader, here or there, with acks=all
    offsets <── the leader: all that was ever acknowledged lies below the end it names
    read   <── own replica, up to its high watermark     (led here, or followed)
           <── Fetch from the leader                     what the own replica does not have yet

A follower's high watermark comes with its next fetch, half a second later at most. What is known
to be committed beyond it - this broker has written it, or the leader has named its end - is fetched
from the leader at once, so that an event is visible to its writer when it was written. A partition
without a replica here is asked for its end every `POLL_MS`, as long as it is read.

Source: Kafka, TopicBasedRemoteLogMetadataManager.java, ConsumerTask.java.
"""

import asyncio
from typing import TYPE_CHECKING, Final
from uuid import UUID

from broker.remote.metadata_leaders import NO_LEADER, Leader, MetadataLeaders
from broker.remote.metadata_pages import page_of
from broker.remote.metadata_topic import REMOTE_LOG_METADATA, ensure_cluster_metadata_topic
from broker.remote.partition_watch import PartitionWatch
from protocol.errors import DecodeError
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
    from broker.controller.images.cluster_image import ClusterImage
    from broker.remote.metadata_writer import MetadataWriter
    from broker.replicas.partition import Partition
    from broker.replicas.replica_manager import ReplicaManager
    from storage.environment.environment import Environment

POLL_MS: Final = 500.0
"""Between two looks for something new in partitions that have no replica here."""


class ClusterMetadataLog:
    """See the module; roles of the topic's partitions come by `on_role`. On the loop's thread."""

    def __init__(
        self,
        replicas: "ReplicaManager",
        controller: "Controller",
        leaders: MetadataLeaders,
        writer: "MetadataWriter",
        *,
        node_id: int,
        environment: "Environment",
    ) -> None:
        """Nothing is created before `open`.

        Args:
            replicas: What is open here.
            controller: Creates the topic when it is missing.
            leaders: Other brokers.
            writer: Writes, here and there.
            node_id: Of this broker.
            environment: Of the broker.
        """
        self._replicas = replicas
        self._controller = controller
        self._leaders = leaders
        self._writer = writer
        self._node_id = node_id
        self._clock = environment.clock
        self._timer = environment.timer
        self._listener: MetadataLogListener | None = None
        self._topic_id = UUID(int=0)
        self._partition_count = 0
        self._watches: dict[int, PartitionWatch] = {}
        # Ends that were named by the leader, or reached by an append of this broker.
        self._ends: dict[int, int] = {}
        # Read without a replica here.
        self._afar: dict[int, None] = {}
        self._polling: asyncio.Task[None] | None = None
        self._poll_handle = self._timer.call_later_ms(POLL_MS, self._poll_soon)

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
        """See MetadataLog. The topic is never made with fewer replicas than configured."""
        topic = await ensure_cluster_metadata_topic(self._controller)
        self._topic_id = topic.topic_id
        self._partition_count = len(topic.partitions)
        self._listener = listener
        for index in range(self._partition_count):
            self.on_role(index)

    def close(self) -> None:
        """See MetadataLog."""
        self._listener = None
        self._poll_handle.cancel()
        if self._polling is not None:
            self._polling.cancel()
        for watch in self._watches.values():
            watch.abandon()
        self._watches.clear()

    # -- roles and images ------------------------------------------------------------------------

    def on_role(self, index: int) -> None:
        """This broker leads the partition, follows it, or has no role for it any more."""
        if self._listener is None:
            # Before `open`, which finds the roles itself.
            return
        found = self._replicas.replica_of(REMOTE_LOG_METADATA, index)
        watch = self._watches.get(index)
        if watch is not None and (watch.partition is not found or watch.completed):
            watch.abandon()
            del self._watches[index]
            watch = None
        if found is not None and watch is None:
            watch = self._watches[index] = PartitionWatch(found, self._is_read)
            found.watch_fetch().add(watch)
        if found is not None and found.is_leader:
            self._listener.on_elected(index)
        else:
            self._listener.on_resigned(index)
        self._listener.on_advanced(index)

    def on_image(self, old: "ClusterImage", new: "ClusterImage") -> None:
        """Try again at once what waits for a leader, when there is another one."""
        before, now = (image.topics.get(REMOTE_LOG_METADATA) for image in (old, new))
        if now is None or before is now:
            return
        for index, partition in enumerate(now.partitions):
            was = None if before is None else before.partitions[index : index + 1]
            if was and was[0].leader_epoch == partition.leader_epoch:
                continue
            self._leaders.moved(index)
            if self._listener is not None:
                self._listener.on_advanced(index)

    def _is_read(self, partition: "Partition") -> bool:
        """Note that the high watermark of an open partition has moved; False: watch it no more."""
        topic, index = partition.topic_partition
        if self._listener is None or self._replicas.replica_of(topic, index) is not partition:
            return False
        self._listener.on_advanced(index)
        return True

    # -- writing ---------------------------------------------------------------------------------

    async def append(self, partition: int, *values: bytes) -> int:
        """See MetadataLog: committed on all in-sync replicas when this returns."""
        offset = await self._writer.append(partition, values)
        self._reached(partition, offset + len(values))
        return offset

    def _reached(self, partition: int, end: int) -> None:
        self._ends[partition] = max(end, self._ends.get(partition, 0))

    # -- reading ---------------------------------------------------------------------------------

    async def offsets(self, partition: int) -> LogOffsets:
        """See MetadataLog; the leader's word, since a replica's end may be behind."""
        own = self._replicas.leader_of(REMOTE_LOG_METADATA, partition)
        if own is not None:
            leading = own.leading
            log = own.log
            if own.is_in_doubt(self._clock.monotonic_ms()):
                raise RemoteStorageNotReadyError(f"{own.topic_partition}: who leads is in doubt")
            if leading is not None and log.high_watermark < leading.epoch_start_offset:
                # What an earlier leader has acknowledged may lie above it.
                raise RemoteStorageNotReadyError(f"{own.topic_partition}: its end is not known yet")
            return LogOffsets(log.log_start_offset, log.high_watermark)
        leader = self._leader(partition)
        end = await self._leaders.end(partition, leader)
        start = await self._leaders.start(partition, leader)
        # It may have been cut back: then what was known is no longer there to be fetched.
        self._ends[partition] = end
        return LogOffsets(start, end)

    def _leader(self, partition: int) -> Leader:
        leader = self._leaders.of(partition)
        if leader.node_id in (NO_LEADER, self._node_id):
            raise RemoteStorageNotReadyError(f"{REMOTE_LOG_METADATA}-{partition} is not led now")
        return leader

    async def read(self, partition: int, offset: int, max_bytes: int) -> LogPage:
        """See MetadataLog."""
        topic_partition = TopicPartition(REMOTE_LOG_METADATA, partition)
        own = self._replicas.replica_of(*topic_partition)
        is_leader = own is not None and own.is_leader
        if own is None:
            self._afar[partition] = None
        elif is_leader or _has(own, offset):
            self._afar.pop(partition, None)
            try:
                view = await self._replicas.read_committed(own, offset, max_bytes)
                return page_of(view, offset)
            except OffsetOutOfRangeError as error:
                if is_leader:
                    raise RemoteOffsetNotFoundError(topic_partition, None, offset) from error
            except (DecodeError, StorageError, OSError) as error:
                raise RemoteStorageError(f"{topic_partition} at {offset}: {error}") from error
        if offset >= self._ends.get(partition, 0):
            return LogPage([], offset)
        leader = self._leader(partition)
        fetched = await self._leaders.fetch(partition, leader, offset, max_bytes)
        try:
            return page_of(memoryview(fetched.records), offset)
        except DecodeError as error:
            raise RemoteStorageError(f"{topic_partition} at {offset}: {error}") from error

    # -- partitions that have no replica here ----------------------------------------------------

    def _poll_soon(self) -> None:
        self._poll_handle = self._timer.call_later_ms(POLL_MS, self._poll_soon)
        if self._afar and (self._polling is None or self._polling.done()):
            self._polling = asyncio.get_running_loop().create_task(self._poll())

    async def _poll(self) -> None:
        for index in list(self._afar):
            before = self._ends.get(index, 0)
            try:
                end = await self._leaders.end(index, self._leader(index))
            except RemoteStorageNotReadyError:
                continue
            self._reached(index, end)
            if end > before and self._listener is not None:
                self._listener.on_advanced(index)


def _has(own: "Partition", offset: int) -> bool:
    """Whether a follower's replica has a committed record at `offset`, and may be read now."""
    log = own.log
    return not own.is_truncating and bool(log.log_start_offset <= offset < log.high_watermark)
