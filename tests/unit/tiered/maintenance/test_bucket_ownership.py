"""A bucket has one owner, and only the owner collects garbage in it."""

import asyncio

import pytest

from storage.environment.alerts import AlertKind
from storage.environment.randomness import SeededRandomness
from tests.fakes.environment import FakeEnvironment
from tests.unit.tiered.tasks.task_world import World
from tiered.errors import (
    RemoteStorageError,
    RemoteStorageNotReadyError,
    StoreUnavailableError,
)
from tiered.maintenance.bucket_ownership import (
    CHECKS_TO_NOTICE,
    CLAIM_KEY,
    UNREADABLE,
    Claim,
    ClaimState,
    decode_claim,
)


async def test_an_empty_bucket_is_claimed_once() -> None:
    world = World()
    claim = world.manager.claim
    assert (claim.owner, claim.is_ours) == (None, False)
    assert await claim.check()
    first = world.bucket.objects[CLAIM_KEY].data
    world.clock.advance(1000)
    assert await claim.check()
    assert world.bucket.objects[CLAIM_KEY].data == first
    assert decode_claim(first) == "cluster"


async def test_somebody_elses_stays_theirs() -> None:
    world = World()
    world.bucket.put(CLAIM_KEY, b'{"version": 1, "clusterId": "other"}')
    assert not await world.manager.claim.check()
    assert world.manager.claim.owner == "other"


async def test_of_two_who_claim_at_once_the_one_that_is_read_back_has_it() -> None:
    world = World()

    async def overtaken(point: str) -> None:
        if point == "get_object" and CLAIM_KEY in world.bucket.objects:
            world.bucket.put(CLAIM_KEY, b'{"clusterId": "other"}')

    world.reach = overtaken
    assert not await world.manager.claim.check()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"clusterId": 7}', b"\xff"])
def test_what_cannot_be_read_is_not_ours(data: bytes) -> None:
    assert decode_claim(data) == UNREADABLE


async def test_without_an_answer_nothing_is_known() -> None:
    world = World()
    world.tier.fail("get_object", StoreUnavailableError("down"))
    with pytest.raises(StoreUnavailableError):
        await world.manager.claim.check()
    assert not world.manager.claim.is_ours


class Memory:
    """The disk of a node."""

    def __init__(self, *incarnations: str) -> None:
        self.incarnations = list(incarnations)

    async def load(self) -> list[str]:
        return list(self.incarnations)

    async def save(self, incarnations: list[str]) -> None:
        self.incarnations = [one for one in incarnations if one]

    async def has_claimed(self) -> bool:
        return bool(self.incarnations)


def node(world: World, memory: Memory, seed: int) -> Claim:
    return Claim(
        tier=world.tier,
        environment=FakeEnvironment(timer=world.timer, randomness=SeededRandomness(seed)),
        cluster_id="cluster",
        settings=lambda: world.settings,
        memory=memory,
        alerts=world.alerts,
    )


async def test_a_claim_without_incarnation_is_taken_at_once() -> None:
    """An earlier release wrote it, or a restore."""
    world = World()
    world.bucket.put(CLAIM_KEY, b'{"version": 1, "clusterId": "cluster"}')
    claim = node(world, Memory(), 1)
    assert await claim.check()
    assert claim.state is ClaimState.OURS
    await claim.require()


async def test_a_crash_makes_the_next_start_wait_and_an_orderly_stop_does_not() -> None:
    world, memory = World(), Memory()
    await node(world, memory, 1).check()
    second = node(world, memory, 2)
    await second.check()
    assert second.state is ClaimState.TAKEN
    with pytest.raises(RemoteStorageNotReadyError):
        await second.require()
    world.clock.advance(CHECKS_TO_NOTICE * world.settings.remote_log_manager_task_interval_ms)
    await second.require()
    await second.release()
    third = node(world, memory, 3)
    await third.check()
    assert third.state is ClaimState.OURS


