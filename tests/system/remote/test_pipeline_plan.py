"""Rows planned from the bucket of a real broker are those that a real consumer gets."""

import asyncio
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from config.remote_kinds import KeyFiles
from pipeline.plan.bucket import Bucket, BucketOptions, open_bucket
from pipeline.plan.bucket_log import BucketTopic, follow_topic, read_bucket_log
from pipeline.plan.handover import BrokerLog, EpochEnd, absent_ranges, epoch_to_ask, hand_over
from pipeline.plan.listing import TopicSelection
from pipeline.plan.partition_log import PartitionLog
from pipeline.plan.piece import BrokerPiece, Piece
from pipeline.plan.splits import pieces
from pipeline.plan.time_offsets import offset_for_time
from pipeline.read.broker.options import BrokerOptions
from pipeline.read.bytes.open_buckets import OpenBuckets
from pipeline.read.piece.piece_rows import PieceReader, ReadOptions
from pipeline.read.read_errors import LostOffsetsError
from protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from storage.environment.clock import SystemClock
from storage.environment.local_filesystem import LocalFilesystem
from tests.fakes.network.client import EARLIEST, Client
from tests.system.conftest import Node, StartNode, until
from tests.unit.pipeline.plan.bucket_world import Row
from tests.unit.pipeline.plan.plain_reader import read_rows
from tests.unit.tiered.format.key_files import write_pair

REMOTE: dict[str, object] = {
    "remote_log_storage_system_enable": True,
    "remote_log_manager_task_interval_ms": 50,
    "rlmm_config_remote_log_metadata_topic_num_partitions": 3,
    "transaction_state_log_num_partitions": 1,
    "tier_worker": "inline",
    "tier_history_interval_ms": 20,
}
TIERED: dict[str, object] = {
    "remote_storage_enable": "true",
    "segment_bytes": 1 << 20,
    "local_retention_ms": -2,
    "local_retention_bytes": -2,
}
KIB = b"." * 1000
WAIT_S = 30.0


def consume(node: Node, topic: str, offset: int, *, read_committed: bool) -> list[Row]:
    """What librdkafka gets from an offset to the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{node.port}",
            "group.id": "scenario",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed" if read_committed else "read_uncommitted",
        }
    )
    rows: list[Row] = []
    deadline = time.monotonic() + WAIT_S
    try:
        consumer.assign([TopicPartition(topic, 0, offset)])
        while time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is None:
                continue
            error = message.error()
            if error is None:
                rows.append(Row(message.offset() or 0, message.value()))
            elif error.name() == "_PARTITION_EOF":
                return rows
            else:
                raise KafkaException(error)
    finally:
        consumer.close()
    raise AssertionError(f"the end of {topic} was not reached; {len(rows)} records")


def transaction(node: Node, topic: str, count: int, *, commit: bool, name: str = "x") -> None:
    """So many records of a kilobyte in one transaction."""
    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{node.port}",
            "transactional.id": name,
            "linger.ms": 5,
            "compression.type": "none",
        }
    )
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    for number in range(count):
        producer.produce(topic, value=b"%s-%d" % (name.encode(), number) + KIB, partition=0)
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0
    if commit:
        producer.commit_transaction(WAIT_S)
    else:
        producer.abort_transaction(WAIT_S)


async def killed(node: Node, target: Path) -> Path:
    """A copy of the broker's directory as kill -9 leaves it: the next start begins an epoch."""
    # What is about to be renamed may be gone before it is copied.
    unnamed = shutil.ignore_patterns("*.tmp")
    source = node.broker.local.log_dirs[0]
    await asyncio.to_thread(shutil.copytree, source, target, ignore=unnamed)
    return target


def log_of(node: Node) -> Any:
    partition = node.broker.replicas.replica_of("t", 0)
    assert partition is not None
    return partition.log


async def until_copied(node: Node, offset: int) -> None:
    """Whatever is closed and decided below an offset lies in the bucket."""
    await until(lambda: bool(log_of(node).highest_remote_offset >= offset - 1))


def closed_end(node: Node) -> int:
    """Where the active segment begins."""
    found: int = log_of(node).segment_facts()[-1].base_offset
    return found


async def read_topic(bucket: Bucket) -> BucketTopic:
    return (await read_bucket_log(bucket, TopicSelection(names=("t",))))["t"]


async def rows_of(
    bucket: Bucket, log: PartitionLog, start: int, end: int, *, read_committed: bool
) -> list[Row]:
    planned = await pieces(
        bucket, log, start, end, read_committed=read_committed, max_partition_bytes=300_000
    )
    return await read_rows(bucket, planned)


