"""Each batch is written once, whoever leads in the end."""

import asyncio

import pytest

from broker.membership.validity import Validity
from broker.remote.metadata_topic import REMOTE_LOG_METADATA
from protocol.error_codes import ErrorCode as E
from tests.unit.broker.remote.leader_world import THERE, LeaderWorld
from tiered.errors import RemoteStorageError


async def test_a_leader_elsewhere_appends_it(w: LeaderWorld) -> None:
    w.lead(THERE)
    assert await w.writer.append(0, [b"a", b"b"]) == 0
    assert await w.writer.append(0, [b"c"]) == 2
    assert w.leader.values == [b"a", b"b", b"c"]


async def test_a_leader_here_appends_it(w: LeaderWorld) -> None:
    partition = w.serve()
    w.lead(1)
    assert await w.writer.append(0, [b"a"]) == 0
    assert await w.writer.append(0, [b"b"]) == 1
    assert partition.log.high_watermark == 2


@pytest.mark.parametrize(
    "trouble", [E.NOT_LEADER_OR_FOLLOWER, E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, "lost"]
)
async def test_after_an_error_it_is_there_once(w: LeaderWorld, trouble: E | str) -> None:
    """Of a "lost" one the connection has ended after it was appended, before the answer."""
    w.lead(THERE)
    w.leader.codes = [trouble, trouble]
    assert await w.passing(w.writer.append(0, [b"a"])) == 0
    assert await w.passing(w.writer.append(0, [b"b"])) == 1
    assert w.leader.values == [b"a", b"b"]
    assert w.leader.requests == ["Produce"] * 4


async def test_a_leader_is_waited_for(w: LeaderWorld) -> None:
    writing = asyncio.ensure_future(w.writer.append(0, [b"a"]))
    for _ in range(3):
        await asyncio.sleep(0.001)
        w.world.timer.advance(100)
    assert not writing.done()
    w.lead(THERE)
    assert await w.passing(writing) == 0


async def test_the_lead_may_come_here_in_between(w: LeaderWorld) -> None:
    """The paused leader's request is given up, and this broker appends it itself."""
    w.lead(THERE)
    w.leader.codes = ["silent"]
    writing = asyncio.ensure_future(w.writer.append(0, [b"a"]))
    await asyncio.sleep(0.001)
    partition = w.serve()
    w.lead(1)
    w.leaders.moved(0)
    assert await w.passing(writing) == 0
    assert partition.log.high_watermark == 1


async def test_what_is_given_up_leaves_its_producer_id(w: LeaderWorld) -> None:
    """It may still appear; the next write must not be taken for it."""
    w.lead(THERE)
    w.leader.codes = ["lost", *[E.NOT_ENOUGH_REPLICAS] * 200]
    with pytest.raises(RemoteStorageError, match="NOT_ENOUGH_REPLICAS"):
        await w.passing(w.writer.append(0, [b"a"]))
    w.leader.codes.clear()
    assert await w.writer.append(0, [b"b"]) == 1
    assert w.leader.values == [b"a", b"b"]


async def test_a_refusal_that_stays_is_an_error_at_once(w: LeaderWorld) -> None:
    w.lead(THERE)
    w.leader.codes = [E.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(RemoteStorageError, match=f"{REMOTE_LOG_METADATA}-0: TOPIC_AUTH"):
        await w.writer.append(0, [b"a"])


async def test_a_leader_that_has_not_heard_of_this_broker_yet_is_asked_again(
    w: LeaderWorld,
) -> None:
    w.lead(THERE)
    w.leader.codes = [E.INVALID_TOPIC_EXCEPTION] * 2
    assert await w.passing(w.writer.append(0, [b"a"])) == 0
    assert w.leader.values == [b"a"]


async def test_without_a_lease_nothing_is_sent_again(w: LeaderWorld) -> None:
    """The lease ends between two attempts: when it is back, another may lead what this is about."""
    w.lead(THERE)
    w.leader.codes = [E.NOT_ENOUGH_REPLICAS] * 2
    validity = Validity(w.world.clock.monotonic_ms() + 10)
    w.world.replicas.terms.validity = validity
    appended = asyncio.ensure_future(w.writer.append(0, [b"a"]))
    for _ in range(400):
        # On a busy machine the clock would else go on before the first attempt.
        await asyncio.sleep(0.001)
        if w.leader.requests:
            break
    with pytest.raises(RemoteStorageError, match="no valid lease"):
        await w.passing(appended)
    assert (w.leader.requests, w.leader.values) == (["Produce"], [])
    with pytest.raises(RemoteStorageError, match="no valid lease"):
        await w.writer.append(0, [b"a"])
    assert w.leader.requests == ["Produce"]
    validity.grant(w.world.clock.monotonic_ms() + 10)
    w.leader.codes.clear()
    assert await w.writer.append(0, [b"b"]) == 0


async def test_partitions_do_not_wait_for_one_another(w: LeaderWorld) -> None:
    w.lead(THERE)
    w.leader.codes = ["silent"]
    stuck = asyncio.ensure_future(w.writer.append(0, [b"a"]))
    for _ in range(100_000):
        if not w.leader.codes:
            break
        await asyncio.sleep(0)
    assert await w.writer.append(1, [b"b"]) == 0
    assert not stuck.done()
    stuck.cancel()
