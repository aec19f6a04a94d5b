import asyncio
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline.plan.bucket import Bucket, BucketOptions
from pipeline.plan.piece import BrokerPiece, PartitionName, RemotePiece
from pipeline.plan.splits import pieces
from pipeline.read.broker.client import BrokerClient
from pipeline.read.broker.options import BrokerOptions
from pipeline.read.bytes.open_buckets import OpenBuckets
from pipeline.read.piece.piece_rows import PieceReader, ReadOptions, read_piece
from pipeline.read.read_errors import LostOffsetsError, ReadError
from protocol.api_keys import ApiKey
from storage.environment.local_filesystem import LocalFilesystem
from tests.fakes.clock import ManualClock
from tests.fakes.tiered.memory_object_store import FOREVER, Fault
from tests.unit.pipeline.plan.bucket_world import BucketWorld, Replica, Row
from tests.unit.pipeline.read.broker.test_client import World as Brokers
from tests.unit.pipeline.read.segment_world import record_segment, segment_world
from tests.unit.storage.log.log_model import TOPIC_ID, read_batches
from tiered.errors import StoreDeniedError
from tiered.segment_metadata import RemoteLogSegmentMetadata

NAME = PartitionName("t", TOPIC_ID, 0)
ANY_BUCKET = BucketOptions("s3://bucket")


class World:
    """A bucket that was written to by a broker, and a reader of it.

    Attributes:
        copied: Its segments.
    """

    def __init__(self, **settings: Any) -> None:
        self.bucket = BucketWorld(**settings)
        self.leader: Replica = self.bucket.replica("a")
        self.copied: list[RemoteLogSegmentMetadata] = []

        async def open_bucket(_: BucketOptions) -> Bucket:
            return self.bucket.open()

        self.buckets = OpenBuckets(open_bucket)
        self.brokers = Brokers()

    def connect(self, options: BrokerOptions) -> BrokerClient:
        assert options == self.brokers.cluster.options
        return self.brokers.connect()

    def serve(self) -> BrokerOptions:
        """A broker that has the same log."""
        topic = self.brokers.cluster.add_topic("t")
        topic.topic_id = TOPIC_ID
        self.brokers.cluster.append("t", 0, *read_batches(self.leader.log))
        return self.brokers.cluster.options

    def roll(self) -> None:
        """Close the segment and copy it."""
        self.leader.roll()
        self.copied += asyncio.run(self.bucket.copy(self.leader))

    def pieces(self, *, read_committed: bool = False, **limits: Any) -> list[RemotePiece]:
        async def plan() -> list[RemotePiece]:
            log = await self.bucket.log()
            end = log.end(read_committed=read_committed)
            return await pieces(
                self.bucket.bucket,
                log,
                log.log_start_offset,
                end,
                read_committed=read_committed,
                **limits,
            )

        return asyncio.run(plan())

    def read(self, *wanted: Any, **changes: Any) -> list[Row]:
        options = ReadOptions(bucket=ANY_BUCKET, columns=("offset", "value"))._replace(**changes)
        reader = PieceReader(
            options, self.buckets, self.bucket.disk, self.brokers.clock, self.connect
        )
        return [
            Row(offset, value)
            for piece in wanted
            for batch in reader.rows(piece)
            for offset, value in zip(
                batch.column("offset").to_pylist(), batch.column("value").to_pylist(), strict=True
            )
        ]


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    world.buckets.close()


def three_segments(world: World) -> None:
    for _ in range(3):
        world.leader.write(20)
        world.roll()


@pytest.mark.parametrize("read_committed", [False, True])
def test_rows_are_those_of_a_consumer(world: World, read_committed: bool) -> None:
    leader = world.leader
    for commit in (True, False, True):
        leader.write(5)
        leader.transaction(7, 10)
        leader.transaction(8, 3)
        world.roll()
        leader.finish(7, commit=commit)
        leader.write(2, records=5, codec=4)
        leader.finish(8, commit=not commit)
    world.roll()
    for limits in ({}, {"max_partition_bytes": 300}, {"max_records": 7}):
        planned = world.pieces(read_committed=read_committed, **limits)
        found = world.read(*planned, read_committed=read_committed)
        assert found == leader.rows(0, leader.end, read_committed=read_committed)


def test_pieces_and_options_cross_to_executors(world: World) -> None:
    three_segments(world)
    options = ReadOptions(
        bucket=BucketOptions("s3://bucket", access_key_id="id", secret_access_key="secret")
    )
    assert pickle.loads(pickle.dumps(options)) == options
    assert "secret" not in repr(options)
    planned = world.pieces()
    assert pickle.loads(pickle.dumps(planned)) == planned


def test_a_copy_that_was_replaced_is_read_from_the_new_one(world: World) -> None:
    """Retention has removed one copy, and a leader has made another."""
    three_segments(world)
    planned = world.pieces()
    asyncio.run(world.bucket.copy(world.leader, from_offset=0))
    for metadata in world.copied[:3]:
        world.bucket.remove(metadata)
    found = world.read(*planned)
    assert found == world.leader.rows(0, world.leader.end, read_committed=False)


@pytest.mark.parametrize("suffix", [".log", ".rsm-manifest", ""])
def test_offsets_that_are_gone_are_lost(world: World, suffix: str) -> None:
    three_segments(world)
    planned = world.pieces()
    world.bucket.remove(world.copied[1], *filter(None, [suffix]))
    with pytest.raises(LostOffsetsError, match="t-0: offsets 20 to 39 are lost: no such") as error:
        world.read(*planned)
    assert (error.value.partition, error.value.start_offset) == (NAME, 20)
    assert pickle.loads(pickle.dumps(error.value)).end_offset == 40