def read_as_executor(
    node: Node | None, planned: Sequence[Piece], options: BucketOptions, *, read_committed: bool
) -> list[Row]:
    """Rows of pieces from bucket and broker; None: no broker is asked."""
    buckets = OpenBuckets()
    reader = PieceReader(
        ReadOptions(
            bucket=options,
            broker=None if node is None else BrokerOptions(f"127.0.0.1:{node.port}"),
            columns=("offset", "value"),
            read_committed=read_committed,
        ),
        buckets,
        LocalFilesystem(),
        SystemClock(),
    )
    try:
        return [
            Row(offset, value)
            for piece in planned
            for batch in reader.rows(piece)
            for offset, value in zip(
                batch["offset"].to_pylist(), batch["value"].to_pylist(), strict=True
            )
        ]
    finally:
        buckets.close()


def offsets_of(log: PartitionLog) -> list[tuple[UUID, int, int]]:
    """Which copy gives which rows; a history and a manifest tell different times of a copy."""
    return [(one.metadata.id, one.start_offset, one.end_offset) for one in log.segments]


async def epoch_end(client: Client, epoch: int) -> EpochEnd:
    """As a consumer asks for it."""
    part = OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic="t", partitions=[part])]
    )
    told = (await client.call(request)).topics[0].partitions[0]
    return EpochEnd(told.leader_epoch, told.end_offset)


async def check(node: Node, client: Client, options: BucketOptions) -> None:
    """The bucket's rows, and from the handover on the broker's, are the consumer's."""
    async with await open_bucket(options) as bucket:
        topic = await read_topic(bucket)
        log = topic.partitions[0]
        assert topic.problems == []
        listed = await read_bucket_log(bucket, TopicSelection(names=("t",)), use_history=False)
        assert offsets_of(listed["t"].partitions[0]) == offsets_of(log)
        for read_committed in (False, True):
            expected = await asyncio.to_thread(
                consume, node, "t", log.log_start_offset, read_committed=read_committed
            )
            end = log.end(read_committed=read_committed)
            rows = await rows_of(
                bucket, log, log.log_start_offset, end, read_committed=read_committed
            )
            assert rows == [row for row in expected if row.offset < end]
            epoch = epoch_to_ask(log, read_committed=read_committed)
            broker = BrokerLog(
                log.partition,
                await client.offset("t", EARLIEST),
                await client.offset("t"),
                -1,
                None if epoch is None else await epoch_end(client, epoch),
            )
            handover = hand_over(log, broker, read_committed=read_committed)
            assert (handover.problem, handover.offset) == ("", end)
            (absent,) = absent_ranges(log, end, log.log_start_offset, broker.end_offset)
            assert absent == (end, broker.end_offset)
            asked = BrokerPiece(log.partition, handover.leader_epoch, *absent)
            planned = await pieces(
                bucket, log, log.log_start_offset, end, read_committed=read_committed
            )
            read = await asyncio.to_thread(
                read_as_executor, node, [*planned, asked], options, read_committed=read_committed
            )
            assert read == expected


async def test_aborted_rows_that_look_committed_are_left_to_the_broker(
    start_node: StartNode, tmp_path: Path
) -> None:
    """Their segment was copied, the marker's was not: nothing in the bucket says aborted."""
    node = await start_node(**REMOTE)
    client = await node.client()
    await client.create_topic("t", 1, **TIERED)
    await client.produce("t", *[b"plain-%d" % number for number in range(100)])
    await asyncio.to_thread(transaction, node, "t", 1500, commit=False)
    await client.produce("t", *[b"after-%d" % number for number in range(50)])
    closed = closed_end(node)
    assert 100 < closed < 1600
    await until_copied(node, closed)
    options = BucketOptions(f"{tmp_path}/data/varve-objects")
    async with await open_bucket(options) as bucket:
        log = (await read_topic(bucket)).partitions[0]
        assert (log.end_offset, log.stable_end_offset) == (closed, 100)
        rows = await rows_of(bucket, log, 0, log.stable_end_offset, read_committed=True)
        assert [row.value for row in rows] == [b"plain-%d" % number for number in range(100)]
    everything = await asyncio.to_thread(consume, node, "t", 0, read_committed=True)
    assert len(everything) == 150
    await check(node, client, options)


