"""Transactions from the bucket look as they do from the local log.

`test_transactions_with_tiered_store` is the seventeenth scenario of Kafka's suite, as far as it is
about storage (TransactionsTest.testBasicTransactions, .testDelayedFetchIncludesAbortedTransaction);
the others go beyond it: a tiered topic and its untiered twin get the same history, and every read
of both must agree.
"""

import asyncio
import random
from typing import Any

import pytest

from protocol.error_codes import ErrorCode
from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.records.batch import iterate_batches
from tests.fakes.network.client import LATEST, RefusedError
from tests.system.tiered.cluster import Cluster
from tests.system.tiered.conftest import NewCluster
from tests.system.tiered.context import EARLIEST_LOCAL, READ_COMMITTED, Context
from tests.system.tiered.language import Scenario
from tests.system.tiered.transactions import History, Outcome, Transactions

TIERED, TWIN = "tiered", "twin"
TWO_TASK_INTERVALS_S = 1.2


async def fetch_committed(
    context: Context, topic: str, offset: int, *, max_bytes: int
) -> tuple[int, set[tuple[int, int]]]:
    """(end of the batches, aborted transactions) of one read_committed Fetch of partition 0."""

    async def attempt() -> tuple[int, set[tuple[int, int]]]:
        wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=READ_COMMITTED,
            topics=[FetchTopic(topic=topic, partitions=[wanted])],
        )
        answer = await (await context.leader_client(topic, 0)).call(request)
        found: Any = answer.responses[0].partitions[0]
        if found.error_code:
            raise RefusedError(ErrorCode(found.error_code), f"{topic} at {offset}")
        end = offset
        data = memoryview(found.records or b"")
        for _, header in iterate_batches(data, allow_partial=True):
            end = header.next_offset
        assert end > offset, f"{topic}: nothing at {offset} yet"
        aborted = found.aborted_transactions or []
        return end, {(one.producer_id, one.first_offset) for one in aborted}

    found: tuple[int, set[tuple[int, int]]] = await context.eventually(attempt)
    return found


