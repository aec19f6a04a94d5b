"""Deleting a topic under those who use it, and making one of the same name again."""

import asyncio
from pathlib import Path

import pytest

from broker.replicas import background
from protocol.error_codes import ErrorCode
from protocol.records.builder import build_batch
from tests.fakes.network.client import Client, produce_request, read_of
from tests.system.conftest import Node, StartNode, until
from tests.system.disks.gated_disk import GatedDisk

GONE = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER}


async def test_waiting_consumers_are_told_at_once(node: Node) -> None:
    """Not after fetch.max.wait.ms: the topic will not come back."""
    admin, consumer = await node.client(), await node.client()
    await admin.create_topic("t", 2)
    parked = [consumer.start_fetch("t", 0, partition=i, max_wait_ms=60_000) for i in range(2)]
    await until(lambda: node.broker.replicas.delayed_fetch.parked == 2)
    await admin.delete_topic("t")
    for answer in parked:
        assert read_of(await asyncio.wait_for(answer, 30)).error in GONE
    assert node.broker.replicas.delayed_fetch.parked == 0


async def test_producers_do_not_write_into_a_deleted_topic(node: Node, tmp_path: Path) -> None:
    """A stream of writes across the deletion: each is acknowledged or refused, none hangs."""
    admin, producer = await node.client(), await node.client()
    await admin.create_topic("t")
    answers = []
    deleting: asyncio.Task[None] | None = None
    for number in range(300):
        answers.append(producer.send(produce_request("t", 0, _batch(number))))
        if number == 100:
            # Where the disk is busy, writes are answered late: the deletion must not overtake all.
            await asyncio.wait_for(asyncio.shield(answers[50]), 30)
            deleting = asyncio.create_task(admin.delete_topic("t"))
        await asyncio.sleep(0)
    assert deleting is not None
    await deleting
    codes = []
    for answer in answers:
        response = await asyncio.wait_for(answer, 30)
        codes.append(ErrorCode(response.responses[0].partition_responses[0].error_code))
    acknowledged = codes.count(ErrorCode.NONE)
    assert acknowledged >= 50
    assert set(codes[acknowledged:]) <= GONE, "a write was acknowledged after one was refused"
    refused = await producer.try_produce("t", [(None, b"late")])
    assert refused.error_code in GONE
    assert not (tmp_path / "data" / "t-0").exists()


def _batch(number: int) -> bytearray:

    return build_batch([(None, b"%d" % number, (), 1)])


async def test_producers_that_wait_for_a_flush_are_told_at_once(start_node: StartNode) -> None:
    """Kafka: DelayedProduce ends when its partition is not here any more."""
    disk = GatedDisk()
    node = await start_node(filesystem=disk)
    try:
        admin, producer = await node.client(), await node.client()
        await admin.create_topic("t", flush_messages=1)
        # The first is being flushed, the second waits for the next flush.
        waiting = [producer.send(produce_request("t", 0, _batch(1), timeout_ms=60_000))]
        await until(disk.waiting.is_set)
        waiting.append(producer.send(produce_request("t", 0, _batch(2), timeout_ms=60_000)))
        await until(lambda: node.broker.replicas.delayed_produce.parked == 2)
        deleting = asyncio.create_task(admin.delete_topic("t"))
        for answer in waiting:
            response = await asyncio.wait_for(answer, 30)
            assert response.responses[0].partition_responses[0].error_code in GONE
        assert not deleting.done(), "the files go only after the flush under way"
    finally:
        disk.gate.set()
    await deleting
    assert node.broker.replicas.delayed_produce.parked == 0


async def test_a_topic_of_the_same_name_starts_anew(
    start_node: StartNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New id, offset 0, own settings, no trace of the old one; its files go later."""
    monkeypatch.setattr(background, "REMOVE_DELETED_MS", 20.0)
    node = await start_node()
    client = await node.client()
    old_id = await client.create_topic("t", max_message_bytes=1000, file_delete_delay_ms=0)
    producer_id, epoch = await client.init_producer_id()
    idempotent = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": 0}
    await client.produce("t", b"old", **idempotent)
    await client.commit("g", "t", {0: 1})
    await client.delete_topic("t")
    new_id = await client.create_topic("t")
    assert new_id != old_id
    assert await client.offset("t") == 0
    assert (await client.topic_configs("t"))["max.message.bytes"] == "1048588"
    assert await client.produce("t", b"new", **idempotent) == 0, "taken for a retry of the old one"
    assert [r.value for r in await client.read_all("t")] == [b"new"]
    # Offsets of a deleted topic go with it, else a consumer would start behind the new end.
    await until(lambda: committed_is(client, -1))
    await until(lambda: not list((tmp_path / "data").glob("*-delete")))
    assert {path.name for path in (tmp_path / "data").glob("t-*")} == {"t-0"}
    metrics = await node.metrics()
    assert metrics.of("kafka_log_log_logendoffset", topic="t", partition="0") == 1
    assert metrics.of("kafka_server_brokertopicmetrics_messagesin_total", topic="t") == 1


async def committed_is(client: Client, offset: int) -> bool:
    return await client.committed("g", "t") == offset


async def test_deleted_files_wait_for_their_delay(
    node: Node, tmp_path: Path, start_node: StartNode
) -> None:
    """`file.delete.delay.ms`; a restart meanwhile removes them, and does not bring them back."""
    client = await node.client()
    await client.create_topic("t", file_delete_delay_ms=3_600_000)
    await client.produce("t", b"x")
    await client.delete_topic("t")
    (waiting,) = (tmp_path / "data").glob("t-0.*-delete")
    assert (waiting / f"{0:020}.log").stat().st_size > 0
    await node.stop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(background, "REMOVE_DELETED_MS", 20.0)
        again = await start_node()
        await until(lambda: not waiting.exists())
    answer = await (await again.client()).metadata("t")
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_deletion_under_readers(node: Node) -> None:
    """Readers that hold slices of the old files get whole answers."""
    admin = await node.client()
    for round_ in range(5):
        await admin.create_topic("t")
        value = bytes([round_]) * 500_000
        await admin.produce("t", value)
        readers = [await node.client() for _ in range(3)]
        reads = [reader.start_fetch("t", 0) for reader in readers]
        await asyncio.sleep(0)
        await admin.delete_topic("t")
        for read in reads:
            found = read_of(await asyncio.wait_for(read, 30))
            assert found.error in GONE or [r.value for r in found.records] == [value]
        for reader in readers:
            await reader.close()
