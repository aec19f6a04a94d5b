"""A bucket has one owner, and only the owner collects garbage in it."""

import pytest

from tests.unit.tiered.tier_world import World
from tiered.claim import CLAIM_KEY, UNREADABLE, decode_claim
from tiered.errors import StoreUnavailableError


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