async def read_and_compare(context: Context, outcome: Outcome, topics: tuple[str, ...]) -> None:
    """Every offset below the last stable one, as an application and by single fetches."""
    for topic in topics:
        assert await context.offset(topic, 0, LATEST) == outcome.end
        assert await context.offset(topic, 0, LATEST, READ_COMMITTED) == outcome.last_stable
        for offset in range(0, outcome.last_stable, max(1, outcome.last_stable // 8)):
            committed = await context.consume(topic, 0, offset, committed=True)
            everything = await context.consume(topic, 0, offset, committed=False)
            assert [(at, key) for at, key, _ in committed] == [
                one for one in outcome.committed if one[0] >= offset
            ], f"{topic} from {offset}"
            assert [(at, key) for at, key, _ in everything] == [
                one for one in outcome.data if one[0] >= offset
            ], f"{topic} from {offset}"
        for offset in range(outcome.last_stable):
            for max_bytes in (1, 1 << 20):
                end, told = await fetch_committed(context, topic, offset, max_bytes=max_bytes)
                firsts = {first for _, first in told}
                needed = {a.first for a in outcome.aborted if a.marker >= offset and a.first < end}
                assert needed <= firsts, f"{topic} {offset}..{end}: {firsts} lacks {needed}"
                # More than needed is allowed where the range was estimated, but nothing untrue.
                assert firsts <= {a.first for a in outcome.aborted}


async def until_local_start(context: Context, topic: str, offset: int) -> None:
    async def reached() -> None:
        found = await context.offset(topic, 0, EARLIEST_LOCAL)
        assert found == offset, f"the local log of {topic} begins at {found}"

    await context.eventually(reached)


ON_SEVERAL = [
    1,
    pytest.param(2, marks=pytest.mark.cluster),
    pytest.param(3, marks=[pytest.mark.cluster, pytest.mark.slow]),
]
"""Brokers; of several the first two have replicas, and the coordinator is on any."""


def assignment(brokers: int) -> dict[int, list[int]]:
    """Of partition 0."""
    return {0: [0, 1] if brokers > 1 else [0]}


@pytest.mark.parametrize("brokers", ON_SEVERAL)
async def test_transactions_with_tiered_store(new_cluster: NewCluster, brokers: int) -> None:
    """An open transaction holds copying back; what is decided is copied, markers too."""
    cluster = new_cluster(brokers=brokers)
    context = Context(cluster)
    create = Scenario("", brokers=brokers).create_topic(TIERED, assignment=assignment(brokers))
    await create.actions[0].run(context)
    history = History().data("a")
    write = Transactions((TIERED,), history)
    try:
        await write.run(context)
        await asyncio.sleep(TWO_TASK_INTERVALS_S)
        assert await context.offset(TIERED, 0, EARLIEST_LOCAL) == 0
        assert cluster.view.segments(TIERED) == []
        history.abort("a")
        await write.run(context)
        await until_local_start(context, TIERED, 1)
        history.data("a")
        await write.run(context)
        # The marker's segment is decided, the record after it is not.
        await asyncio.sleep(TWO_TASK_INTERVALS_S)
        assert await context.offset(TIERED, 0, EARLIEST_LOCAL) <= 2
        assert max(one.end_offset for one in cluster.view.segments(TIERED)) <= 1
        history.commit("a")
        await write.run(context)
        await until_local_start(context, TIERED, 3)
        await context.check_offsets()
        outcome = history.outcome()
        assert outcome.committed == [(2, "a")]
        await read_and_compare(context, outcome, (TIERED,))
    finally:
        await context.close()


def random_history(seed: int, steps: int) -> History:
    """Three producers; some transactions stay open to the end now and then."""
    choose = random.Random(seed)
    history = History()
    is_open: set[str] = set()
    for _ in range(steps):
        producer = choose.choice("abc")
        if producer in is_open and choose.random() < 0.5:
            is_open.remove(producer)
            (history.abort if choose.random() < 0.6 else history.commit)(producer)
        else:
            is_open.add(producer)
            history.data(producer, choose.choice((1, 1, 2, 3)))
    for producer in sorted(is_open)[seed % 2 :]:
        history.abort(producer)
    return history


@pytest.mark.parametrize(
    ("history", "batches"),
    [
        pytest.param(
            History().data("x").data("y", 2).data("x").abort("y").commit("x"), 1, id="delayed-fetch"
        ),
        pytest.param(
            History().data("a").data("b", 9).commit("b").data("c").abort("c").abort("a"),
            1,
            id="aborted-over-many-segments",
        ),
        pytest.param(
            History().data("a", 2).abort("a").data("b", 6).data("a").commit("b").commit("a"),
            3,
            id="several-batches-a-segment",
        ),
        pytest.param(random_history(1, 24), 2, id="random-1"),
        pytest.param(random_history(2, 24), 1, id="random-2", marks=pytest.mark.slow),
    ],
)
async def test_both_tiers_tell_the_same(
    new_cluster: NewCluster, history: History, batches: int
) -> None:
    await look_at_both_tiers(new_cluster(), history, batches, brokers=1)


@pytest.mark.cluster
@pytest.mark.slow
@pytest.mark.parametrize("brokers", [2, 3])
async def test_both_tiers_of_several_brokers_tell_the_same(
    new_cluster: NewCluster, brokers: int
) -> None:
    """The histories of the test before, one for each number of brokers."""
    history = random_history(brokers, 24)
    await look_at_both_tiers(new_cluster(brokers=brokers), history, 2, brokers=brokers)


async def look_at_both_tiers(
    cluster: Cluster, history: History, batches: int, *, brokers: int
) -> None:
    """A topic of each tier has the history; all that readers see is compared."""
    context = Context(cluster)
    outcome = history.outcome()
    where = assignment(brokers)
    scenario = (
        Scenario("", brokers=brokers)
        .create_topic(TIERED, batches_per_segment=batches, assignment=where)
        .create_topic(TWIN, batches_per_segment=batches, assignment=where, tiered=False)
    )
    try:
        for action in scenario.actions:
            await action.run(context)
        await Transactions((TIERED, TWIN), history).run(context)

        async def copied() -> None:
            """Every closed segment below the last stable offset has left the local log."""
            twin = cluster.partition_directory(0, TWIN, 0)
            assert twin is not None
            bases = sorted(int(path.stem) for path in twin.glob("*.log"))
            last = max(base for base in bases if base <= outcome.last_stable)
            assert await context.offset(TIERED, 0, EARLIEST_LOCAL) == last

        await context.eventually(copied)
        await context.check_offsets()
        await read_and_compare(context, outcome, (TIERED, TWIN))
    finally:
        await context.close()


def test_outcome_of_a_history() -> None:
    """The oracle itself."""
    history = History().data("a", 2).data("b").abort("a").commit("b").data("c")
    outcome = history.outcome()
    assert outcome.end == 6
    assert outcome.last_stable == 5
    assert outcome.data == [(0, "a"), (1, "a"), (2, "b"), (5, "c")]
    assert outcome.committed == [(2, "b")]
    assert [(a.first, a.marker) for a in outcome.aborted] == [(0, 3)]
    assert random_history(3, 10).steps == random_history(3, 10).steps
