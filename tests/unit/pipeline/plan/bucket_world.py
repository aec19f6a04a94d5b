"""A bucket in memory with real segments: real logs, copied by the tier's own storage manager.

world = BucketWorld(chunk_bytes=1000, encryption=True)
leader = world.replica("a")
leader.write(5, epoch=0)                        batches of one record
leader.begin(producer_id=7); leader.abort(7)    a transaction
leader.roll()
await world.copy(leader)                        what is closed and not copied yet
log = await world.log()                         as the planner sees it
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple
from uuid import UUID

from pipeline.plan.bucket import Bucket
from pipeline.plan.bucket_log import BucketTopic, read_bucket_log
from pipeline.plan.listing import TopicSelection
from pipeline.plan.partition_log import PartitionLog
from pipeline.plan.piece import PartitionName
from protocol.records.batch import iterate_batches
from storage.checkpoints.checkpoint_files import encode_epochs
from storage.environment.environment import Environment
from storage.environment.randomness import SeededRandomness
from storage.log.log import Log
from storage.types.transaction_marker import TransactionMarker
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.tiered.memory_object_store import MemoryObjectStore, StoredObject
from tests.unit.storage.log.log_model import (
    NOW_MS,
    TOPIC_ID,
    append,
    make_batch,
    open_log,
    read_batches,
    small_segments,
)
from tests.unit.tiered.format.format_config import format_config
from tests.unit.tiered.storage_manager.memory_tier import PlainKeyRing
from tiered.format.object_keys import ObjectKeys
from tiered.metadata.history import HistoryState, HistorySummary, PartitionHistory, encode_history
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    SegmentEpoch,
    SegmentState,
    TopicIdPartition,
)
from tiered.storage_manager.remote_storage_manager import RemoteStorageManager
from tiered.tier import SegmentFiles, TopicFacts

PARTITION = TopicIdPartition(TOPIC_ID, "t", 0)
NAME = PartitionName("t", TOPIC_ID, 0)
SEGMENT_BYTES = 1 << 20
"""Segments are rolled by hand."""


class Row(NamedTuple):
    """What a consumer sees of a record, as far as planning can get it wrong."""

    offset: int
    value: bytes | None


class Written(NamedTuple):
    """A record, by whom, and the transaction it belongs to; 0: none."""

    row: Row
    producer_id: int
    transaction: int


class Outcome(NamedTuple):
    """How a transaction ended, by the marker at an offset."""

    is_committed: bool
    marker_offset: int


class Replica:
    """One broker's log of the partition, and what is true of its records.

    Attributes:
        written: All records.
        outcomes: Of transactions that ended.
        open: The others, by producer.
    """

    def __init__(self, name: str, filesystem: FakeFilesystem, clock: ManualClock) -> None:
        self.log: Log = open_log(
            filesystem,
            small_segments(SEGMENT_BYTES),
            directory=f"/data-{name}/t-0",
            clock=clock,
        )
        self.copied_to = 0
        self.sequences: dict[int, int] = {}
        self.written: list[Written] = []
        self.outcomes: dict[int, Outcome] = {}
        self.open: dict[int, int] = {}

    @property
    def end(self) -> int:
        return self.log.log_end_offset

    def write(
        self,
        count: int = 1,
        *,
        epoch: int = 0,
        records: int = 1,
        producer_id: int = -1,
        transactional: bool = False,
        size: int = 30,
        timestamp_ms: int | None = None,
        codec: int = 0,
        key: bytes | None = b"k",
    ) -> None:
        """So many batches."""
        for _ in range(count):
            values = [b"%d" % (self.end + at) + b"." * size for at in range(records)]
            sequence = self.sequences.get(producer_id, 0)
            data = make_batch(
                *values,
                timestamp_ms=NOW_MS + self.end if timestamp_ms is None else timestamp_ms,
                producer_id=producer_id,
                producer_epoch=0 if producer_id >= 0 else -1,
                base_sequence=sequence if producer_id >= 0 else -1,
                transactional=transactional,
                codec=codec,
                key=key,
            )
            if producer_id >= 0:
                self.sequences[producer_id] = sequence + records
            transaction = 0
            if transactional:
                transaction = self.open.setdefault(producer_id, self.end + 1)
            self.written += [
                Written(Row(self.end + at, value), producer_id, transaction)
                for at, value in enumerate(values)
            ]
            append(self.log, data, leader_epoch=epoch)

    def transaction(self, producer_id: int, count: int = 1, *, epoch: int = 0) -> None:
        """Batches of a transaction that stays open."""
        self.write(count, epoch=epoch, producer_id=producer_id, transactional=True)

    def finish(self, producer_id: int, *, commit: bool, epoch: int = 0) -> None:
        """The marker of a transaction."""
        self.outcomes[self.open.pop(producer_id)] = Outcome(commit, self.end)
        marker = TransactionMarker(producer_id, 0, commit, 0, 0)
        self.log.markers.append([marker], leader_epoch=epoch, now_ms=NOW_MS)
        self.log.update_high_watermark(self.log.log_end_offset)

    def rows(self, start: int, end: int, *, read_committed: bool) -> list[Row]:
        """What a consumer gets of [start, end), as far as it is stable."""
        if read_committed:
            end = min([end, *(first - 1 for first in self.open.values())])
        aborted = {one for one, outcome in self.outcomes.items() if not outcome.is_committed}
        return [
            one.row
            for one in self.written
            if start <= one.row.offset < end and not (read_committed and one.transaction in aborted)
        ]

    def roll(self) -> None:
        self.log.writer.roll()
        self.log.flusher.flush()

    def follow(self, leader: "Replica", end: int) -> None:
        """Copy another's batches that begin below an offset."""
        for data in read_batches(leader.log):
            ((_, header),) = iterate_batches(memoryview(data))
            if self.end <= header.base_offset < end:
                self.log.follower.append(memoryview(data))
        self.written = [one for one in leader.written if one.row.offset < self.end]
        self.outcomes = {
            transaction: outcome
            for transaction, outcome in leader.outcomes.items()
            if outcome.marker_offset < self.end
        }
        for one in self.written:
            if one.producer_id >= 0:
                self.sequences[one.producer_id] = self.sequences.get(one.producer_id, 0) + 1
            if one.transaction and one.transaction not in self.outcomes:
                self.open[one.producer_id] = one.transaction
        self.log.update_high_watermark(self.log.log_end_offset)


