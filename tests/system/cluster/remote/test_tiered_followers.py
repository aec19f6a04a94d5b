"""Followers of partitions whose past is in remote storage (KIP-405), on three brokers.

Their leader has dropped most of its segments: what a follower lacks of them it does not download.
It begins behind them, and can lead nevertheless.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from broker.broker import Broker
from broker.controller.images.metadata_records import ConfigResource, ResourceType, config_key
from broker.controller.store.metadata_store import Delete
from broker.replicas.partition import Partition
from config.sections.replication import RACK_AWARE_SELECTOR
from protocol.error_codes import ErrorCode
from tests.harness.brokers import UNTIL_S, ClusterHarness
from tests.harness.cluster_client import ClusterClient

RACKS = ("a", "b", "c")
TIERED: dict[str, Any] = {
    "min_insync_replicas": 1,
    "remote_storage_enable": "true",
    "segment_bytes": 1 << 20,
    "local_retention_bytes": 1,
    "file_delete_delay_ms": 0,
}
VALUE_BYTES = 120_000
LATEST_TIERED = -5
EARLIEST_LOCAL = -4
EARLIEST = -2


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ClusterHarness]:
    async with ClusterHarness(
        tmp_path,
        racks=RACKS,
        replica_selector_class=RACK_AWARE_SELECTOR,
        transaction_state_log_replication_factor=3,
        replica_fetch_backoff_ms=100,
        log_retention_check_interval_ms=100,
        log_initial_task_delay_ms=100,
        remote_log_storage_system_enable=True,
        remote_log_manager_task_interval_ms=100,
        rlmm_config_remote_log_metadata_topic_num_partitions=2,
        rsm_config_storage_root=str(tmp_path / "objects"),
        tier_worker="inline",
    ) as cluster:
        yield cluster


def replica(cluster: ClusterHarness, node_id: int, topic: str = "orders") -> Partition:
    partition = cluster.broker(node_id).replicas.replica_of(topic, 0)
    assert partition is not None
    return partition


def value(number: int) -> bytes:
    return b"%06d" % number + bytes(VALUE_BYTES)


async def produce(cluster: ClusterHarness, first: int, count: int = 30) -> None:
    """So many large records, by an idempotent producer whose sequences are their numbers."""
    client = await cluster.client(await cluster.leading("orders"))
    for number in range(first, first + count):
        answer = await client.try_produce(
            "orders",
            [(None, value(number))],
            producer_id=7_000,
            producer_epoch=0,
            base_sequence=number,
        )
        assert answer.error_code == ErrorCode.NONE, answer


async def retry(cluster: ClusterHarness, node_id: int, number: int) -> int:
    """The offset that a producer's second attempt gets."""
    client = await cluster.client(node_id)
    answer = await client.try_produce(
        "orders",
        [(None, value(number))],
        producer_id=7_000,
        producer_epoch=0,
        base_sequence=number,
    )
    assert answer.error_code == ErrorCode.NONE, answer
    offset: int = answer.base_offset
    return offset


async def dropped(cluster: ClusterHarness, above: int) -> int:
    """Wait until the leader has no offset on its disk up to `above`; where its disk begins."""
    leader = replica(cluster, await cluster.leading("orders"))
    await cluster.until(lambda: leader.log.local_log_start_offset > above)
    return leader.log.local_log_start_offset


def isr(*brokers: Broker) -> set[int]:
    """All that one of these brokers has in it."""
    found = [
        broker.controller.image.partition("orders", 0)
        for broker in brokers
        if broker.controller is not None
    ]
    return {node_id for one in found if one is not None for node_id in one.isr}


async def in_sync(cluster: ClusterHarness, *node_ids: int) -> None:
    """Wait until these are in the ISR, as all that run see it."""
    wanted = set(node_ids)
    await cluster.until(lambda: all(isr(one) >= wanted for one in cluster.running))


async def numbers_at(cluster: ClusterHarness, node_id: int, *, to: int) -> list[int]:
    """The numbers of the first records up to an offset, as one replica gives them to consumers."""
    client = await cluster.client(node_id)
    found: list[int] = []
    offset = 0
    async with asyncio.timeout(UNTIL_S):
        while offset < to:
            read = await client.fetch("orders", offset, max_wait_ms=200)
            assert read.error in (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER), read
            for record in read.records:
                if record.offset >= offset and record.value is not None:
                    found.append(int(record.value[:6]))
                    offset = record.offset + 1
    return found


async def one_away(cluster: ClusterHarness) -> tuple[int, int]:
    """A topic with one record that all have; then a follower is killed: the leader, and it."""
    await cluster.create_topic("orders", replicas=3, **TIERED)
    leader = await cluster.leading("orders")
    await produce(cluster, 0, 1)
    await in_sync(cluster, *cluster.nodes)
    away = next(node_id for node_id in cluster.nodes if node_id != leader)
    await cluster.until(lambda: replica(cluster, away).log.log_end_offset == 1)
    await cluster.kill(away, revoke=True)
    await cluster.until(lambda: away not in isr(*cluster.running))
    return leader, away


