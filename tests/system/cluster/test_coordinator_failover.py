"""Groups and transactions go on when the broker that coordinates them is killed.

Three replicas of everything, two of them in sync at least: what was acknowledged is kept.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from broker.controller.images.topic_names import CONSUMER_OFFSETS
from broker.coordinator.partitioner import partition_for_group
from protocol.error_codes import ErrorCode as E
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.fakes.network.client import RefusedError
from tests.harness.brokers import UNTIL_S, ClusterHarness
from tests.harness.cluster_client import (
    GROUP,
    TRANSACTION,
    ClusterClient,
    TransactionalProducer,
    check,
)

FETCH_WAIT_MS = 200
DOUBT_MS = 2 * FETCH_WAIT_MS
MARGIN_MS = 100
"""Turns of a loop that three brokers share; the longest that was seen comes on top."""

DONE_BETWEEN = 5
"""Of the client's steps: before each kill, and while another broker coordinates."""

REPLICATED = {
    "default_replication_factor": 3,
    "min_insync_replicas": 2,
    "offsets_topic_replication_factor": 3,
    "transaction_state_log_replication_factor": 3,
    "transaction_state_log_min_isr": 2,
    "share_coordinator_state_topic_replication_factor": 3,
    "share_coordinator_state_topic_min_isr": 2,
    "replica_fetch_wait_max_ms": FETCH_WAIT_MS,
}


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ClusterHarness]:
    async with ClusterHarness(tmp_path, **REPLICATED) as cluster:
        yield cluster


async def elsewhere(coordinator: Callable[[], Awaitable[int]], victim: int) -> None:
    """Wait until another broker coordinates."""
    async with asyncio.timeout(UNTIL_S):
        while True:
            try:
                if await coordinator() != victim:
                    return
            except (RefusedError, OSError):
                pass
            await asyncio.sleep(0.02)


async def kill_and_restart(
    cluster: ClusterHarness,
    coordinator: Callable[[], Awaitable[int]],
    done: Callable[[], int],
    times: int,
) -> None:
    """Kill whoever coordinates, and bring it back when a client has gone on with another one.

    `done` says how many steps the client has taken.
    """

    async def some_more() -> None:
        goal = done() + DONE_BETWEEN
        await cluster.until(lambda: done() >= goal)

    for _ in range(times):
        await some_more()
        victim = await coordinator()
        await cluster.kill(victim, revoke=True)
        await elsewhere(coordinator, victim)
        await some_more()
        await cluster.restart(victim)
        await cluster.until(lambda: cluster.let_in() == {1, 2, 3})


async def test_committed_offsets_never_go_back(cluster: ClusterHarness) -> None:
    """Each commit is read back, from whoever coordinates by then, while coordinators die."""
    await cluster.create_topic("t")
    client, nemesis = ClusterClient(cluster), ClusterClient(cluster)
    offset = 0
    await client.commit("g", "t", {0: offset})
    faults = asyncio.create_task(
        kill_and_restart(cluster, lambda: nemesis.coordinator(GROUP, "g"), lambda: offset, 3)
    )
    while not faults.done():
        offset += 1
        await client.commit("g", "t", {0: offset})
        assert await client.committed("g", "t") == offset
    await faults
    assert await client.committed("g", "t") == offset
    assert client.retries, "no fault was met"


async def test_a_coordinator_that_is_cut_off_gives_out_no_old_offset_for_long(
    cluster: ClusterHarness,
) -> None:
    """It hears of no successor: when its lease is over it goes by the fetches of its followers.

    They have fetched from it up to `DOUBT_MS` before; from then on it says nothing.
    """
    await cluster.create_topic("t")
    client = ClusterClient(cluster)
    await client.commit("g", "t", {0: 1})
    old = await client.coordinator(GROUP, "g")
    direct = await cluster.client(old)
    partition = partition_for_group("g", 2)
    acknowledged = 1
    moved_ms: float | None = None
    longest_turn_ms = 0.0
    answers: list[tuple[int, bool, float]] = []

    def now_ms() -> float:
        return cluster.loop.time() * 1000

    async def ask_the_old_one() -> None:
        nonlocal longest_turn_ms
        while True:
            at_least, asked_ms = acknowledged, now_ms()
            code, offset = await direct.try_committed("g", "t")
            is_old = code == E.NONE and offset < at_least
            # It was answered after it was asked, whenever the answer is read here.
            answers.append((code, is_old, asked_ms - (moved_ms or asked_ms)))
            slept_ms = now_ms()
            await asyncio.sleep(0.005)
            longest_turn_ms = max(longest_turn_ms, now_ms() - slept_ms - 5)

    asking = asyncio.create_task(ask_the_old_one())
    cluster.cut_from_store(old)
    while moved_ms is None or now_ms() < moved_ms + DOUBT_MS + 500:
        await client.commit("g", "t", {0: acknowledged + 1})
        acknowledged += 1
        if moved_ms is None and cluster.leader_of(CONSUMER_OFFSETS, partition) != old:
            moved_ms = now_ms()
    await cluster.until(lambda: asking.done() or answers[-1][0] == E.NOT_COORDINATOR)
    assert not asking.done(), asking.exception()
    asking.cancel()
    assert {code for code, _, _ in answers} == {E.NONE, E.NOT_COORDINATOR}
    latest = max((after_ms for _, is_old, after_ms in answers if is_old), default=0.0)
    assert latest <= DOUBT_MS + MARGIN_MS + longest_turn_ms
    cluster.heal()
    await cluster.until(lambda: cluster.let_in() == {1, 2, 3})
    assert await client.committed("g", "t") == acknowledged


