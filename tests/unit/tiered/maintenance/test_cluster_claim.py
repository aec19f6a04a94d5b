"""A bucket is a cluster's, whichever of its brokers asks."""

import json
from typing import Any

import pytest

from tests.fakes.environment import FakeEnvironment
from tests.unit.tiered.tasks.task_world import World
from tiered.errors import RemoteStorageNotReadyError
from tiered.maintenance.bucket_ownership import CLAIM_KEY, ClaimState
from tiered.maintenance.cluster_claim import ClusterClaim, ClusterIncarnation


def claim_of(world: World, cluster_id: str = "cluster") -> ClusterClaim:
    return ClusterClaim(
        tier=world.tier,
        environment=FakeEnvironment(clock=world.clock),
        cluster_id=cluster_id,
        settings=lambda: world.settings,
        memory=ClusterIncarnation(),
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