async def lead(cluster: ClusterHarness, node_id: int) -> None:
    """Have a broker lead, as the only one that is left."""
    for other in cluster.nodes:
        if other != node_id:
            await cluster.kill(other, revoke=True)
    await cluster.until(lambda: cluster.leads(node_id, "orders"))


@pytest.mark.parametrize("is_erased", [False, True])
async def test_a_follower_that_was_away_begins_behind_remote_storage_and_can_lead(
    cluster: ClusterHarness, is_erased: bool
) -> None:
    """Also one whose log was removed: it takes epochs and producers from the bucket."""
    _, away = await one_away(cluster)
    await produce(cluster, 1)
    local_start = await dropped(cluster, 1)
    if is_erased:
        shutil.rmtree(cluster.nodes[away].directory / "orders-0")
    await cluster.restart(away)
    await in_sync(cluster, away)
    log = replica(cluster, away).log
    assert (log.log_start_offset, log.log_end_offset) == (0, 31)
    assert log.local_log_start_offset >= local_start
    assert cluster.fetchers(away).stats.rebuilt_from_remote >= 1
    await lead(cluster, away)
    assert await retry(cluster, away, 30) == 30
    assert await numbers_at(cluster, away, to=31) == list(range(31))


async def test_a_follower_whose_records_have_expired_begins_with_those_that_are_left(
    cluster: ClusterHarness,
) -> None:
    """First where the leader's log begins, which is remote; then behind that."""
    leader, away = await one_away(cluster)
    await produce(cluster, 1)
    await dropped(cluster, 12)
    await (await cluster.client(leader)).alter_topic("orders", retention_bytes="2500000")
    log = replica(cluster, leader).log
    await cluster.until(lambda: log.log_start_offset > 1)
    await cluster.restart(away)
    await in_sync(cluster, away)
    own = replica(cluster, away).log
    await cluster.until(lambda: own.log_start_offset == log.log_start_offset)
    assert own.log_start_offset < own.local_log_start_offset
    await lead(cluster, away)
    client = await cluster.client(away)
    async with asyncio.timeout(UNTIL_S):
        while True:
            first = own.log_start_offset
            read = await client.fetch("orders", first, max_wait_ms=500)
            if own.log_start_offset == first and (read.records or read.error):
                break
            # It leads, and more of it has expired; or remote storage is slower than that.
    assert (read.error, read.records[0].offset) == (ErrorCode.NONE, first)
    assert await retry(cluster, away, 30) == 30


async def test_transactions_go_on_while_an_erased_follower_is_built(
    cluster: ClusterHarness,
) -> None:
    """One is open over the end of the remote part: its records become readable with its marker."""
    client = ClusterClient(cluster)
    await client.producer("aborted")  # its topic needs all brokers
    _, away = await one_away(cluster)
    aborted = await client.producer("aborted")
    await aborted.send("orders", 0, value(100))
    await produce(cluster, 1, 5)
    await aborted.end(commit=False)
    open_one = await client.producer("open")
    first_open = await open_one.send("orders", 0, value(200))
    await produce(cluster, 6, 3)
    leader = replica(cluster, await cluster.leading("orders"))
    # The marker of the one before is written behind the answer of its EndTxn.
    await cluster.until(lambda: leader.log.last_stable_offset == first_open)
    await open_one.end(commit=True)
    open_one = await client.producer("open")
    await produce(cluster, 9, 20)
    await dropped(cluster, first_open)
    still_open = await open_one.send("orders", 0, value(300))
    shutil.rmtree(cluster.nodes[away].directory / "orders-0")
    await cluster.restart(away)
    await in_sync(cluster, away)
    log = replica(cluster, away).log
    # With the high watermark, which it learns with a later fetch.
    await cluster.until(lambda: log.last_stable_offset == still_open)
    await open_one.end(commit=True)
    await cluster.until(lambda: log.last_stable_offset == log.log_end_offset > still_open)
    await lead(cluster, away)
    committed = [int(one[:6]) for one in await client.read_committed("orders", 0)]
    assert sorted(committed) == sorted([*range(29), 200, 300])