async def test_a_life_with_several_leader_epochs_compressed_and_encrypted(
    start_node: StartNode, tmp_path: Path
) -> None:
    """Restarts, aborted and committed transactions over many segments, a look at each stage."""
    files = write_pair(tmp_path, "k1")
    assert files.private is not None
    settings = REMOTE | {
        "rsm_config_chunk_size": 100_000,
        "rsm_config_compression_enabled": True,
        "rsm_config_encryption_enabled": True,
        "rsm_config_encryption_key_pair_id": "k1",
        "rsm_config_encryption_key_pairs": ("k1",),
        "rsm_config_encryption_key_pairs_files": {"k1": KeyFiles(files.public, files.private)},
        "rsm_config_storage_root": f"{tmp_path}/store",
    }
    options = BucketOptions(f"file://{tmp_path}/store", key_pairs=(("k1", files.private),))
    epochs = []
    data = tmp_path / "data"
    for life in range(3):
        node = await start_node(**settings, log_dirs=(f"{data}",))
        client = await node.client()
        if not life:
            await client.create_topic("t", 1, **TIERED)
        for number in range(12):
            await client.produce("t", *[b"%d-%d" % (life, number) + KIB] * 20)
        await asyncio.to_thread(transaction, node, "t", 900, commit=False, name=f"a{life}")
        await asyncio.to_thread(transaction, node, "t", 1300, commit=True, name=f"c{life}")
        await until_copied(node, closed_end(node))
        await check(node, client, options)
        async with await open_bucket(options) as bucket:
            epochs.append(len((await read_topic(bucket)).partitions[0].leader_epochs))
        data = await killed(node, tmp_path / f"life-{life}")
        await node.stop()
    assert epochs == [1, 2, 3]
    with pytest.raises(Exception, match="needs the key pair 'k1'"):
        async with await open_bucket(options._replace(key_pairs=())) as bucket:
            await read_topic(bucket)


async def test_a_bucket_with_two_histories_gives_that_of_the_last_leader(
    start_node: StartNode, tmp_path: Path
) -> None:
    """A disk was put back to an older state: what the broker had copied since is another's."""
    settings = REMOTE | {"rsm_config_storage_root": f"{tmp_path}/store"}
    options = BucketOptions(f"{tmp_path}/store")
    node = await start_node(**settings)
    client = await node.client()
    await client.create_topic("t", 1, **TIERED)
    for number in range(25):
        await client.produce("t", b"both-%d" % number + KIB * 100)
    await until_copied(node, closed_end(node))
    data = await killed(node, tmp_path / "earlier")
    end = await client.offset("t")
    for number in range(45):
        await client.produce("t", b"lost-%d" % number + KIB * 100)
    await until_copied(node, closed_end(node))
    lost_end = closed_end(node)
    await node.stop()
    async with await open_bucket(options) as bucket:
        before = await read_topic(bucket)
    assert before.partitions[0].end_offset == lost_end

    node = await start_node(**settings, log_dirs=(f"{data}",))
    client = await node.client()
    assert await client.offset("t") == end
    for number in range(30):
        await client.produce("t", b"new-%d" % number + KIB * 100)
    await until_copied(node, closed_end(node))
    assert closed_end(node) < lost_end
    await check(node, client, options)
    async with await open_bucket(options) as bucket:
        log = (await read_topic(bucket)).partitions[0]
        assert log.end_offset == closed_end(node)
        # Who had planned by the old history sees it at the next look, or is told by the broker.
        followed = (await follow_topic(bucket, before)).partitions[0]
        assert offsets_of(followed) == offsets_of(log)
        old = before.partitions[0]
        epoch = epoch_to_ask(old, read_committed=False)
        assert epoch is not None
        broker = BrokerLog(
            old.partition, 0, await client.offset("t"), -1, await epoch_end(client, epoch)
        )
        assert "another history" in hand_over(old, broker, read_committed=False).problem


async def copied_topic(start_node: StartNode) -> tuple[Node, Client]:
    """A broker with a topic `t` of 40 records, copied up to its active segment."""
    node = await start_node(**REMOTE)
    client = await node.client()
    await client.create_topic("t", 1, **TIERED)
    for number in range(40):
        await client.produce("t", b"%d" % number + KIB * 100)
    await until_copied(node, closed_end(node))
    return node, client


async def test_a_copy_that_is_not_finished_and_one_that_follows(
    start_node: StartNode, tmp_path: Path
) -> None:
    """Without its manifest a segment does not exist; with it, the next look sees it."""
    node, client = await copied_topic(start_node)
    store = tmp_path / "data" / "varve-objects"
    last = max(store.rglob("*.rsm-manifest"))
    kept = last.read_bytes()
    options = BucketOptions(f"{store}")
    async with await open_bucket(options) as bucket:
        whole = (await read_topic(bucket)).partitions[0]
        await asyncio.to_thread(last.unlink)
    async with await open_bucket(options) as bucket:
        topic = await read_topic(bucket)
        assert topic.partitions[0].end_offset == int(last.name[:20])
        topic = await follow_topic(bucket, topic)
        assert topic.partitions[0].end_offset == int(last.name[:20])
        await asyncio.to_thread(last.write_bytes, kept)
        log = (await follow_topic(bucket, topic)).partitions[0]
        assert log.end_offset == whole.end_offset
        assert offsets_of(log) == offsets_of(whole)
    await check(node, client, options)


