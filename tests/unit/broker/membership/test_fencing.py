"""A lease is ended by what two brokers say, and by nothing that one says alone."""

import asyncio
from uuid import UUID

import pytest

from broker.controller.images.broker_records import (
    BrokerRegistration,
    broker_key,
    encode_fence,
    encode_live,
    encode_registration,
    encode_suspicion,
    fence_key,
    live_key,
    suspicion_key,
)
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.store.metadata_store import LeaseNotFoundError, Put
from broker.membership.fencing import AGAIN_MS, OBJECT_AGAIN_MS, OBJECTION_MS, Fencing
from tests.fakes.broker.metadata_store import Fault, MemoryStore
from tests.fakes.timer import ManualTimer


class World:
    """Brokers that live in a store, and the fencing of broker 1."""

    def __init__(self) -> None:
        self.timer = ManualTimer()
        self.store = MemoryStore(self.timer)
        self.leases: dict[int, int] = {}
        self.epochs: dict[int, int] = {}
        self.fencing = self.of(1)

    def of(self, node_id: int) -> Fencing:
        return Fencing(
            self.store,
            node_id,
            clock=self.timer.clock,
            timer=self.timer,
            lease=lambda: self.leases.get(node_id, 0),
        )

    async def add(self, *node_ids: int, fenced: bool = False) -> None:
        for node_id in node_ids:
            life = UUID(int=node_id)
            lease = self.leases[node_id] = await self.store.grant_lease(60_000)
            registration = encode_registration(BrokerRegistration(life, {}))
            result = await self.store.txn(
                then=[
                    Put(broker_key(node_id), registration),
                    Put(live_key(node_id), encode_live(life), lease),
                ]
            )
            self.epochs[node_id] = result.revision
            let_in = 0 if fenced else result.revision
            await self.store.txn(then=[Put(fence_key(node_id), encode_fence(let_in))])

    async def say(self, by: int, node_id: int, epoch: int | None = None) -> None:
        value = encode_suspicion(self.epochs[node_id] if epoch is None else epoch)
        await self.store.txn(then=[Put(suspicion_key(node_id, by), value, self.leases[by])])

    async def image(self) -> ClusterImage:
        content = await self.store.range("")
        return ClusterImage.loaded(content.items, content.revision)

    async def lives(self, node_id: int, fencing: Fencing | None = None) -> bool:
        """After this broker has looked at what is said."""
        fencing = fencing or self.fencing
        fencing.image_changed(await self.image())
        await fencing.aclose()
        return await self.store.get(live_key(node_id)) is not None

    async def suspicions(self) -> list[str]:
        return [item.key for item in (await self.store.range("suspects/")).items]


async def test_two_that_say_it_end_the_lease_and_what_was_said() -> None:
    world = World()
    await world.add(1, 2, 3)
    world.fencing.suspect(3, world.epochs[3])
    await world.fencing.aclose()
    assert await world.lives(3)
    await world.say(2, 3)
    assert not await world.lives(3)
    assert await world.suspicions() == []
    with pytest.raises(LeaseNotFoundError):
        await world.store.keep_lease_alive(world.leases[3])
    assert (world.fencing.suspicions, world.fencing.revocations) == (1, 1)
    image = await world.image()
    assert (image.brokers[3].is_live, image.brokers[3].is_fenced) == (False, False)


async def test_one_alone_is_enough_where_there_is_no_other() -> None:
    world = World()
    await world.add(1, 2)
    await world.say(1, 2)
    assert not await world.lives(2)


async def test_a_fenced_broker_is_none_of_the_others() -> None:
    """Neither its word counts, nor is it waited for."""
    world = World()
    await world.add(1, 2)
    await world.add(3, fenced=True)
    await world.say(3, 2)
    assert await world.lives(2)
    await world.say(1, 2)
    assert not await world.lives(2)


async def test_one_that_is_fenced_itself_ends_nothing() -> None:
    world = World()
    await world.add(1, fenced=True)
    await world.add(2, 3, 4)
    await world.say(3, 2)
    await world.say(4, 2)
    assert await world.lives(2)
    assert not await world.lives(2, world.of(3))


async def test_what_is_said_of_an_earlier_life_is_nothing_to_this_one() -> None:
    world = World()
    await world.add(1, 2, 3)
    for by in (1, 2):
        await world.say(by, 3, world.epochs[3] - 1)
    assert await world.lives(3)


async def test_a_broker_that_came_back_is_not_ended_by_what_was_said_before() -> None:
    """What was said went with its live key."""
    world = World()
    await world.add(1, 2, 3)
    for by in (1, 2):
        await world.say(by, 3)
    stale = await world.image()
    assert not await world.lives(3)
    lease = await world.store.grant_lease(60_000)
    await world.store.txn(then=[Put(live_key(3), encode_live(UUID(int=3)), lease)])
    assert await world.lives(3)
    # Another broker, whose image is behind, sees enough of them still.
    other = world.of(2)
    other.image_changed(stale)
    await other.aclose()
    assert await world.store.get(live_key(3)) is not None
    assert other.revocations == 0


async def test_one_life_of_a_broker_is_suspected_at_most_every_thirty_seconds() -> None:
    """The next one may die at once: it was fenced by nobody's mistake."""
    world = World()
    await world.add(1, 2, 3)
    for after_ms in (0, AGAIN_MS - 1, 1):
        world.timer.clock.advance(after_ms)
        world.fencing.suspect(3, world.epochs[3])
        await world.fencing.aclose()
    assert world.fencing.suspicions == 2
    world.fencing.suspect(3, world.epochs[3] + 1)
    await world.fencing.aclose()
    assert world.fencing.suspicions == 3


