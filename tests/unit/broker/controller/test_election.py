"""Election of the controller: one at a time, in order of ids, by what the image shows."""

from collections.abc import AsyncIterator

import pytest

from broker.controller.images.broker_records import encode_controller
from broker.controller.images.controller_history import (
    WRITES_KEY,
    ControllerHistory,
    newest_write,
)
from broker.controller.images.metadata_records import CONTROLLER_KEY
from broker.controller.store.metadata_store import Delete, Put
from tests.fakes.broker.control_world import ControlWorld
from tests.fakes.broker.metadata_store import Fault


@pytest.fixture
async def world() -> AsyncIterator[ControlWorld]:
    world = await ControlWorld.open(3)
    try:
        yield world
    finally:
        await world.close()


async def test_the_lowest_that_lives_is_elected(world: ControlWorld) -> None:
    """20 ms ahead of the next, so that they do not all write at once; and it stays."""
    await world.start()
    assert world.active.member.node_id == 1
    await world.members[1].end_lease()
    await world.settle(300)
    assert world.active.member.node_id == 2
    await world.members[1].register()
    await world.settle(300)
    assert world.active.member.node_id == 2


async def test_the_first_broker_of_a_cluster_is_elected_at_once(world: ControlWorld) -> None:
    """In the moment in which it has registered: nothing else can let it in."""
    await world.members[3].register()
    await world.settle(10)
    assert world.active.member.node_id == 3


async def test_the_epoch_is_the_revision_of_its_key(world: ControlWorld) -> None:
    await world.start()
    item = await world.store.get(CONTROLLER_KEY)
    assert item is not None
    assert item.create_revision == world.active.election.epoch == world.image.controller_epoch
    assert item.lease == world.members[1].lease


async def test_each_election_has_a_later_epoch(world: ControlWorld) -> None:
    await world.start()
    epochs = [world.active.election.epoch]
    for _ in range(3):
        await world.store.txn(then=[Delete(CONTROLLER_KEY)])
        await world.settle(100)
        epochs.append(world.active.election.epoch)
    assert epochs == sorted(set(epochs))


async def test_each_election_says_what_the_controllers_before_wrote_last(
    world: ControlWorld,
) -> None:
    await world.start()
    writes = []
    for _ in range(3):
        item = await world.store.get(WRITES_KEY)
        assert item is not None
        writes.append(newest_write(item.value, item.mod_revision))
        await world.store.txn(then=[Delete(CONTROLLER_KEY)])
        await world.settle(100)
        writer = f"1 {world.active.election.epoch} 9 9"
        await world.store.txn(then=[Put(WRITES_KEY, writer.encode())])
        await world.settle(100)
    history = ControllerHistory.of((await world.store.range("")).items)
    assert list(history.ended) == writes
    assert history.newest == world.image.newest_write


@pytest.mark.parametrize("fault", list(Fault))
async def test_a_failed_attempt_is_made_again(world: ControlWorld, fault: Fault) -> None:
    """Also where it is not known whether it was made."""
    for member in world.members.values():
        await member.register()
    world.store.faults = [fault]
    await world.settle(1000)
    assert world.active.election.epoch


async def test_the_key_of_an_earlier_life_is_not_ours(world: ControlWorld) -> None:
    """A broker that is back before its old lease has ended waits for that."""
    await world.start()
    first = world.nodes[1]
    old = first.election.epoch
    member = world.members[1]
    # Killed and back: another lease, while the old one and its keys live on.
    first.hold_image()
    first.election.on_deposed(old)
    member.lease = await world.store.grant_lease(60_000)
    first.release_image()
    await world.settle(300)
    assert not first.active.is_active


async def test_a_broker_whose_lease_is_open_when_it_is_named_is_elected_later(
    world: ControlWorld,
) -> None:
    """The key stays under a lease that turns out to be its own, so nobody else can be elected."""
    await world.start()
    first, member = world.nodes[1], world.members[1]
    lease, member.lease = member.lease, 0
    key = Put(CONTROLLER_KEY, encode_controller(1, member.broker_epoch), lease)
    await world.store.txn(then=[Delete(CONTROLLER_KEY)])
    await world.store.txn(then=[key])
    await world.settle(300)
    assert not first.active.is_active
    member.lease = lease
    await world.settle(300)
    assert first.active.is_active


async def test_without_a_lease_nobody_tries(world: ControlWorld) -> None:
    await world.settle(300)
    assert not any(node.active.is_active for node in world.nodes.values())


async def test_a_stopped_broker_is_not_elected_again(world: ControlWorld) -> None:
    await world.start()
    world.nodes[1].election.stop()
    await world.store.txn(then=[Delete(CONTROLLER_KEY)])
    await world.settle(300)
    assert world.active.member.node_id == 2