async def test_what_is_removed_while_it_is_read_comes_from_elsewhere(
    start_node: StartNode, tmp_path: Path
) -> None:
    """From another copy; else the broker still has it; else it is lost, and named."""
    node, _ = await copied_topic(start_node)
    store = tmp_path / "data" / "varve-objects"
    options = BucketOptions(f"{store}")
    async with await open_bucket(options) as bucket:
        log = (await read_topic(bucket)).partitions[0]
        planned = await pieces(bucket, log, 0, log.end_offset, read_committed=True)
    assert len(planned) == 3
    manifests = sorted(await asyncio.to_thread(lambda: [*store.rglob("*.rsm-manifest")]))
    for path in manifests[1].parent.glob(f"{manifests[1].stem}.*"):
        path.unlink()
    rows = await asyncio.to_thread(read_as_executor, node, planned, options, read_committed=True)
    expected = await asyncio.to_thread(consume, node, "t", 0, read_committed=True)
    assert rows == [row for row in expected if row.offset < log.end_offset]
    lost = f"offsets {planned[1].start_offset} to {planned[1].end_offset - 1}"
    with pytest.raises(LostOffsetsError, match=lost):
        await asyncio.to_thread(read_as_executor, None, planned[1:2], options, read_committed=True)


async def test_times_are_found_as_the_broker_finds_them(
    start_node: StartNode, tmp_path: Path
) -> None:
    """ListOffsets by timestamp, of records whose times go back and forth."""
    node = await start_node(**REMOTE)
    client = await node.client()
    await client.create_topic("t", 1, **TIERED)
    times: Sequence[int] = [1_700_000_000_000 + number * 37 % 50 for number in range(60)]
    for number, stamp in enumerate(times):
        await client.produce("t", b"%d" % number + KIB * 70, timestamp_ms=stamp)
    await until_copied(node, closed_end(node))
    async with await open_bucket(BucketOptions(f"{tmp_path}/data/varve-objects")) as bucket:
        log = (await read_topic(bucket)).partitions[0]
        for stamp in sorted({*times, times[0] - 1, max(times) + 1}):
            told = await client.offset("t", stamp)
            found = await offset_for_time(bucket, log, stamp, read_committed=False)
            assert found == (told if 0 <= told < log.end_offset else None)


async def test_deleted_records_are_not_found_again(start_node: StartNode, tmp_path: Path) -> None:
    """DeleteRecords is answered when the bucket knows; whoever erased records has erased them."""
    node, client = await copied_topic(start_node)
    assert await client.delete_records("t", 17) == 17
    options = BucketOptions(f"{tmp_path}/data/varve-objects")
    async with await open_bucket(options) as bucket:
        topic = await read_topic(bucket)
        log = topic.partitions[0]
        assert log.log_start_offset == await client.offset("t", EARLIEST) == 17
        rows = await rows_of(bucket, log, 17, log.end_offset, read_committed=True)
        assert [row.offset for row in rows] == [*range(17, log.end_offset)]
        assert log.missing(0, 20) == [(0, 17)]
        await client.delete_records("t", 23)
        assert (await follow_topic(bucket, topic)).partitions[0].log_start_offset == 23
    await check(node, client, options)


async def test_a_topic_that_is_deleted_is_told_from_one_that_expired(
    start_node: StartNode, tmp_path: Path
) -> None:
    """As long as anything of it is left."""
    _, client = await copied_topic(start_node)
    options = BucketOptions(f"{tmp_path}/data/varve-objects")
    async with await open_bucket(options) as bucket:
        await until(lambda: has_history(bucket))
        topic = await read_topic(bucket)
        assert not topic.is_deleting
        await client.delete_topic("t")
        seen = []

        async def is_gone() -> bool:
            found = await read_bucket_log(bucket, TopicSelection(names=("t",)))
            seen.append(not found or found["t"].is_deleting)
            return not found

        await until(is_gone)
        # Live until it is being deleted, and never live again.
        assert seen == sorted(seen)
        followed = (await follow_topic(bucket, topic)).partitions[0]
        assert (followed.segments, followed.end_offset) == ((), 0)


async def has_history(bucket: Bucket) -> bool:
    return (await read_topic(bucket)).partitions[0].summary is not None