def test_what_is_lost_is_left_out_with_one_warning(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    three_segments(world)
    planned = world.pieces()
    world.bucket.remove(world.copied[1])
    found = world.read(*planned, fail_on_data_loss=False)
    rows = world.leader.rows(0, world.leader.end, read_committed=False)
    assert found == rows[:20] + rows[40:]
    assert len(caplog.records) == 1
    assert "20 offsets skipped (failOnDataLoss=false): 20 to 39" in caplog.text


def test_a_partition_that_is_gone_is_lost(world: World) -> None:
    three_segments(world)
    planned = world.pieces()
    world.bucket.store.objects.clear()
    with pytest.raises(LostOffsetsError, match="offsets 0 to 19"):
        world.read(*planned)
    assert world.read(*planned, fail_on_data_loss=False) == []


def test_a_segment_that_goes_while_it_is_read_is_read_on_elsewhere() -> None:
    with segment_world(chunk_bytes=1 << 20) as world:
        planned = world.copy(record_segment(70, value_bytes=50_000))
        first = set(world.store.objects)
        world.copy(record_segment(70, value_bytes=50_000, copy_id=2))

        async def open_bucket(_: BucketOptions) -> Bucket:
            return world.bucket

        buckets = OpenBuckets(open_bucket)
        options = ReadOptions(bucket=ANY_BUCKET, columns=("offset",))
        rows = PieceReader(options, buckets, world.tier.disk, ManualClock()).rows(planned)
        offsets = next(rows).column(0).to_pylist()
        for key in first:
            del world.store.objects[key]
        offsets.extend(offset for batch in rows for offset in batch.column(0).to_pylist())
        assert offsets == [*range(planned.start_offset, planned.end_offset)]
        buckets.close()


def test_what_the_bucket_has_lost_a_broker_may_have(world: World) -> None:
    three_segments(world)
    planned = world.pieces()
    world.bucket.remove(world.copied[1])
    broker = world.serve()
    rows = world.leader.rows(0, world.leader.end, read_committed=False)
    assert world.read(*planned, broker=broker) == rows
    asked = [one[3].topics[0].partitions[0].fetch_offset for one in fetches(world)]
    assert min(asked) == 20


def test_what_neither_has_is_lost(world: World) -> None:
    three_segments(world)
    planned = world.pieces()
    world.bucket.remove(world.copied[1])
    broker = world.serve()
    world.brokers.cluster.partition("t").start = 30
    with pytest.raises(LostOffsetsError, match="offsets 20 to 29 are lost: the log starts at 30"):
        world.read(*planned, broker=broker)
    rows = world.leader.rows(0, world.leader.end, read_committed=False)
    found = world.read(*planned, broker=broker, fail_on_data_loss=False)
    assert found == rows[:20] + rows[30:]


def test_offsets_in_the_bucket_are_not_asked_of_a_broker(world: World) -> None:
    three_segments(world)
    broker = world.serve()
    world.read(*world.pieces(), broker=broker)
    assert world.brokers.cluster.dialled == []


@pytest.mark.parametrize("read_committed", [False, True])
def test_a_brokers_piece_is_read_by_fetch(world: World, read_committed: bool) -> None:
    world.leader.write(5)
    world.leader.transaction(7, 4)
    world.leader.finish(7, commit=False)
    world.leader.write(5, codec=2)
    broker = world.serve()
    world.brokers.cluster.partition("t").aborted = [(7, 5, 9)]
    piece = BrokerPiece(NAME, -1, 2, 15)
    found = world.read(piece, broker=broker, read_committed=read_committed)
    assert found == world.leader.rows(2, 15, read_committed=read_committed)
    assert world.brokers.cluster.open == 0


def fetches(world: World) -> list[Any]:
    return [one for one in world.brokers.cluster.log if one[1] is ApiKey.FETCH]


def test_a_denied_bucket_is_no_loss(world: World) -> None:
    three_segments(world)
    planned = world.pieces()
    world.bucket.store.fail("*", Fault.DENIED, times=FOREVER)
    with pytest.raises(StoreDeniedError):
        world.read(*planned, fail_on_data_loss=False)


def test_a_piece_needs_where_it_is(world: World) -> None:
    three_segments(world)
    with pytest.raises(ReadError, match="t-0: a piece of a bucket, and no bucket is given"):
        world.read(*world.pieces(), bucket=None)
    with pytest.raises(ReadError, match="t-0: a piece of a broker, and no broker is given"):
        world.read(BrokerPiece(NAME, -1, 0, 5))


def test_the_whole_way_from_a_directory(tmp_path: Path) -> None:
    """With the machine's own disk, and what an executor calls."""
    world = World()
    three_segments(world)
    disk = LocalFilesystem()
    for key, stored in world.bucket.store.objects.items():
        path = tmp_path / key
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.replace_bytes(str(path), stored.data)
    options = ReadOptions(bucket=BucketOptions(f"file://{tmp_path}"), columns=("offset",))
    offsets = [
        offset
        for piece in world.pieces()
        for batch in read_piece(piece, options)
        for offset in batch.column(0).to_pylist()
    ]
    assert offsets == list(range(60))
