"""What has come and gone leaves nothing: memory after so many rounds is what it was before them.

Each kind of churn apart, on a broker of its own: warmed up until everything that is bounded is
full, then as often again, and the resident memory may not have grown by more than a megabyte.
"""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from protocol.error_codes import ErrorCode
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from protocol.messages.delete_groups import DeleteGroupsRequest
from protocol.messages.end_txn import EndTxnRequest
from protocol.messages.find_coordinator import FindCoordinatorRequest
from protocol.messages.init_producer_id import InitProducerIdRequest
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from protocol.records.builder import build_batch
from tests.fakes.network.client import Client, produce_request
from tests.system.hostile.conftest import Note
from tests.system.hostile.server import MIB, Target, running

Round = Callable[[Client, int, int], Awaitable[None]]
"""By a client, with a number of its own, on a port."""

TRANSACTIONAL_IDS = 200
TRANSACTION = 1


async def topics(client: Client, number: int, _port: int) -> None:
    """A topic is created, looked for by its name, written to, read and deleted."""
    name = f"topic-{number}"
    await client.create_topic(name, 3)
    await client.metadata(name)
    for partition in range(3):
        await client.produce(name, b"value", partition=partition)
    await client.fetch(name, 0)
    await client.delete_topic(name)


async def tiered_topics(client: Client, number: int, _port: int) -> None:
    """The same with remote storage; closed segments are copied, or their copying ends."""
    name = f"tiered-{number}"
    await client.create_topic(name, 1, remote_storage_enable="true", segment_bytes=1024 * 1024)
    await client.metadata(name)
    for _ in range(3):
        await client.produce(name, bytes(600_000))
    await client.delete_topic(name)


async def producers(client: Client, number: int, _port: int) -> None:
    """A producer with one of some transactional ids makes a transaction and goes."""
    transactional_id = f"id-{number % TRANSACTIONAL_IDS}"
    await client.call(
        FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[transactional_id])
    )
    while True:
        answer = await client.call(
            InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        )
        if ErrorCode(answer.error_code) is ErrorCode.NONE:
            break
        assert ErrorCode(answer.error_code).retriable, answer
        await asyncio.sleep(0.02)
    pid, epoch = answer.producer_id, answer.producer_epoch
    added = await client.call(
        AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=pid,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="kept", partitions=[0, 1, 2])],
        ),
        3,
    )
    assert all(
        partition.partition_error_code == 0
        for topic in added.results_by_topic_v3_and_below
        for partition in topic.results_by_partition
    )
    for partition in range(3):
        batch = build_batch(
            [(None, b"value", (), 0)],
            producer_id=pid,
            producer_epoch=epoch,
            base_sequence=0,
            transactional=True,
        )
        request = produce_request("kept", partition, batch)
        request.transactional_id = transactional_id
        answer = await client.call(request, 11)
        assert answer.responses[0].partition_responses[0].error_code == 0, answer
    ended = await client.call(
        EndTxnRequest(
            transactional_id=transactional_id, producer_id=pid, producer_epoch=epoch, committed=True
        ),
        3,
    )
    assert ended.error_code == 0


async def groups(client: Client, number: int, _port: int) -> None:
    """A consumer group of one member; it leaves, and the group is deleted."""
    group = f"group-{number}"
    await client.find_coordinator(group)
    member = str(uuid4())
    joined = await client.call(
        ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=0,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=["kept"],
            topic_partitions=[],
        )
    )
    assert joined.error_code == 0, joined
    await client.call(
        ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=-1)
    )
    await client.commit(group, "kept", {0: number})
    deleted = await client.call(DeleteGroupsRequest(groups_names=[group]))
    assert deleted.results[0].error_code == 0


async def share_groups(client: Client, number: int, _port: int) -> None:
    """A share group of one member; it leaves, and the group is deleted."""
    group = f"share-{number}"
    await client.find_coordinator(group)
    member = str(uuid4())
    joined = await client.call(
        ShareGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=0, subscribed_topic_names=["kept"]
        )
    )
    assert joined.error_code == 0, joined
    await client.call(ShareGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=-1))
    while True:
        deleted = await client.call(DeleteGroupsRequest(groups_names=[group]))
        code = ErrorCode(deleted.results[0].error_code)
        if code is ErrorCode.NONE:
            break
        # The first ones find the topic of the states being made.
        assert code.retriable, deleted
        await asyncio.sleep(0.02)


async def configs(client: Client, number: int, _port: int) -> None:
    """A topic's settings change."""
    await client.alter_topic("kept", retention_ms=1_000_000 + number)
    await client.topic_configs("kept")


async def connections(_client: Client, number: int, port: int) -> None:
    """Somebody connects, asks, and goes."""
    async with await Client.connect("127.0.0.1", port, f"client-{number % 50}") as one:
        await one.metadata("kept")


async def churn(target: Target, act: Round, rounds: Iterator[int], clients: int) -> None:
    """`act` for every number, by some clients at once."""

    async def work() -> None:
        async with await Client.connect("127.0.0.1", target.port, "churn") as client:
            for number in rounds:
                await act(client, number, target.port)

    await asyncio.gather(*(work() for _ in range(clients)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("act", "rounds", "clients"),
    [
        pytest.param(topics, 2_500, 4, id="topics"),
        pytest.param(tiered_topics, 600, 4, id="tiered topics"),
        pytest.param(producers, 3_000, 4, id="transactional producers"),
        pytest.param(groups, 3_000, 32, id="groups"),
        pytest.param(share_groups, 2_000, 4, id="share groups"),
        pytest.param(configs, 4_000, 4, id="configs"),
        pytest.param(connections, 10_000, 4, id="connections"),
    ],
)
def test_churn_leaves_nothing(
    tmp_path: Path, note: Note, act: Round, rounds: int, clients: int
) -> None:
    """As many rounds again as it took to warm up leave less than a megabyte."""
    properties = {
        "log.segment.delete.delay.ms": "0",
        "log.cleaner.backoff.ms": "1000",
        "transaction.state.log.num.partitions": "3",
        "offsets.topic.num.partitions": "3",
    }
    if act is tiered_topics:
        properties |= {
            "remote.log.storage.system.enable": "true",
            "rsm.config.storage.backend.class": "filesystem",
            "rsm.config.storage.root": str(tmp_path / "bucket"),
            # A note of each deleted topic is kept until the bucket has been searched since.
            "tier.gc.interval.ms": "1000",
            "tier.gc.grace.ms": "1000",
            "remote.log.manager.task.interval.ms": "1000",
        }
    with running(tmp_path, properties) as target:

        async def prepare() -> None:
            async with await Client.connect("127.0.0.1", target.port, "churn") as client:
                await client.create_topic("kept", 3)

        asyncio.run(prepare())
        seen: list[float] = []
        numbers = itertools.count()
        for _ in range(3):
            asyncio.run(churn(target, act, itertools.islice(numbers, rounds), clients))
            time.sleep(5.0)
            seen.append(target.memory() / MIB)
        note(rounds=rounds, memory_mib=seen)
        assert seen[2] - seen[1] <= 1.0
