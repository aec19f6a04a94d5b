"""A member that loses its lease is back with the same epoch; one that was replaced is not."""

import asyncio
from collections.abc import AsyncIterator, Collection
from uuid import UUID

import pytest

from broker.controller.image_feed import ImageFeed
from broker.controller.images.broker_records import (
    BrokerEndpoint,
    BrokerRegistration,
    LastRun,
    broker_key,
    encode_fence,
    fence_key,
    live_key,
)
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.store.metadata_store import Delete, KeyValue, Put
from broker.membership.keeper_homes import LoopHome
from broker.membership.leased_membership import LeasedMembership, Session
from broker.membership.member_notes import MemberNotes
from storage.checkpoints.member_note import MemberNote, read_member_note
from tests.fakes.broker.metadata_store import Fault, MemoryStore
from tests.fakes.environment import FakeEnvironment

ENDPOINTS = {"PLAINTEXT": BrokerEndpoint("here", 9092)}
SESSION = Session(session_ms=3_000, heartbeat_ms=500, stall_max_ms=4_000)


class World:
    """A member, its store, the images it sees."""

    def __init__(self) -> None:
        self.environment = FakeEnvironment()
        self.timer = self.environment.timer
        self.store = MemoryStore(self.timer)
        self.environment.filesystem.mkdir("/d")
        self.failed: list[str] = []
        self.syncs = 0
        self.disk_takes_syncs = True
        self.feed = ImageFeed(self.store, ClusterImage.empty().at(self.store.revision))
        self.member = self.life(1)
        self.feed.subscribe_now(lambda _, image: self.member.image_changed(image))
        self.following = asyncio.ensure_future(self.feed.follow())

    def life(
        self, number: int, ended: LastRun = LastRun.UNKNOWN, past: Collection[int] = ()
    ) -> LeasedMembership:
        return LeasedMembership(
            self.store,
            1,
            BrokerRegistration(UUID(int=number), {}, directories=(UUID(int=10),), ended=ended),
            SESSION,
            environment=self.environment,
            home=LoopHome(self.store, self.timer),
            notes=MemberNotes(self.environment, lambda: ["/d"], past),
            fail=self.failed.append,
        )

    @property
    def is_valid(self) -> bool:
        return self.environment.clock.monotonic_ms() <= self.member.validity.until_ms

    async def join(self) -> int:
        self.member.advertise(ENDPOINTS)
        await self.member.join(self.sync_logs)
        return self.member.broker_epoch

    async def sync_logs(self) -> bool:
        self.syncs += 1
        return self.disk_takes_syncs

    async def pass_ms(self, duration_ms: float) -> None:
        """Let everybody act every 50 ms."""
        for _ in range(int(duration_ms / 50)):
            await self.turns()
            self.timer.advance(50)
        await self.turns()

    async def turns(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    async def live(self) -> KeyValue:
        item = await self.store.get(live_key(1))
        assert item is not None
        return item


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    await world.member.halt()
    await world.feed.aclose()
    await world.following


async def test_a_member_is_let_in_by_the_controller_for_this_life_alone(world: World) -> None:
    epoch = await world.join()
    await world.turns()
    assert not world.member.is_let_in(world.feed.image)
    await world.store.txn(then=[Put(fence_key(1), encode_fence(epoch - 1))])
    await world.turns()
    assert not world.member.is_let_in(world.feed.image)
    await world.store.txn(then=[Put(fence_key(1), encode_fence(epoch))])
    await world.turns()
    assert world.member.is_let_in(world.feed.image)
    assert world.feed.image.brokers[1].listeners == ENDPOINTS


async def test_missing_logs_make_the_end_before_unknown(world: World) -> None:
    """However it ended: this life has not what that had. Later it is no news."""
    world.member = world.life(2, LastRun.CLEAN)
    world.member.logs_lost()
    await world.join()
    assert world.member.registration.ended is LastRun.UNKNOWN


async def test_its_lease_is_kept(world: World) -> None:
    await world.join()
    before = await world.live()
    for _ in range(20):
        await world.pass_ms(1_000)
        assert world.is_valid
    assert await world.live() == before


async def test_a_lease_that_ends_early_costs_a_moment_and_no_epoch(world: World) -> None:
    epoch = await world.join()
    before = await world.live()
    await world.store.revoke_lease(before.lease)
    await world.turns()
    after = await world.live()
    assert (world.member.broker_epoch, world.member.losses) == (epoch, 1)
    assert after.lease != before.lease
    assert after.value == before.value
    assert world.is_valid
    # The old key's deletion is news no more.
    await world.pass_ms(10_000)
    assert (await world.live(), world.member.losses) == (after, 1)


async def test_a_store_that_refuses_a_broker_without_a_lease_counts_as_away(world: World) -> None:
    """As one that no longer takes its password: no renewal is sent that could fail."""
    await world.join()
    await world.turns()
    lease = (await world.live()).lease
    assert world.member.store_away_ms == 0
    world.store.faults = [None, *[Fault.REFUSED] * 30]
    await world.store.revoke_lease(lease)
    await world.pass_ms(1_000)
    assert world.member.store_away_ms == 0
    await world.pass_ms(2_000)
    assert world.member.store_away_ms == 3_000
    assert world.member.hindrance
    world.store.faults = []
    await world.pass_ms(500)
    assert (world.member.store_away_ms, world.member.hindrance) == (0, "")


async def test_who_is_back_is_valid_once_its_image_shows_it(world: World) -> None:
    """Its image may be from before its absence, in which another broker has led its partitions."""
    await world.join()
    await world.turns()
    await world.feed.aclose()
    await world.following
    await world.store.revoke_lease((await world.live()).lease)
    await world.pass_ms(1_000)
    again = await world.store.get(live_key(1))
    assert again is not None, "it has put its key again"
    assert not world.is_valid
    assert world.member.lease == 0
    # A feed that does not go on for so long: another lease, and the same again.
    await world.pass_ms(2_000)
    assert (await world.live()).lease != again.lease
    assert not world.is_valid
    image = world.feed.image.at((await world.live()).mod_revision)
    world.member.image_changed(image)
    await world.turns()
    assert world.is_valid


async def test_while_the_store_is_away_the_validity_passes_and_comes_back(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """With a transaction that finds the registration, not by a renewal alone; the log says why."""
    epoch = await world.join()
    lease = (await world.live()).lease
    await world.store.revoke_lease(lease)
    world.store.faults = [Fault.REFUSED] * 20
    await world.turns()
    assert not world.is_valid
    await world.pass_ms(2_000)
    assert not world.is_valid
    assert world.member.hindrance, "`/readyz` says what it waits for"
    await world.pass_ms(3_000)
    assert world.is_valid
    assert not world.member.hindrance
    assert world.member.broker_epoch == epoch
    assert caplog.text.count("broker not back yet") == 1


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("answered", [0, 1])
async def test_a_store_that_does_not_answer_delays_the_registration(
    world: World, fault: Fault, answered: int
) -> None:
    """By the grant of a lease and by the transaction; one registration comes of it, and is kept."""
    world.store.faults = [*[None] * answered, *[fault] * 3]
    joining = asyncio.ensure_future(world.join())
    await world.pass_ms(2_000)
    epoch = await joining
    assert len(world.store.faults) < 3
    assert world.failed == []
    registered = await world.store.get(broker_key(1))
    assert registered is not None
    assert registered.mod_revision == epoch
    await world.pass_ms(10_000)
    assert world.is_valid
    assert world.member.losses == 0


async def test_a_lease_that_ends_before_the_registration_is_replaced(world: World) -> None:
    world.store.faults = [None, *[Fault.REFUSED] * 30]
    joining = asyncio.ensure_future(world.join())
    await world.pass_ms(1_000)
    assert world.member.hindrance
    await world.pass_ms(19_000)
    await joining
    assert not world.member.hindrance
    assert world.is_valid
    assert await world.live()


async def test_a_process_that_was_paused_is_not_valid_before_it_is_back(world: World) -> None:
    """The first comparison after a pause says so, whatever has not run yet."""
    epoch = await world.join()
    world.environment.clock.advance(60_000)
    assert not world.is_valid
    await world.pass_ms(1_000)
    assert world.is_valid
    assert world.member.broker_epoch == epoch


async def test_one_that_was_replaced_ends(world: World) -> None:
    """Another process on its directories has registered: nobody leads twice in one epoch."""
    epoch = await world.join()
    other = world.life(2, past=(epoch,))
    await other.join(world.sync_logs)
    await world.turns()
    assert world.failed == ["another process has registered as broker 1"]
    assert not world.is_valid
    await world.pass_ms(5_000)
    assert world.failed == ["another process has registered as broker 1"]
    await other.leave()


async def test_one_whose_registration_was_removed_ends(world: World) -> None:
    await world.join()
    await world.store.txn(then=[Delete(broker_key(1))])
    await world.turns()
    assert world.failed == ["another process has registered as broker 1"]


async def test_leaving_ends_the_lease_at_once(world: World) -> None:
    await world.join()
    await world.member.leave()
    assert await world.store.get(live_key(1)) is None
    assert not world.is_valid
    assert world.failed == []
    await world.member.leave()


async def test_a_process_that_dies_leaves_its_lease_to_end_by_itself(world: World) -> None:
    await world.join()
    await world.member.halt()
    await world.pass_ms(2_500)
    await world.live()
    await world.pass_ms(1_000)
    assert await world.store.get(live_key(1)) is None


async def test_what_is_advertised_later_is_for_the_next_life(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    epoch = await world.join()
    world.member.advertise(ENDPOINTS)
    assert not caplog.records
    world.member.advertise({"PLAINTEXT": BrokerEndpoint("there", 1)})
    assert "after the next start only" in caplog.text
    item = await world.store.get(broker_key(1))
    assert item is not None
    assert item.mod_revision == epoch


async def test_leaving_before_joining_leaves_nothing(world: World) -> None:
    await world.member.leave()
    assert await world.store.get(live_key(1)) is None


@pytest.mark.parametrize(
    ("ended", "takes_syncs", "registered", "syncs"),
    [
        (LastRun.SAME_BOOT, True, LastRun.SAME_BOOT, 1),
        (LastRun.SAME_BOOT, False, LastRun.UNKNOWN, 1),
        (LastRun.CLEAN, False, LastRun.CLEAN, 0),
        (LastRun.UNKNOWN, True, LastRun.UNKNOWN, 0),
    ],
)
async def test_a_kill_on_the_same_boot_lost_nothing_if_all_of_it_can_be_synced(
    world: World, ended: LastRun, takes_syncs: bool, registered: LastRun, syncs: int
) -> None:
    world.disk_takes_syncs = takes_syncs
    world.member = world.life(1, ended)
    await world.join()
    await world.turns()
    said = world.feed.image.brokers[1].registration
    assert said is not None
    assert (said.ended, world.syncs) == (registered, syncs)


async def test_the_next_process_finds_the_epoch_and_the_highest_revision(world: World) -> None:
    epoch = await world.join()
    note = read_member_note(world.environment.filesystem, "/d")
    assert note == MemberNote("", epoch, epoch, place="/d")
    await world.store.txn(then=[Put("producer-ids", b"x")])
    await world.store.txn(then=[Put(fence_key(1), encode_fence(epoch))])
    await world.turns()
    revision = world.feed.image.revision
    await world.member.leave()
    note = read_member_note(world.environment.filesystem, "/d")
    assert note is not None
    assert note.revision == revision > epoch


async def test_an_image_from_before_the_registration_is_no_news(world: World) -> None:
    """It comes while the note is on its way to the disk."""
    old = world.feed.image
    joining = asyncio.ensure_future(world.join())
    while not joining.done():
        world.member.image_changed(old)
        await asyncio.wait([joining], timeout=0)
    await world.turns()
    assert world.member.losses == 0