async def test_a_member_stays_one_when_its_coordinator_dies(cluster: ClusterHarness) -> None:
    """Its epoch and assignment are in the log; nobody is fenced, nothing is assigned anew."""
    await cluster.create_topic("t", partitions=2)
    client = ClusterClient(cluster)

    async def beat(epoch: int, **more: Any) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id="m" * 22, member_epoch=epoch, **more
        )

        async def attempt() -> ConsumerGroupHeartbeatResponse:
            answer: ConsumerGroupHeartbeatResponse = await client.coordinated(GROUP, "g", request)
            check(answer.error_code)
            return answer

        answer: ConsumerGroupHeartbeatResponse = await client.retry(attempt)
        return answer

    joined = await beat(
        0, rebalance_timeout_ms=10_000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    assert joined.assignment is not None
    assert [topic.partitions for topic in joined.assignment.topic_partitions] == [[0, 1]]
    for _ in range(2):
        victim = await client.coordinator(GROUP, "g")
        await cluster.kill(victim, revoke=True)
        answer = await beat(joined.member_epoch)
        assert answer.member_epoch == joined.member_epoch
        assert await client.coordinator(GROUP, "g") != victim
        await cluster.restart(victim)
        await cluster.until(lambda: cluster.let_in() == {1, 2, 3})


class Eos:
    """Transactions one after the other: what was committed is known, whatever happens.

    Attributes:
        committed: Values whose transaction was committed for sure, by partition.
        offset: Committed with the last of them.
    """

    PARTITIONS = 3

    def __init__(self, client: ClusterClient, producer: TransactionalProducer) -> None:
        self._client = client
        self._producer = producer
        self.committed: list[list[bytes]] = [[] for _ in range(self.PARTITIONS)]
        self.offset = -1
        self.number = 0
        self.aborted = 0

    async def transaction(self) -> None:
        """A record to each partition and an offset; every fifth one is aborted."""
        self.number += 1
        value = b"%d" % self.number
        commit = self.number % 5 != 0
        try:
            for index in range(self.PARTITIONS):
                await self._producer.send("t", index, value)
            await self._producer.commit_offsets("g", "in", {0: self.number})
        except RefusedError as error:
            if error.code not in (E.TRANSACTION_ABORTABLE, E.INVALID_TXN_STATE):
                raise
            commit = False
        await self._producer.end(commit=commit)
        if not commit:
            self.aborted += 1
            return
        for values in self.committed:
            values.append(value)
        self.offset = self.number


@pytest.mark.parametrize("kind", [TRANSACTION, GROUP], ids=["transactions", "groups"])
async def test_transactions_are_whole_when_coordinators_die(
    cluster: ClusterHarness, kind: int
) -> None:
    """Exactly what was committed is read, and the group's offset is that of the last commit."""
    await cluster.create_topic("t", partitions=Eos.PARTITIONS)
    await cluster.create_topic("in")
    client, nemesis = ClusterClient(cluster), ClusterClient(cluster)
    eos = Eos(client, await client.producer("tx"))
    await eos.transaction()
    key = "tx" if kind == TRANSACTION else "g"
    faults = asyncio.create_task(
        kill_and_restart(cluster, lambda: nemesis.coordinator(kind, key), lambda: eos.number, 3)
    )
    while not faults.done():
        await eos.transaction()
    await faults
    await eos.transaction()
    assert client.retries, "no fault was met"
    assert await client.committed("g", "in") == eos.offset
    for index in range(Eos.PARTITIONS):
        assert await client.read_committed("t", index) == eos.committed[index]