async def test_two_with_the_same_disk_stop_each_other_until_one_is_named() -> None:
    world, disk = World(), Memory()
    first = node(world, disk, 1)
    await first.check()
    copy = Memory(*disk.incarnations)
    second = node(world, copy, 2)
    await second.check()
    assert not await first.check()
    world.clock.advance(10_000_000)
    assert not await second.check()
    for one in (first, second):
        with pytest.raises(RemoteStorageNotReadyError):
            await one.require()
    (alert,) = world.alerts.all()
    assert alert.kind is AlertKind.TIER_NOT_OURS
    await first.take()
    await first.require()
    assert not await second.check()
    world.clock.advance(10_000)
    await first.require()
    again = node(world, copy, 3)
    assert not await again.check()
    assert again.state is ClaimState.FOREIGN


async def test_a_copy_of_a_disk_whose_node_went_on_is_foreign_at_once() -> None:
    world, disk = World(), Memory()
    await node(world, disk, 1).check()
    copy = Memory(*disk.incarnations)
    await node(world, disk, 2).check()
    late = node(world, copy, 3)
    assert not await late.check()
    assert late.state is ClaimState.FOREIGN


@pytest.mark.parametrize("point", ["before the claim", "after the claim"])
async def test_a_crash_while_it_is_taken_locks_nobody_out(point: str) -> None:
    world, disk = World(), Memory()
    await node(world, disk, 1).check()
    old = list(disk.incarnations)
    text = world.bucket.objects[CLAIM_KEY].data
    await node(world, disk, 2).check()
    disk.incarnations = [*old, *disk.incarnations]
    if point == "before the claim":
        world.bucket.put(CLAIM_KEY, text)
    assert await node(world, disk, 3).check()


@pytest.mark.parametrize("stopped_in_order", [True, False])
async def test_looks_at_once_are_one_look(stopped_in_order: bool) -> None:
    """A removal and the collector both look when a broker starts: neither is another broker."""
    world, memory = World(), Memory()
    before = node(world, memory, 1)
    assert await before.check()
    if stopped_in_order:
        await before.release()

    async def in_turns(_: str) -> None:
        await asyncio.sleep(0)

    world.reach = in_turns
    after = node(world, memory, 2)
    assert await asyncio.gather(*(after.check() for _ in range(3))) == [True] * 3
    assert after.state is (ClaimState.OURS if stopped_in_order else ClaimState.TAKEN)
    await asyncio.gather(after.take(), after.check(), after.check())
    assert after.state is ClaimState.OURS
    assert after.is_settled


@pytest.mark.parametrize("is_new_process", [False, True])
async def test_a_claim_that_is_gone_is_not_written_anew(is_new_process: bool) -> None:
    """An empty folder is where the bucket's disk was mounted; later it is there again."""
    world, memory = World(), Memory()
    claim = node(world, memory, 1)
    await claim.check()
    written = world.bucket.objects.pop(CLAIM_KEY)
    if is_new_process:
        claim = node(world, memory, 2)
    found_again: list[bool] = []
    claim.on_found_again = lambda: found_again.append(True)
    assert not await claim.check()
    assert CLAIM_KEY not in world.bucket.objects
    assert not claim.is_settled
    assert not claim.is_removing
    (alert,) = world.alerts.all()
    assert alert.kind is AlertKind.TIER_CLAIM_MISSING
    for refused in (claim.require, claim.require_ours, claim.require_bucket_now):
        with pytest.raises(RemoteStorageNotReadyError, match="its claim is missing"):
            await refused()
    with pytest.raises(RemoteStorageNotReadyError, match="its claim is missing"):
        claim.require_bucket()
    world.bucket.objects[CLAIM_KEY] = written
    assert found_again == []
    assert await claim.check()
    assert await claim.check()
    assert found_again == [True]
    assert claim.is_removing
    await claim.require_bucket_now()
    assert world.alerts.all() == []


