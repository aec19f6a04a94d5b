"""RemoteLogMetadataManager on the topic `__remote_log_metadata`.

    add, update, delete_partition ──check──> MetadataLog.append ──committed──┐
                                                                             v
    find, segments, ... <── MetadataPartitionState <──── MetadataReader: read back, in order

Only events that were read back from the topic change what look-ups see (see `partition_reader`).
The check before writing keeps mistakes out of the topic; the one after reading is the one that
counts, because another event may have come in between, from this broker or, in a cluster, from
another.

A metadata partition is read when a user partition in it is assigned, or when this broker leads it:
then `deletions` names the partitions whose deletion was begun, also those that are not assigned.
To go on with such a deletion, assign the partition, then `update`, and `delete_partition` in the
end, which releases it.

The number of metadata partitions is the topic's, for ever: with another one, partitions would be
read in the wrong place. So it is kept beside the snapshots, and a topic with another one is not
opened until an operator has its content rebuilt (`accept_partitions`). (Kafka opens it.)

Source: Kafka, TopicBasedRemoteLogMetadataManager.java, ConsumerTask.java; KIP-405.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from uuid import UUID

from storage.environment.environment import Environment
from storage.environment.timer import TimerHandle
from tiered.deadline import Deadline
from tiered.errors import (
    InvalidTransitionError,
    RemoteStorageError,
    RemoteStorageNotReadyError,
    StoreTimeoutError,
)
from tiered.metadata.log import MetadataLog
from tiered.metadata.partition_reader import MetadataReader
from tiered.metadata.partition_state import UserPartition
from tiered.metadata.partitioner import metadata_partition
from tiered.metadata.records import MetadataEvent, encode_event
from tiered.metadata.segment_index import RemoteLogMetadataCache
from tiered.metadata.settings import MetadataSettings
from tiered.metadata.snapshot_store import SnapshotStore
from tiered.metadata.snapshotter import Snapshotter
from tiered.metadata.stats import MetadataStats
from tiered.segment_metadata import (
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemotePartitionDelete,
    SegmentState,
    TopicIdPartition,
    check_partition_step,
)
from tiered.slicer import Slicer

INSPECTION_MS = 30_000
"""For all metadata partitions to be read; what is not read by then is left alone."""

LOGGER = logging.getLogger(__name__)


class TopicMetadataManager:
    """See the module. Touched on the loop's thread only."""

    def __init__(
        self,
        log: MetadataLog,
        snapshots: SnapshotStore,
        environment: Environment,
        settings: MetadataSettings | None = None,
    ) -> None:
        """Nothing is read before `start`.

        Args:
            log: The topic.
            snapshots: So that a start need not read all of it.
            environment: Of the broker.
            settings: None: the defaults.
        """
        self.stats = MetadataStats()
        self._log = log
        self._environment = environment
        self._clock = environment.clock
        self._timer = environment.timer
        self._settings = settings or MetadataSettings()
        self._slicer = Slicer()
        self._snapshotter = Snapshotter(
            snapshots, environment=environment, stats=self.stats, slicer=self._slicer
        )
        self._snapshots = snapshots
        if snapshots.is_shared:
            self._snapshotter.may_write = lambda index: index in self._led
        self.misfit = ""
        """Why the topic is not opened, though it is there; empty: it is, or comes."""
        self._accepts_partitions = False
        self._open_now = asyncio.Event()
        self._opened = False
        self._closed = False
        self._opening: asyncio.Task[None] | None = None
        self._snapshot_timer: TimerHandle | None = None
        # In the order of their assignment.
        self._assigned: dict[TopicIdPartition, None] = {}
        # Wanted by so many inspections, of maintenance that looks at all there is, or at one.
        self._inspected: Counter[TopicIdPartition] = Counter()
        self._led: set[int] = set()
        self._readers: dict[int, tuple[MetadataReader, asyncio.Task[None]]] = {}
        self._adding: set[UUID] = set()
        # Of partitions that are assigned: why what is not known of them may be lost.
        self._withheld: dict[TopicIdPartition, str] = {}
        self._until_opened: asyncio.Future[None] | None = None

    # -- life ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to find or create the topic, and to read it; returns at once."""
        self._opening = asyncio.get_running_loop().create_task(self._open())
        self._arm_snapshots()

    async def _open(self) -> None:
        delay_ms = self._settings.retry_ms
        while True:
            try:
                await self._log.open(self)
                await self._check_partitions()
                break
            except (RemoteStorageError, RemoteStorageNotReadyError) as error:
                LOGGER.warning("__remote_log_metadata is not ready, trying again error=%s", error)
            except Exception:
                LOGGER.exception("__remote_log_metadata is not ready, trying again")
            self._open_now.clear()
            handle = self._timer.call_later_ms(delay_ms, self._open_now.set)
            try:
                await self._open_now.wait()
            finally:
                handle.cancel()
            delay_ms = min(2 * delay_ms, self._settings.retry_max_ms)
        self._opened = True
        for index in range(self._log.partition_count) if self.is_steward else sorted(self._led):
            self._reader(index)
        for partition in self._assigned:
            self._reader_of(partition).want(partition)
        self._wake_openers()

    async def _check_partitions(self) -> None:
        """Raises RemoteStorageError: the topic has another number of partitions than at first."""
        count = self._log.partition_count
        try:
            first = await self._snapshots.partition_count()
            if first is None or self._accepts_partitions:
                await self._snapshots.set_partition_count(count)
        except RemoteStorageError as error:
            LOGGER.warning(
                "original partition count of __remote_log_metadata is unknown error=%s", error
            )
            first = None
        if first is None or self._accepts_partitions:
            self.misfit = ""
        elif first != count:
            self.misfit = (
                f"__remote_log_metadata has {count} partitions, and had {first} when it was made: "
                "where its records of a partition are is unknown. Nothing of remote storage is "
                "served, copied or removed; `varve tier rebuild-metadata` writes it again"
            )
            raise RemoteStorageError(self.misfit)

    async def accept_partitions(self) -> None:
        """See RemoteLogMetadataManager."""
        self._accepts_partitions = True
        if self._opened or not self.misfit:
            return
        self._open_now.set()
        while not self._opened and not self._closed:
            if self._until_opened is None:
                self._until_opened = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._until_opened)
        for partition in list(self._assigned):
            await self.ready(partition)

    def _wake_openers(self) -> None:
        waiting, self._until_opened = self._until_opened, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    async def close(self) -> None:
        """Stop reading, write last snapshots (as far as there is time), fail all waiters."""
        self._closed = True
        self._log.close()
        if self._snapshot_timer is not None:
            self._snapshot_timer.cancel()
        readers = list(self._readers.values())
        tasks = [task for _, task in readers]
        if self._opening is not None:
            tasks.append(self._opening)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._assigned.clear()
        for reader, _ in readers:
            reader.close()
        self._wake_openers()
        last = [asyncio.ensure_future(reader.last_snapshot()) for reader, _ in readers]

        def give_up() -> None:
            LOGGER.warning(
                "last remote log metadata snapshots not written within %d ms",
                self._settings.stop_max_ms,
            )
            for task in last:
                task.cancel()

        handle = self._timer.call_later_ms(self._settings.stop_max_ms, give_up)
        await asyncio.gather(*last, return_exceptions=True)
        handle.cancel()

    def _arm_snapshots(self) -> None:
        self._snapshot_timer = self._timer.call_later_ms(
            self._settings.snapshot_interval_ms, self._snapshot
        )

    def _snapshot(self) -> None:
        for reader, _ in self._readers.values():
            reader.begin_snapshot()
        self._arm_snapshots()

    # -- the topic's events ----------------------------------------------------------------------

    def on_elected(self, partition: int) -> None:
        """This broker leads a metadata partition; see MetadataLogListener."""
        if self._closed:
            return
        self._led.add(partition)
        if self._opened:
            # Who leads the first one reads all of them: see `is_steward`.
            for index in range(self._log.partition_count) if partition == 0 else (partition,):
                self._reader(index)

    def on_resigned(self, partition: int) -> None:
        """It does not any more."""
        was_led = partition in self._led
        self._led.discard(partition)
        if partition == 0 and was_led:
            for index in list(self._readers):
                self._drop_if_idle(index)
        else:
            self._drop_if_idle(partition)

    @property
    def is_steward(self) -> bool:
        """Whether this broker does what is done once for the whole cluster.

        It leads the first metadata partition, and reads all of them: so it has what is known of
        every user partition, whichever broker hosts it.
        """
        return 0 in self._led

    def leads(self, partition: TopicIdPartition) -> bool:
        """See RemoteLogMetadataManager."""
        return self._opened and (
            metadata_partition(partition, self._log.partition_count) in self._led
        )

    def on_advanced(self, partition: int) -> None:
        """There may be more to read."""
        found = self._readers.get(partition)
        if found is not None:
            found[0].wake()

    def _reader(self, index: int) -> MetadataReader:
        found = self._readers.get(index)
        if found is None:
            reader = MetadataReader(
                index,
                self._log,
                self._snapshotter,
                environment=self._environment,
                settings=self._settings,
                stats=self.stats,
                slicer=self._slicer,
                on_deleted=self._forget,
            )
            task = asyncio.get_running_loop().create_task(reader.run())
            found = self._readers[index] = (reader, task)
        return found[0]

    def _reader_of(self, partition: TopicIdPartition) -> MetadataReader:
        return self._reader(metadata_partition(partition, self._log.partition_count))

    def _drop_if_idle(self, index: int) -> None:
        found = self._readers.get(index)
        is_needed = index in self._led or self.is_steward
        if found is not None and not is_needed and not found[0].wanted:
            reader, task = self._readers.pop(index)
            task.cancel()
            reader.close()

    # -- which partitions ------------------------------------------------------------------------

    def assign(self, partitions: Iterable[TopicIdPartition]) -> None:
        """See RemoteLogMetadataManager."""
        if self._closed:
            return
        for partition in partitions:
            self._assigned[partition] = None
            if self._opened:
                self._reader_of(partition).want(partition)

    def release(self, partitions: Iterable[TopicIdPartition]) -> None:
        """See RemoteLogMetadataManager."""
        for partition in partitions:
            self._withheld.pop(partition, None)
            if partition in self._assigned:
                del self._assigned[partition]
                if self._opened and partition not in self._inspected:
                    self._let_go(partition)

    def _let_go(self, partition: TopicIdPartition) -> None:
        reader = self._reader_of(partition)
        reader.release(partition)
        self._drop_if_idle(reader.partition)

    def refresh(self, partition: TopicIdPartition) -> None:
        """See RemoteLogMetadataManager."""
        if self._opened and partition in self._assigned and not self._closed:
            self._reader_of(partition).refresh(partition)

    async def caught_up(self, partitions: Iterable[TopicIdPartition]) -> None:
        """See RemoteLogMetadataManager."""
        if not self._opened or self._closed:
            raise RemoteStorageNotReadyError("__remote_log_metadata is not open")
        count = self._log.partition_count
        for index in sorted({metadata_partition(one, count) for one in partitions}):
            await self._reader(index).catch_up()

    async def begin_inspection(
        self, partition: TopicIdPartition | None = None
    ) -> Sequence[TopicIdPartition]:
        """See RemoteLogMetadataManager."""
        if not self._opened or self._closed:
            return ()
        if not self.is_steward:
            raise RemoteStorageNotReadyError(
                "this broker does not lead the first partition of __remote_log_metadata; ask the "
                "one that `varve topics describe __remote_log_metadata` names as its leader"
            )
        if partition is None:
            await self._catch_up_all()
        inspected = self.known() if partition is None else (partition,)
        self._inspected.update(inspected)
        try:
            for one in inspected:
                self._reader_of(one).want(one)
            for one in inspected:
                await self._reader_of(one).wanted.until_visible(one)
        except BaseException:
            self.end_inspection(inspected)
            raise
        return inspected

    async def _catch_up_all(self) -> None:
        readers = [self._reader(index) for index in range(self._log.partition_count)]
        try:
            async with Deadline(self._timer, INSPECTION_MS, "reading __remote_log_metadata"):
                await asyncio.gather(*(reader.catch_up() for reader in readers))
        except (StoreTimeoutError, RemoteStorageNotReadyError) as error:
            LOGGER.warning("not all metadata of remote storage is inspected: %s", error)

    def end_inspection(self, inspected: Iterable[TopicIdPartition]) -> None:
        """See RemoteLogMetadataManager."""
        for partition in inspected:
            if partition not in self._inspected:
                continue  # its deletion was finished
            self._inspected[partition] -= 1
            if self._inspected[partition] <= 0:
                del self._inspected[partition]
                if partition not in self._assigned and not self._closed:
                    self._let_go(partition)

    def _forget(self, partition: TopicIdPartition) -> None:
        """Release a partition whose deletion is finished."""
        self._assigned.pop(partition, None)
        self._inspected.pop(partition, None)
        self._withheld.pop(partition, None)

    # -- what may be lost ------------------------------------------------------------------------

    def withhold(self, partition: TopicIdPartition, reason: str) -> None:
        """See RemoteLogMetadataManager."""
        if not reason:
            self._withheld.pop(partition, None)
        elif partition in self._assigned:
            self._withheld[partition] = reason
            self._reader_of(partition).note_loss(f"its records of {partition} are lost")

    def doubt(self, partition: TopicIdPartition) -> str:
        """See RemoteLogMetadataManager."""
        withheld = self._withheld.get(partition)
        if withheld is not None:
            return withheld
        return self.lost(partition)

    def lost(self, partition: TopicIdPartition) -> str:
        """See RemoteLogMetadataManager."""
        if not self._readers:
            return ""
        found = self._readers.get(metadata_partition(partition, self._log.partition_count))
        return "" if found is None else found[0].lost

    def losses(self) -> Sequence[str]:
        """See RemoteLogMetadataManager."""
        lost = [reader.lost for reader, _ in self._readers.values() if reader.lost]
        return [self.misfit, *lost] if self.misfit else lost

    async def found(self) -> None:
        """See RemoteLogMetadataManager."""
        for reader, _ in list(self._readers.values()):
            await reader.found()

    def is_ready(self, partition: TopicIdPartition) -> bool:
        """See RemoteLogMetadataManager."""
        return self._visible(partition) is not None

    async def ready(self, partition: TopicIdPartition) -> None:
        """See RemoteLogMetadataManager."""
        while not self._opened and partition in self._assigned and not self._closed:
            if self._until_opened is None:
                self._until_opened = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._until_opened)
        if self._opened and partition in self._assigned and not self._closed:
            await self._reader_of(partition).wanted.until_visible(partition)
        # It may have been released since it became visible.
        if not self.is_ready(partition):
            raise RemoteStorageNotReadyError(f"{partition} is not assigned")

    def partitions(self) -> Sequence[TopicIdPartition]:
        """See RemoteLogMetadataManager."""
        return list({**self._assigned, **self._inspected})

    def _visible(self, partition: TopicIdPartition) -> UserPartition | None:
        is_wanted = partition in self._assigned or partition in self._inspected
        if not self._opened or not is_wanted:
            return None
        found = self._readers.get(metadata_partition(partition, self._log.partition_count))
        return None if found is None else found[0].wanted.visible(partition)

    def _user(self, partition: TopicIdPartition) -> UserPartition:
        user = self._visible(partition)
        if user is None:
            how = "still being read" if partition in self._assigned else "not assigned"
            raise RemoteStorageNotReadyError(f"metadata of {partition} is {how}")
        return user

    def _cache(self, partition: TopicIdPartition) -> RemoteLogMetadataCache:
        return self._user(partition).cache

    # -- publication -----------------------------------------------------------------------------

    async def add(self, metadata: RemoteLogSegmentMetadata) -> None:
        """See RemoteLogMetadataManager."""
        cache = self._cache(metadata.partition)
        if metadata.id in self._adding or cache.segment(metadata.id) is not None:
            raise InvalidTransitionError(f"segment {metadata.id} is known already")
        cache.check_add(metadata)
        self._adding.add(metadata.id)
        try:
            await self._publish(metadata.partition, metadata)
        finally:
            self._adding.discard(metadata.id)

    async def restore(self, segments: Sequence[RemoteLogSegmentMetadata]) -> None:
        """See RemoteLogMetadataManager."""
        if not segments:
            return
        partition = segments[0].partition
        cache = self._cache(partition)
        values: list[bytes] = []
        for one in segments:
            assert one.partition == partition
            if cache.segment(one.id) is not None:
                continue
            values += (
                self._encoded(
                    partition,
                    one.in_state(
                        SegmentState.COPY_SEGMENT_STARTED,
                        one.broker_id,
                        one.event_timestamp_ms,
                        None,
                    ),
                ),
                self._encoded(
                    partition,
                    RemoteLogSegmentMetadataUpdate(
                        one.segment_id,
                        one.event_timestamp_ms,
                        SegmentState.COPY_SEGMENT_FINISHED,
                        one.broker_id,
                        one.custom_metadata,
                    ),
                ),
            )
        if values:
            reader = self._reader_of(partition)
            # Before anything: should this break off, what is known then is only a part.
            await reader.lose("the contents of remote storage are being published again")
            await reader.publish(*values)

    async def update(self, update: RemoteLogSegmentMetadataUpdate) -> None:
        """See RemoteLogMetadataManager."""
        partition = update.segment_id.partition
        self._cache(partition).check_update(update)
        await self._publish(partition, update)

    async def delete_partition(self, deletion: RemotePartitionDelete) -> None:
        """See RemoteLogMetadataManager; DELETE_PARTITION_FINISHED releases it too."""
        before = self._user(deletion.partition).deletion
        check_partition_step(None if before is None else before.state, deletion.state)
        await self._publish(deletion.partition, deletion)

    async def _publish(self, partition: TopicIdPartition, event: MetadataEvent) -> None:
        await self._reader_of(partition).publish(self._encoded(partition, event))

    def _encoded(self, partition: TopicIdPartition, event: MetadataEvent) -> bytes:
        if self._closed:
            raise RemoteStorageNotReadyError("the broker stops")
        try:
            return encode_event(event)
        except ValueError as error:
            raise RemoteStorageError(f"no record can say this of {partition}: {error}") from error

    # -- looking up ------------------------------------------------------------------------------

    def known_of(self, partition: TopicIdPartition) -> RemoteLogMetadataCache:
        """See RemoteLogMetadataManager."""
        return self._cache(partition)

    def find(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        """See RemoteLogMetadataManager."""
        return self._cache(partition).find(epoch, offset)

    def find_at_or_after(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        """See RemoteLogMetadataManager."""
        return self._cache(partition).find_at_or_after(epoch, offset)

    def find_unfinished(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        """See RemoteLogMetadataManager."""
        return self._cache(partition).find_unfinished(epoch, offset)

    def find_next_with_transactions(
        self, partition: TopicIdPartition, epoch: int, offset: int
    ) -> RemoteLogSegmentMetadata | None:
        """See RemoteLogMetadataManager."""
        return self._cache(partition).find_next_with_transactions(epoch, offset)

    def highest_offset(self, partition: TopicIdPartition, epoch: int) -> int | None:
        """See RemoteLogMetadataManager."""
        return self._cache(partition).highest_offset(epoch)

    def segments(
        self, partition: TopicIdPartition, epoch: int | None = None
    ) -> Sequence[RemoteLogSegmentMetadata]:
        """See RemoteLogMetadataManager."""
        return self._cache(partition).segments(epoch)

    def size(self, partition: TopicIdPartition, epoch: int | None = None) -> int:
        """See RemoteLogMetadataManager."""
        return self._cache(partition).size(epoch)

    @property
    def is_complete(self) -> bool:
        """Whether every metadata partition has been read."""
        return (
            self._opened
            and len(self._readers) == self._log.partition_count
            and all(reader.is_loaded for reader, _ in self._readers.values())
        )

    def known(self) -> Sequence[TopicIdPartition]:
        """All user partitions of the metadata partitions read here that have segments."""
        return [partition for reader, _ in self._readers.values() for partition in reader.known()]

    def may_have(self, partition: TopicIdPartition) -> bool:
        """Whether any segment of a user partition is known, wanted or not; also: not yet read."""
        if not self._opened:
            return True
        found = self._readers.get(metadata_partition(partition, self._log.partition_count))
        return found is None or found[0].may_have(partition)

    def deletions(self) -> Sequence[RemotePartitionDelete]:
        """See RemoteLogMetadataManager; of the metadata partitions that are led here."""
        return [
            deletion
            for index, (reader, _) in self._readers.items()
            if index in self._led
            for deletion in reader.deletions()
        ]
