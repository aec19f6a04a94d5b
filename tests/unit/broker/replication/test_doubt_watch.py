"""Appends at a leader in doubt are answered, after a moment in which it may be confirmed."""

import asyncio
import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker.replication.doubt_watch import LOOK_MS, DoubtWatch
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.unit.broker.replication.followers.follower_world import FollowerWorld, record
from tests.unit.broker.replication.followers.test_acks import (
    Validity,
    goes_on_fetching,
    led,
)
from tests.unit.broker.world import batch


class DoubtWorld(FollowerWorld):
    """A leader of three replicas whose lease ends, and a watch."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.validity = Validity()
        self.validity.until_ms = self.clock.monotonic_ms()
        self.replicas.terms.validity = self.validity
        self.watch = DoubtWatch(
            self.replicas.terms, self.clock, self.timer, led=self.replicas.partitions
        )
        self.watch.start()

    async def look(self) -> None:
        """Until the next one is over."""
        self.timer.advance(LOOK_MS)
        await asyncio.sleep(0)

    def write_acks_all(self) -> None:
        """An append of a patient client."""
        data = [PartitionProduceData(index=0, records=batch(b"v"))]
        topics = [TopicProduceData(name="t", partition_data=data)]
        self.send(ApiKey.PRODUCE, 9, ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=topics))

    def produced(self) -> ErrorCode:
        """Its answer."""
        answer = self.answer(ApiKey.PRODUCE, 9)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)


@pytest.fixture
async def f(tmp_path: Path) -> AsyncIterator[DoubtWorld]:
    world = DoubtWorld(tmp_path)
    yield world
    world.watch.close()
    world.close()


async def test_within_the_lease_appends_wait(f: DoubtWorld) -> None:
    led(f, (1, 2))
    f.validity.until_ms = math.inf
    f.write_acks_all()
    for _ in range(5):
        await f.look()
    assert not f.has_answer
    assert f.watch.answered == 0


async def test_in_doubt_for_two_looks_they_are_answered(f: DoubtWorld) -> None:
    """Those that come later, too."""
    led(f, (1, 2))
    f.write_acks_all()
    await f.look()
    assert not f.has_answer
    await f.look()
    assert f.produced() == ErrorCode.NOT_LEADER_OR_FOLLOWER
    f.write_acks_all()
    await f.look()
    await f.look()
    assert f.produced() == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert f.watch.answered == 2


async def test_confirmed_by_its_followers_they_wait_on(f: DoubtWorld) -> None:
    """The store may be away for long."""
    partition = led(f, (1, 2))
    await f.look()
    session, epoch = goes_on_fetching(f, 2)
    f.clock.advance(600)
    f.fetch({}, session=(session, epoch))
    f.fetch({}, session=(session, epoch + 1))
    f.write_acks_all()
    await f.look()
    await f.look()
    assert not partition.is_in_doubt(f.clock.monotonic_ms())
    assert not f.has_answer


async def test_a_lease_that_is_back_between_two_looks_ends_the_doubt(f: DoubtWorld) -> None:
    led(f, (1, 2))
    f.write_acks_all()
    await f.look()
    f.validity.until_ms = f.clock.monotonic_ms() + LOOK_MS + 1
    await f.look()
    await f.look()
    assert not f.has_answer


async def test_in_doubt_of_all_that_it_leads_it_is_isolated(f: DoubtWorld) -> None:
    """At two looks, and until it hears of the others."""
    led(f, (1, 2))
    await f.look()
    assert not f.watch.is_isolated
    await f.look()
    assert f.watch.is_isolated
    goes_on_fetching(f, 2)
    await f.look()
    assert not f.watch.is_isolated
    await f.look()
    await f.look()
    await f.look()
    assert f.watch.is_isolated
    f.validity.until_ms = math.inf
    await f.look()
    assert not f.watch.is_isolated


async def test_without_followers_nobody_is_isolated(f: DoubtWorld) -> None:
    """Nobody could have taken its place."""
    f.add("t")
    for _ in range(3):
        await f.look()
    assert not f.watch.is_isolated


async def test_a_role_that_changed_between_two_looks_is_looked_at_again(f: DoubtWorld) -> None:
    partition = led(f, (1, 2))
    f.write_acks_all()
    await f.look()
    partition.become_leader(record((1, 2), leader_epoch=6), now_ms=f.clock.monotonic_ms())
    await f.look()
    assert not f.has_answer


async def test_coordinators_wait_on(f: DoubtWorld) -> None:
    """Their memory has to agree with the log."""
    partition = led(f, (1, 2))
    answered: list[ErrorCode] = []
    f.replicas.append_internal(
        partition.topic_partition, batch(b"v"), lambda code, _: answered.append(code)
    )
    for _ in range(5):
        await f.look()
    assert answered == []