class BucketWorld:
    """See the module."""

    def __init__(self, *, page_max: int = 1000, **settings: Any) -> None:
        self.clock = ManualClock(NOW_MS)
        self.disk = FakeFilesystem(self.clock)
        self.store = MemoryObjectStore(self.clock, page_max=page_max)
        self.keys = PlainKeyRing()
        self.randomness = SeededRandomness(5)
        self.tier = RemoteStorageManager(
            self.store,
            format_config(**{"chunk_bytes": 1000, **settings}),
            self.keys,
            environment=Environment.without_loop(
                filesystem=self.disk, clock=self.clock, randomness=SeededRandomness(2)
            ),
            spool_directory="/spool",
            software="test",
        )
        self.bucket = self.open()

    def open(self) -> Bucket:
        """A reader that knows nothing yet."""
        return Bucket(
            self.store,
            self.keys,
            filesystem=self.disk,
            clock=self.clock,
            randomness=self.randomness,
        )

    def replica(self, name: str) -> Replica:
        return Replica(name, self.disk, self.clock)

    async def copy(
        self,
        replica: Replica,
        *,
        partition: TopicIdPartition = PARTITION,
        partitions: int = 1,
        from_offset: int | None = None,
        until_offset: int | None = None,
        tells_of_empty: bool = True,
    ) -> list[RemoteLogSegmentMetadata]:
        """The closed segments that end behind what the replica has copied; what was copied."""
        start = replica.copied_to if from_offset is None else from_offset
        copied = []
        for metadata, files in self._closed(replica.log, partition):
            if until_offset is not None and metadata.start_offset >= until_offset:
                break
            if metadata.end_offset >= start:
                if not tells_of_empty:
                    files = replace(files, empty_from=None)
                facts = TopicFacts(partitions, {}, "cluster")
                await self.tier.copy_segment(metadata, files, facts)
                copied.append(metadata)
                replica.copied_to = max(replica.copied_to, metadata.end_offset + 1)
                self.clock.advance(1)
        return copied

    def _closed(
        self, log: Log, partition: TopicIdPartition
    ) -> Iterator[tuple[RemoteLogSegmentMetadata, SegmentFiles]]:
        """As `tiered.tasks.copier` describes them."""
        segments = log.segment_facts()
        empty_from: int | None = None
        for segment, following in pairwise(segments):
            end = following.base_offset
            if not segment.size:
                empty_from = segment.base_offset if empty_from is None else empty_from
                continue
            before, empty_from = empty_from, None
            if end <= log.log_start_offset:
                continue
            epochs = log.leader_epochs.entries_in_range(segment.base_offset, end)
            epochs[0] = (epochs[0][0], segment.base_offset)
            index = segment.transaction_index
            files = SegmentFiles(
                log=segment.path,
                offset_index=segment.offset_index.path,
                time_index=segment.time_index.path,
                producer_snapshot=log.producer_snapshot_path(end),
                transaction_index=index.path if index.entry_count else None,
                leader_epochs=encode_epochs(
                    entry for entry in log.leader_epochs.entries() if entry[1] < end
                ),
                empty_from=before,
            )
            yield (
                RemoteLogSegmentMetadata(
                    segment_id=RemoteLogSegmentId(partition, self.randomness.uuid4()),
                    start_offset=segment.base_offset,
                    end_offset=end - 1,
                    max_timestamp_ms=segment.largest_timestamp,
                    broker_id=1,
                    event_timestamp_ms=self.clock.now_ms(),
                    segment_size_bytes=segment.size,
                    segment_leader_epochs=tuple(SegmentEpoch(*entry) for entry in epochs),
                    txn_index_empty=files.transaction_index is None,
                ),
                files,
            )

    def write_history(
        self,
        replica: Replica,
        copied: Iterable[RemoteLogSegmentMetadata],
        **changes: Any,
    ) -> HistorySummary:
        """What the leader of the partition keeps beside its segments."""
        log_start = replica.log.log_start_offset
        segments = tuple(
            replace(one, state=SegmentState.COPY_SEGMENT_FINISHED)
            for one in sorted(copied, key=lambda one: one.start_offset)
            if one.end_offset >= log_start
        )
        end = max([log_start, *(one.end_offset + 1 for one in segments)])
        epochs = [entry for entry in replica.log.leader_epochs.entries() if entry[1] < end]
        summary = HistorySummary(
            PARTITION,
            "cluster",
            1,
            HistoryState.LIVE,
            epochs[-1][0] if epochs else 0,
            int(self.clock.now_ms()),
            log_start,
            end,
            min([end, *(max(first - 1, log_start) for first in replica.open.values())]),
            tuple(epochs),
        )._replace(**changes)
        key = ObjectKeys().history_key(PARTITION)
        data = encode_history(PartitionHistory(summary, segments))
        self.store.objects[key] = StoredObject(data, int(self.clock.now_ms()))
        self.clock.advance(1)
        return summary

    async def topics(self, *names: str, topic_id: UUID | None = None) -> dict[str, BucketTopic]:
        return await read_bucket_log(self.bucket, TopicSelection(names), topic_id)

    async def log(self, topic: str = "t", partition: int = 0) -> PartitionLog:
        """As a new reader plans it."""
        self.bucket = self.open()
        return (await self.topics(topic))[topic].partitions[partition]

    def remove(self, metadata: RemoteLogSegmentMetadata, *suffixes: str) -> None:
        """A segment's objects, or some of them."""
        for key in ObjectKeys().segment_keys(metadata):
            if not suffixes or key.endswith(suffixes):
                del self.store.objects[key]
