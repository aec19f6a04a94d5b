"""Settings of a topic changed while it is used: the next write obeys them."""

import os
import time
from pathlib import Path

import pytest

from protocol.error_codes import ErrorCode
from protocol.records.batch import BatchHeader, read_header
from tests.fakes.network.client import Client, produce_request, read_of
from tests.fakes.storage.failing_disk import FailingDisk
from tests.system.conftest import Node, StartNode

CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4, "uncompressed": 0}
FIXED_MS = 1_700_000_000_000


async def headers_of(client: Client, topic: str) -> list[BatchHeader]:
    """The batches of a topic as they are sent to consumers, that is, as they lie on disk."""
    answer = await client.start_fetch(topic, 0)
    data = memoryview(answer.responses[0].partitions[0].records)
    headers = []
    position = 0
    while position < len(data):
        headers.append(read_header(data, position))
        position += headers[-1].batch_length + 12
    return headers


async def test_flush_messages_takes_effect(start_node: StartNode) -> None:
    """With 1, every acknowledged batch has been synced; before and after, none needs to be."""
    disk = FailingDisk()
    node = await start_node(filesystem=disk)
    client = await node.client()
    await client.create_topic("t")
    partition = node.broker.replicas.replica_of("t", 0)
    assert partition is not None

    def syncs() -> int:
        return sum(path.endswith(".log") and "/t-0/" in path for path in disk.synced)

    await client.produce("t", b"a")
    assert (syncs(), partition.log.recovery_point) == (0, 0)
    await client.alter_topic("t", flush_messages=1)
    for number in range(1, 6):
        await client.produce("t", b"b", acks=number % 2 or -1)
        assert (syncs(), partition.log.recovery_point) == (number, number + 1)
    await client.alter_topic("t", flush_messages=1000)
    await client.produce("t", b"c")
    assert (syncs(), partition.log.recovery_point) == (5, 6)


async def test_concurrent_writes_share_a_flush(start_node: StartNode) -> None:
    """Group commit: many requests that wait together cost far fewer fdatasyncs."""
    disk = FailingDisk()
    node = await start_node(filesystem=disk)
    client = await node.client()
    await client.create_topic("t", flush_messages=1)
    from protocol.records.builder import build_batch

    answers = [
        client.send(produce_request("t", 0, build_batch([(None, b"%d" % n, (), FIXED_MS)])))
        for n in range(100)
    ]
    offsets = [(await a).responses[0].partition_responses[0].base_offset for a in answers]
    assert offsets == list(range(100))
    partition = node.broker.replicas.replica_of("t", 0)
    assert partition is not None
    assert partition.log.recovery_point == 100
    assert partition.commit.flushes <= 20


async def test_an_unflushed_record_is_not_shown(start_node: StartNode) -> None:
    """A consumer must not act on what a power cut could take back."""
    disk = FailingDisk()
    node = await start_node(filesystem=disk)
    client, consumer = await node.client(), await node.client()
    await client.create_topic("t", flush_messages=1)
    await client.produce("t", b"safe")
    disk.break_directory(str(Path(node.broker.local.log_dirs[0]) / "t-0"), "sync")
    parked = consumer.start_fetch("t", 1, max_wait_ms=60_000)
    refused = await client.try_produce("t", [(None, b"unsafe")])
    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    read = read_of(await parked)
    assert read.error is not ErrorCode.NONE
    assert read.records == []


async def test_timestamp_type_takes_effect(node: Node) -> None:
    """LogAppendTime stamps batches with the broker's clock, and says so in the answer."""
    client = await node.client()
    await client.create_topic("t")
    first = await client.try_produce("t", [(None, b"a")], timestamp_ms=FIXED_MS)
    await client.alter_topic("t", message_timestamp_type="LogAppendTime", retention_ms=-1)
    before = time.time_ns() // 1_000_000
    second = await client.try_produce("t", [(None, b"b"), (None, b"c")], timestamp_ms=FIXED_MS)
    after = time.time_ns() // 1_000_000
    await client.alter_topic("t", message_timestamp_type="CreateTime")
    third = await client.try_produce("t", [(None, b"d")], timestamp_ms=FIXED_MS)
    assert first.log_append_time_ms == third.log_append_time_ms == -1
    assert before <= second.log_append_time_ms <= after
    stamps = {r.value: r.timestamp for r in await client.read_all("t")}
    assert stamps[b"b"] == stamps[b"c"] == second.log_append_time_ms
    assert stamps[b"d"] == FIXED_MS


async def test_max_message_bytes_takes_effect(node: Node) -> None:
    """Of the whole batch as it is sent; the refused one leaves nothing behind."""
    client = await node.client()
    await client.create_topic("t")
    await client.produce("t", b"x" * 5000)
    await client.alter_topic("t", max_message_bytes=1000)
    refused = await client.try_produce("t", [(None, b"x" * 1000)])
    assert refused.error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert await client.produce("t", b"x" * 900) == 1
    await client.alter_topic("t", max_message_bytes=6000)
    assert await client.produce("t", b"x" * 5000) == 2


@pytest.mark.parametrize("target", CODECS)
async def test_compression_type_takes_effect(node: Node, target: str) -> None:
    """What the producer chose is kept with `producer`; else the batch is packed anew, once."""
    client = await node.client()
    await client.create_topic("t")
    records = [(b"k%d" % n, b"value" * 50) for n in range(20)]
    for codec in range(5):
        assert (await client.try_produce("t", records, codec=codec)).error_code == 0
    await client.alter_topic("t", compression_type=target)
    for codec in range(5):
        answer = await client.try_produce("t", records, codec=codec)
        assert (answer.error_code, answer.base_offset) == (0, 100 + codec * 20)
    codecs = [header.attributes & 7 for header in await headers_of(client, "t")]
    assert codecs == [0, 1, 2, 3, 4] + 5 * [CODECS[target]]
    found = [(r.offset, r.key, r.value) for r in await client.read_all("t")]
    assert found == [(n, *records[n % 20]) for n in range(200)]


async def test_settings_survive_a_restart_and_can_be_taken_back(
    node: Node, start_node: StartNode
) -> None:
    client = await node.client()
    await client.create_topic("t")
    await client.alter_topic("t", max_message_bytes=1000)
    await node.stop()
    again = await (await start_node()).client()
    refused = await again.try_produce("t", [(None, os.urandom(1000))])
    assert refused.error_code == ErrorCode.MESSAGE_TOO_LARGE
    await again.alter_topic("t", max_message_bytes=2000)
    assert await again.produce("t", os.urandom(1000)) == 0


async def test_segment_size_takes_effect(node: Node, tmp_path: Path) -> None:
    """The active segment that is larger already is closed by the next write."""
    client = await node.client()
    await client.create_topic("t", segment_bytes=10 << 20)
    for _ in range(3):
        await client.produce("t", b"x" * 900_000)
    await client.alter_topic("t", segment_bytes=1 << 20)
    await client.produce("t", b"y" * 900_000)
    await client.produce("t", b"z" * 900_000)
    bases = sorted(int(p.stem) for p in (tmp_path / "data" / "t-0").glob("*.log"))
    assert bases == [0, 3, 4]
    assert [r.offset for r in await client.read_all("t")] == [0, 1, 2, 3, 4]