async def test_every_replica_serves_what_is_remote(cluster: ClusterHarness) -> None:
    """A leader sends a consumer to its rack for it, too."""
    await cluster.create_topic("orders", replicas=3, **TIERED)
    leader = await cluster.leading("orders")
    await produce(cluster, 0)
    await dropped(cluster, 1)
    await in_sync(cluster, *cluster.nodes)
    await cluster.until(
        lambda: all(replica(cluster, n).log.local_log_start_offset > 0 for n in cluster.nodes)
    )
    client = await cluster.client(leader)
    for node_id in cluster.nodes:
        assert await numbers_at(cluster, node_id, to=30) == list(range(30))
        named = (
            await client.fetch("orders", 0, rack=RACKS[node_id - 1], max_wait_ms=500)
        ).preferred
        assert named == (-1 if node_id == leader else node_id)


async def test_log_starts_follow_that_of_the_remote_log(cluster: ClusterHarness) -> None:
    """Followers' too, whether records were deleted or have expired."""
    await cluster.create_topic("orders", replicas=3, **TIERED)
    leader = await cluster.leading("orders")
    await produce(cluster, 0)
    await dropped(cluster, 12)
    client = await cluster.client(leader)
    assert await client.delete_records("orders", 10) == 10

    def starts() -> set[int]:
        return {replica(cluster, node_id).log.log_start_offset for node_id in cluster.nodes}

    await cluster.until(lambda: starts() == {10})
    await client.alter_topic("orders", retention_bytes="1000000", local_retention_bytes="1")
    await cluster.until(lambda: len(starts()) == 1 and min(starts()) > 10)
    for node_id in cluster.nodes:
        read = await (await cluster.client(node_id)).fetch("orders", 9)
        assert read.error == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_offsets_of_the_tier_are_the_leaders_to_say(cluster: ClusterHarness) -> None:
    """As in Kafka: a follower sends clients to the leader, which has them."""
    await cluster.create_topic("orders", replicas=3, **TIERED)
    leader = await cluster.leading("orders")
    await produce(cluster, 0)
    log = replica(cluster, leader).log
    # All that can go has gone: it moves no more.
    await cluster.until(lambda: log.local_log_start_offset == log.segment_facts()[-1].base_offset)
    local_start = log.local_log_start_offset
    client = await cluster.client(leader)
    assert await client.offset("orders", EARLIEST) == 0
    assert await client.offset("orders", EARLIEST_LOCAL) == local_start
    assert await client.offset("orders", LATEST_TIERED) >= local_start - 1
    other = await cluster.client(next(n for n in cluster.nodes if n != leader))
    for timestamp in (EARLIEST, EARLIEST_LOCAL, LATEST_TIERED):
        with pytest.raises(Exception, match="NOT_LEADER_OR_FOLLOWER"):
            await other.offset("orders", timestamp)


async def test_settings_that_are_lost_cost_no_replica_its_history(
    cluster: ClusterHarness,
) -> None:
    """The store is an older copy: nothing says that the topic has remote storage.

    All brokers are killed and start with it; one has lost its log, too, and begins it anew. It
    leads when the setting is there again: by what it has, no record has expired.
    """
    await cluster.create_topic("orders", replicas=3, **TIERED)
    await produce(cluster, 0)
    below = await dropped(cluster, 1)
    await in_sync(cluster, *cluster.nodes)
    await cluster.until(
        lambda: all(replica(cluster, n).log.local_log_start_offset > 0 for n in cluster.nodes)
    )
    # A copy that is under way is another one afterwards.
    objects = {path.name for path in (cluster.directory / "objects").rglob("*.log")}
    copied = {name for name in objects if int(name[:20]) < below}
    for node_id in cluster.nodes:
        await cluster.kill(node_id, revoke=True)
    await cluster.store.txn((), (Delete(config_key(ConfigResource(ResourceType.TOPIC, "orders"))),))
    for node_id in cluster.nodes:
        await cluster.restart(node_id)
    leader = await cluster.leading("orders")
    await in_sync(cluster, *cluster.nodes)
    assert await numbers_at(cluster, leader, to=30) == list(range(30))
    erased = next(node_id for node_id in cluster.nodes if node_id != leader)
    await cluster.kill(erased, revoke=True)
    shutil.rmtree(cluster.nodes[erased].directory / "orders-0")
    await cluster.until(lambda: erased not in isr(*cluster.running))
    await cluster.restart(erased)
    await in_sync(cluster, erased)
    for node_id in cluster.nodes:
        log = replica(cluster, node_id).log
        assert not log.remote_storage
        assert (log.log_start_offset, log.log_end_offset) == (0, 30)
    await lead(cluster, erased)
    await (await cluster.client(erased)).alter_topic("orders", **TIERED)
    await cluster.until(lambda: replica(cluster, erased).log.remote_storage)
    # Long enough for segments to be copied, and to go here: what has expired would have gone, too.
    await produce(cluster, 30)
    await dropped(cluster, 40)
    assert await numbers_at(cluster, erased, to=60) == list(range(60))
    assert copied <= {path.name for path in (cluster.directory / "objects").rglob("*.log")}
