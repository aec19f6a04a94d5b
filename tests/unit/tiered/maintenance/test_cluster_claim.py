"""A bucket is a cluster's, whichever of its brokers asks."""

import asyncio
import json
from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest

from tests.fakes.environment import FakeEnvironment
from tests.fakes.tiered.claim_note import ClaimNote
from tests.unit.tiered.tasks.task_world import World
from tiered.errors import RemoteStorageError, RemoteStorageNotReadyError
from tiered.maintenance.bucket_ownership import CLAIM_KEY, ClaimState
from tiered.maintenance.cluster_claim import ClusterClaim, ClusterIncarnation


class Disk:
    """What a broker notes."""

    def __init__(self) -> None:
        self.noted: list[str] = []

    async def load(self) -> list[str]:
        raise AssertionError("it is the same on every broker")

    async def save(self, incarnations: list[str]) -> None:
        self.noted = list(incarnations)

    async def has_claimed(self) -> bool:
        return bool(self.noted)


def claim_of(
    world: World,
    cluster_id: str = "cluster",
    tier: Any = None,
    disk: Disk | None = None,
    note: ClaimNote | None = None,
) -> ClusterClaim:
    return ClusterClaim(
        tier=tier or world.tier,
        environment=FakeEnvironment(clock=world.clock),
        cluster_id=cluster_id,
        settings=lambda: world.settings,
        memory=ClusterIncarnation(disk or Disk(), note or ClaimNote()),
    )


def write(world: World, **fields: Any) -> None:
    text = {"version": 1, "clusterId": "cluster", **fields}
    world.bucket.put(CLAIM_KEY, json.dumps(text).encode())


async def test_all_brokers_of_a_cluster_own_it_at_once() -> None:
    world = World()
    brokers = [claim_of(world) for _ in range(3)]
    for broker in (*brokers, *brokers):
        assert await broker.check()
        assert broker.is_settled
        await broker.require()


class Late:
    """A broker's way to the bucket whose calls begin so many turns of the loop late, in order."""

    def __init__(self, world: World, turns: Iterable[int]) -> None:
        self._tier = world.tier
        self._turns = iter(turns)

    async def get_object(self, key: str) -> bytes:
        await self._wait()
        return await self._tier.get_object(key)

    async def put_object(self, key: str, data: bytes) -> None:
        await self._wait()
        await self._tier.put_object(key, data)

    async def _wait(self) -> None:
        for _ in range(next(self._turns, 0)):
            await asyncio.sleep(0)


async def test_brokers_that_find_a_new_bucket_at_once_all_own_it() -> None:
    """However their reads and writes of it come to lie: none takes the others for a copy."""
    world = World()
    delays = list(product((0, 3), repeat=5))
    for one, other in product(delays, repeat=2):
        world.bucket.objects.pop(CLAIM_KEY, None)
        claims = [claim_of(world, tier=Late(world, turns)) for turns in (one, other)]
        await asyncio.gather(*(claim.check() for claim in claims))
        for claim in claims:
            assert await claim.check(), (one, other)
            assert claim.is_settled, (one, other)


async def test_a_broker_that_stops_leaves_it_to_the_others() -> None:
    world = World()
    one, other = claim_of(world), claim_of(world)
    await one.check()
    await one.release()
    assert await other.check()
    assert (await claim_of(world).check(), other.state) == (True, ClaimState.OURS)


async def test_two_clusters_are_told_apart() -> None:
    world = World()
    ours, theirs = claim_of(world), claim_of(world, "other")
    assert await ours.check()
    assert not await theirs.check()
    with pytest.raises(RemoteStorageNotReadyError, match="another cluster"):
        await theirs.require()
    assert await ours.check()


async def test_the_claim_of_a_node_that_stopped_in_order_is_taken_over() -> None:
    """A single node that became the first of a cluster."""
    world = World()
    write(world, incarnation="ab" * 16, contested=False, released=True)
    assert await claim_of(world).check()


async def test_that_of_a_node_that_may_still_run_waits_for_an_operator() -> None:
    world = World()
    write(world, incarnation="ab" * 16, contested=False, released=False)
    claim = claim_of(world)
    assert not await claim.check()
    await claim.take()
    assert claim.is_settled
    assert await claim_of(world).check()


async def test_a_node_that_takes_it_stops_both() -> None:
    world = World()
    claim = claim_of(world)
    assert await claim.check()
    write(world, incarnation="ab" * 16, contested=False, released=False)
    assert not await claim.check()
    found = json.loads(world.bucket.objects[CLAIM_KEY].data)
    assert (found["incarnation"], found["contested"]) == ("ab" * 16, True)
    assert not await claim_of(world).check()
    assert not await claim.check()


async def test_a_broker_that_has_seen_the_claim_does_not_write_it_anew() -> None:
    """Each broker mounts the bucket's disk itself: one of them may find an empty folder."""
    world, disk = World(), Disk()
    broker = claim_of(world, disk=disk)
    await broker.check()
    written = world.bucket.objects.pop(CLAIM_KEY)
    for one in (broker, claim_of(world, disk=disk)):
        assert not await one.check()
        with pytest.raises(RemoteStorageNotReadyError, match="its claim is missing"):
            one.require_bucket()
    assert CLAIM_KEY not in world.bucket.objects
    world.bucket.objects[CLAIM_KEY] = written
    assert await broker.check()
    await broker.require_bucket_now()


async def test_a_claim_that_another_broker_wrote_is_noted() -> None:
    world, disk = World(), Disk()
    await claim_of(world).check()
    await claim_of(world, disk=disk).check()
    assert await disk.has_claimed()


async def test_a_new_broker_of_a_cluster_that_has_claimed_does_not_claim_anew() -> None:
    """Its disk has no note; that of the bucket is not mounted there yet."""
    world, note = World(), ClaimNote()
    await claim_of(world, note=note).check()
    assert await note.is_noted()
    written = world.bucket.objects.pop(CLAIM_KEY)
    added = claim_of(world, note=note)
    assert not await added.check()
    with pytest.raises(RemoteStorageNotReadyError, match="its claim is missing"):
        added.require_bucket()
    assert CLAIM_KEY not in world.bucket.objects
    world.bucket.objects[CLAIM_KEY] = written
    assert await added.check()


async def test_while_the_note_cannot_be_read_nothing_is_claimed() -> None:
    world, note = World(), ClaimNote()
    note.failure = RemoteStorageError("the store is away")
    broker = claim_of(world, note=note)
    with pytest.raises(RemoteStorageError, match="away"):
        await broker.check()
    assert CLAIM_KEY not in world.bucket.objects
    note.failure = None
    assert await broker.check()


async def test_a_note_that_was_refused_is_written_with_the_next_check() -> None:
    world, note = World(), ClaimNote()
    await claim_of(world).check()
    note.failure = RemoteStorageError("the store is away")
    broker = claim_of(world, note=note)
    assert await broker.check()
    note.failure = None
    assert await broker.check()
    assert await note.is_noted()


async def test_a_disk_that_refuses_the_note_costs_the_note() -> None:
    """A broker goes on with its other log directories."""

    class Refusing(Disk):
        async def save(self, incarnations: list[str]) -> None:
            raise RemoteStorageError("the directory is offline")

    broker = claim_of(World(), disk=Refusing())
    assert await broker.check()
    await broker.require()
