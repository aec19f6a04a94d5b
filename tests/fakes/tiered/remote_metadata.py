"""Metadata of remote segments in memory, with faults, and with what a restart leaves of it.

    events = MetadataEvents()                      what is on disk: outlives the manager
    metadata = FakeRemoteMetadata(events)
    metadata.fail("update", StoreTimeoutError("x"))                 not written
    metadata.fail("update", StoreTimeoutError("x"), written=True)   written; the answer is lost
    metadata.fail("add", hangs=True)                                never answers
    metadata.hidden.add(partition)                                  being read, so not ready
    metadata = FakeRemoteMetadata(events)                           after a restart

A record whose answer is lost is seen by look-ups at once, with `late=True` only after `catch_up`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tiered.errors import (
    InvalidTransitionError,
    RemoteStorageNotReadyError,
)
from tiered.metadata.segment_index import RemoteLogMetadataCache
from tiered.segment_metadata import (
    PartitionDeleteState,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemotePartitionDelete,
    SegmentState,
    TopicIdPartition,
    check_partition_step,
)

MetadataEvent: TypeAlias = (
    RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate | RemotePartitionDelete
)

Reach: TypeAlias = Callable[[str], Awaitable[None]]


async def _nowhere(point: str) -> None:
    pass


@dataclass
class MetadataEvents:
    """Everything ever told, in order."""

    events: list[MetadataEvent] = field(default_factory=list)


@dataclass
class _Fault:
    error: Exception | None
    written: bool
    late: bool
    hangs: bool
    times: int


class _Partition:
    def __init__(self) -> None:
        self.cache = RemoteLogMetadataCache()
        self.deletion: RemotePartitionDelete | None = None


class FakeRemoteMetadata:
    """`tiered.metadata.remote_log_metadata_manager.RemoteLogMetadataManager`; see the module.

    `reach` is awaited before ("add") and after ("add written") each record.
    """

    def __init__(self, events: MetadataEvents | None = None, reach: Reach = _nowhere) -> None:
        self.log = events or MetadataEvents()
        self.reach = reach
        self.hidden: set[TopicIdPartition] = set()
        self.refreshed: list[TopicIdPartition] = []
        self.loss = ""
        self.withheld: dict[TopicIdPartition, str] = {}
        self._assigned: dict[TopicIdPartition, None] = {}
        self._partitions: dict[TopicIdPartition, _Partition] = {}
        self._faults: dict[str, list[_Fault]] = {}
        self._unseen: list[MetadataEvent] = []
        self._visible = asyncio.Event()
        for event in self.log.events:
            self._apply(event)

    # -- the test's side ---------------------------------------------------------------------

    def fail(
        self,
        call: str,
        error: Exception | None = None,
        *,
        written: bool = False,
        late: bool = False,
        hangs: bool = False,
        times: int = 1,
    ) -> None:
        fault = _Fault(error, written, late, hangs, times)
        self._faults.setdefault(call, []).append(fault)

    def catch_up(self) -> None:
        """What was written and not seen is seen now."""
        for event in self._unseen:
            self._apply(event)
        self._unseen.clear()

    # -- the manager -------------------------------------------------------------------------

    def assign(self, partitions: Iterable[TopicIdPartition]) -> None:
        for partition in partitions:
            self._assigned[partition] = None

    def release(self, partitions: Iterable[TopicIdPartition]) -> None:
        for partition in partitions:
            self._assigned.pop(partition, None)

    def refresh(self, partition: TopicIdPartition) -> None:
        self.refreshed.append(partition)

    async def caught_up(self, partitions: Iterable[TopicIdPartition]) -> None:
        self.catch_up()

    is_steward = True

    def leads(self, partition: TopicIdPartition) -> bool:
        return True

    async def begin_inspection(
        self, partition: TopicIdPartition | None = None
    ) -> Sequence[TopicIdPartition]:
        """What is assigned is all there is."""
        return ()

    def end_inspection(self, inspected: Iterable[TopicIdPartition]) -> None:
        """Nothing was begun."""

    def known(self) -> Sequence[TopicIdPartition]:
        return self.partitions()

    def doubt(self, partition: TopicIdPartition) -> str:
        return self.withheld.get(partition) or self.loss

    def lost(self, partition: TopicIdPartition) -> str:
        return self.loss

    def withhold(self, partition: TopicIdPartition, reason: str) -> None:
        if reason:
            self.withheld[partition] = reason
        else:
            self.withheld.pop(partition, None)

    async def restore(self, segments: Sequence[RemoteLogSegmentMetadata]) -> None:
        for one in segments:
            await self.add(
                one.in_state(
                    SegmentState.COPY_SEGMENT_STARTED, one.broker_id, one.event_timestamp_ms, None
                )
            )
            await self.update(
                RemoteLogSegmentMetadataUpdate(
                    one.segment_id,
                    one.event_timestamp_ms,
                    SegmentState.COPY_SEGMENT_FINISHED,
                    one.broker_id,
                )
            )

    async def accept_partitions(self) -> None:
        pass

    def losses(self) -> Sequence[str]:
        return [self.loss] if self.loss else []

    async def found(self) -> None:
        self.loss = ""

    def is_ready(self, partition: TopicIdPartition) -> bool:
        return partition in self._assigned and partition not in self.hidden

    async def ready(self, partition: TopicIdPartition) -> None:
        while not self.is_ready(partition):
            if partition not in self._assigned:
                raise RemoteStorageNotReadyError(f"{partition} is not assigned")
            await asyncio.sleep(0)

    async def add(self, metadata: RemoteLogSegmentMetadata) -> None:
        self._of(metadata.partition).cache.check_add(metadata)
        await self._tell("add", metadata)

    async def update(self, update: RemoteLogSegmentMetadataUpdate) -> None:
        self._of(update.segment_id.partition).cache.check_update(update)
        await self._tell("update", update)

    async def delete_partition(self, deletion: RemotePartitionDelete) -> None:
        before = self._of(deletion.partition).deletion
        check_partition_step(None if before is None else before.state, deletion.state)
        await self._tell("delete_partition", deletion)

    def known_of(self, partition: TopicIdPartition) -> RemoteLogMetadataCache:
        return self._of(partition).cache

    def find(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        return self._of(partition).cache.find(epoch, offset)

    def find_at_or_after(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        return self._of(partition).cache.find_at_or_after(epoch, offset)

    def find_unfinished(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        return self._of(partition).cache.find_unfinished(epoch, offset)

    def find_next_with_transactions(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        return self._of(partition).cache.find_next_with_transactions(epoch, offset)

    def highest_offset(self, partition: TopicIdPartition, epoch: int) -> int | None:
        return self._of(partition).cache.highest_offset(epoch)

    def segments(
        self, partition: TopicIdPartition, epoch: int | None = None
    ) -> Sequence[RemoteLogSegmentMetadata]:
        return self._of(partition).cache.segments(epoch)

    def size(self, partition: TopicIdPartition, epoch: int | None = None) -> int:
        return self._of(partition).cache.size(epoch)

    def deletions(self) -> Sequence[RemotePartitionDelete]:
        return [p.deletion for p in self._partitions.values() if p.deletion is not None]

    def partitions(self) -> Sequence[TopicIdPartition]:
        return list(self._assigned)

    # -- inside ------------------------------------------------------------------------------

    def _of(self, partition: TopicIdPartition) -> _Partition:
        if not self.is_ready(partition):
            raise RemoteStorageNotReadyError(f"metadata of {partition} is not visible")
        return self._partitions.setdefault(partition, _Partition())

    async def _tell(self, call: str, event: MetadataEvent) -> None:
        await self.reach(call)
        faults = self._faults.get(call)
        fault = faults[0] if faults else None
        if fault is not None and faults is not None:
            fault.times -= 1
            if fault.times == 0:
                faults.pop(0)
            if fault.hangs:
                await asyncio.Event().wait()
            if not fault.written:
                assert fault.error is not None
                raise fault.error
        self.log.events.append(event)
        if fault is not None and fault.late:
            self._unseen.append(event)
        else:
            self._apply(event)
        if fault is not None and fault.error is not None:
            raise fault.error
        await self.reach(f"{call} written")

    def _apply(self, event: MetadataEvent) -> None:
        if isinstance(event, RemotePartitionDelete):
            if event.state is PartitionDeleteState.DELETE_PARTITION_FINISHED:
                self._partitions.pop(event.partition, None)
                self._assigned.pop(event.partition, None)
                return
            self._partitions.setdefault(event.partition, _Partition()).deletion = event
            return
        partition = event.segment_id.partition
        cache = self._partitions.setdefault(partition, _Partition()).cache
        try:
            if isinstance(event, RemoteLogSegmentMetadata):
                cache.add(event)
            else:
                cache.update(
                    event.segment_id.id.bytes,
                    event.state,
                    event.broker_id,
                    event.event_timestamp_ms,
                    event.custom_metadata,
                )
        except InvalidTransitionError:
            # As every reader of the topic does with a record that came too late.
            pass