@pytest.mark.parametrize("is_new_process", [False, True])
@pytest.mark.parametrize(
    ("theirs", "why", "says"),
    [
        (b'{"clusterId": "other"}', "another cluster owns it", "claimed by cluster other"),
        (b"<html>moved</html>", "its claim is unreadable", "cannot be read as a claim"),
    ],
)
async def test_nothing_is_copied_to_a_bucket_that_is_another_clusters_now(
    is_new_process: bool, theirs: bytes, why: str, says: str
) -> None:
    """The settings name a wrong one: what is copied there would leave the local disk."""
    world, memory = World(), Memory()
    claim = node(world, memory, 1)
    await claim.check()
    ours = world.bucket.objects.pop(CLAIM_KEY)
    world.bucket.put(CLAIM_KEY, theirs)
    if is_new_process:
        claim = node(world, memory, 2)
        assert not await claim.check()
    else:
        with pytest.raises(RemoteStorageNotReadyError, match=why):
            await claim.require_bucket_now()
    with pytest.raises(RemoteStorageNotReadyError, match=why):
        claim.require_bucket()
    assert not claim.is_removing
    (alert,) = world.alerts.all()
    assert alert.kind is AlertKind.TIER_CLAIM_MISSING
    assert says in alert.text
    assert world.bucket.objects[CLAIM_KEY].data == theirs
    world.bucket.objects[CLAIM_KEY] = ours
    assert await claim.check()
    claim.require_bucket()
    assert world.alerts.all() == []


async def test_who_never_had_a_claim_copies_beside_another_cluster() -> None:
    """Names of objects are unique; only nothing is removed."""
    world = World()
    world.bucket.put(CLAIM_KEY, b'{"clusterId": "other"}')
    claim = node(world, Memory(), 1)
    assert not await claim.check()
    claim.require_bucket()
    await claim.require_bucket_now()
    assert world.alerts.all() == []


async def test_a_lost_bucket_is_begun_anew_by_an_operator() -> None:
    world, memory = World(), Memory()
    claim = node(world, memory, 1)
    await claim.check()
    del world.bucket.objects[CLAIM_KEY]
    await claim.check()
    await claim.take()
    assert claim.state is ClaimState.OURS
    assert world.alerts.all() == []
    await claim.require_bucket_now()
    assert decode_claim(world.bucket.objects[CLAIM_KEY].data) == "cluster"


@pytest.mark.parametrize("is_new_process", [False, True])
@pytest.mark.parametrize("damaged", [b"", b'{"version": 1, "clus'])
async def test_a_damaged_claim_is_written_anew_by_an_operator(
    is_new_process: bool, damaged: bytes
) -> None:
    """No other command helps, and the bucket is the one that this broker has claimed."""
    world, memory = World(), Memory()
    claim = node(world, memory, 1)
    await claim.check()
    world.bucket.put(CLAIM_KEY, damaged)
    if is_new_process:
        claim = node(world, memory, 2)
    assert not await claim.check()
    (alert,) = world.alerts.all()
    assert "`varve tier claim`" in alert.text
    await claim.take()
    assert claim.state is ClaimState.OURS
    assert world.alerts.all() == []
    await claim.require_bucket_now()
    assert decode_claim(world.bucket.objects[CLAIM_KEY].data) == "cluster"


async def test_a_damaged_claim_is_left_alone_where_this_cluster_had_none() -> None:
    """It may be that of another cluster, whose bucket the settings name by mistake."""
    world = World()
    world.bucket.put(CLAIM_KEY, b"{")
    claim = node(world, Memory(), 1)
    assert not await claim.check()
    with pytest.raises(RemoteStorageNotReadyError, match="remove that object"):
        await claim.take()
    assert world.bucket.objects[CLAIM_KEY].data == b"{"


async def test_a_claim_that_went_since_the_last_check_is_missed() -> None:
    """What was copied in between is not looked for there later."""
    world = World()
    claim = node(world, Memory(), 1)
    await claim.check()
    await claim.require_bucket_now()
    del world.bucket.objects[CLAIM_KEY]
    claim.require_bucket()
    with pytest.raises(RemoteStorageNotReadyError, match="its claim is missing"):
        await claim.require_bucket_now()
    assert claim.is_missing
    assert [alert.kind for alert in world.alerts.all()] == [AlertKind.TIER_CLAIM_MISSING]


async def test_a_disk_that_refuses_the_incarnation_stops_no_copies() -> None:
    class Refusing(Memory):
        async def save(self, incarnations: list[str]) -> None:
            raise RemoteStorageError("the directory is offline")

    world = World()
    claim = node(world, Refusing("before"), 1)
    world.bucket.put(CLAIM_KEY, b'{"clusterId": "cluster", "incarnation": "before"}')
    with pytest.raises(RemoteStorageError):
        await claim.check()
    claim.require_bucket()
    await claim.require_bucket_now()