async def test_who_is_reached_again_is_suspected_no_more() -> None:
    world = World()
    await world.add(1, 2, 3)
    world.fencing.suspect(3, world.epochs[3])
    await world.fencing.aclose()
    assert await world.suspicions() == ["suspects/3/1"]
    world.fencing.withdraw(3, world.epochs[3])
    await world.fencing.aclose()
    assert await world.suspicions() == []


async def test_who_has_no_lease_suspects_nobody() -> None:
    """It is cut off itself, or was fenced."""
    world = World()
    await world.add(2, 3)
    world.fencing.suspect(3, world.epochs[3])
    await world.fencing.aclose()
    assert await world.suspicions() == []


async def test_nothing_is_said_of_one_that_has_stopped() -> None:
    """It has revoked its lease before its process ended: there is nothing to be ended."""
    world = World()
    await world.add(1, 2, 3)
    await world.store.revoke_lease(world.leases[3])
    await look(world)
    world.fencing.suspect(3, world.epochs[3])
    world.fencing.withdraw(3, world.epochs[3])
    await world.fencing.aclose()
    assert (world.fencing.suspicions, await world.suspicions()) == (0, [])
    # A later life of it is another matter.
    await world.add(3)
    await look(world)
    world.fencing.suspect(3, world.epochs[3])
    await world.fencing.aclose()
    assert await world.suspicions() == ["suspects/3/1"]


async def test_what_one_says_ends_with_its_lease() -> None:
    world = World()
    await world.add(1, 2, 3)
    await world.say(2, 3)
    await world.store.revoke_lease(world.leases[2])
    assert await world.suspicions() == []


async def test_a_store_that_refuses_leaves_the_lease_to_end_by_itself() -> None:
    world = World()
    await world.add(1, 2)
    await world.say(1, 2)
    world.store.faults = [Fault.REFUSED]
    assert await world.lives(2)
    assert not await world.lives(2)
    world.store.faults = [Fault.REFUSED]
    world.fencing.withdraw(2, 1)
    await world.fencing.aclose()


async def look(world: World, fencing: Fencing | None = None) -> None:
    """Have a broker see how the store is now; what follows from it is done."""
    fencing = fencing or world.fencing
    fencing.image_changed(await world.image())
    await settle()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def live(world: World) -> set[int]:
    return {node for node, broker in (await world.image()).brokers.items() if broker.is_live}


async def test_one_that_suspects_all_others_ends_their_leases_when_none_objects() -> None:
    """Two of three were killed in one moment; who is dead writes nothing."""
    world = World()
    await world.add(1, 2, 3)
    await world.say(1, 2)
    await look(world)
    world.timer.advance(OBJECTION_MS)
    await settle()
    assert await live(world) == {1, 2, 3}
    await world.say(1, 3)
    await look(world)
    world.timer.advance(OBJECTION_MS - 1)
    await settle()
    assert await live(world) == {1, 2, 3}
    world.timer.advance(1)
    await settle()
    assert await live(world) == {1}
    assert await world.suspicions() == []
    assert world.fencing.revocations == 2


@pytest.mark.parametrize("who", [2, 3])
async def test_who_lives_objects_and_nobody_is_fenced_by_one_alone(who: int) -> None:
    """One witness whose own network refuses everything: one voice from there is enough."""
    world = World()
    await world.add(1, 2, 3)
    await world.say(1, 2)
    await world.say(1, 3)
    await look(world)
    other = world.of(who)
    await look(world, other)
    assert other.objections == 1
    await look(world)
    world.timer.advance(10 * OBJECTION_MS)
    await settle()
    assert await live(world) == {1, 2, 3}
    # It is reached again: the objection is withdrawn, or it would hide its death.
    for node in (2, 3):
        world.fencing.withdraw(node, world.epochs[node])
    await settle()
    await look(world, other)
    assert await world.suspicions() == []


async def test_an_objection_that_the_store_does_not_take_is_put_again() -> None:
    """No other image may come that would bring this broker to it."""
    world = World()
    await world.add(1, 2, 3)
    await world.say(1, 2)
    await world.say(1, 3)
    world.store.faults = [Fault.REFUSED, Fault.LOST_REQUEST]
    other = world.of(2)
    await look(world, other)
    assert suspicion_key(2, 2) not in await world.suspicions()
    for _ in range(2):
        world.timer.advance(OBJECT_AGAIN_MS)
        await settle()
    assert suspicion_key(2, 2) in await world.suspicions()
    assert other.objections == 1


async def test_an_objection_that_has_not_been_seen_is_compared() -> None:
    """The image of the one that is alone is behind."""
    world = World()
    await world.add(1, 2, 3)
    await world.say(1, 2)
    await world.say(1, 3)
    await look(world)
    await look(world, world.of(2))
    world.timer.advance(OBJECTION_MS)
    await settle()
    assert await live(world) == {1, 2}


async def test_two_that_say_it_are_enough_whatever_it_says_itself() -> None:
    """A process that lives, and that none of the others can reach."""
    world = World()
    await world.add(1, 2, 3)
    await world.say(1, 3)
    await look(world, world.of(3))
    await world.say(2, 3)
    assert not await world.lives(3)


async def test_what_was_interrupted_is_waited_for_anew() -> None:
    world = World()
    await world.add(1, 2, 3)
    await world.say(1, 2)
    await world.say(1, 3)
    await look(world)
    world.timer.advance(OBJECTION_MS - 1)
    world.fencing.withdraw(3, world.epochs[3])
    await settle()
    await look(world)
    await world.say(1, 3)
    await look(world)
    world.timer.advance(OBJECTION_MS - 1)
    await settle()
    assert await live(world) == {1, 2, 3}
    await world.fencing.aclose()
    world.timer.advance(OBJECTION_MS)
    await settle()
    assert await live(world) == {1, 2, 3}
