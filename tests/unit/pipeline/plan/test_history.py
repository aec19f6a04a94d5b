"""A history object is read, or what is wrong with it is told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.plan.history import continues, read_history, read_summary
from protocol.records.batch import crc32c
from tests.fakes.tiered.memory_object_store import Fault, StoredObject
from tests.unit.pipeline.plan.bucket_world import NAME, PARTITION, BucketWorld
from tiered.errors import StoreDeniedError
from tiered.format.object_keys import ObjectKeys

KEY = ObjectKeys().history_key(PARTITION)


async def with_history() -> BucketWorld:
    world = BucketWorld()
    leader = world.replica("a")
    leader.write(3)
    leader.roll()
    world.write_history(leader, await world.copy(leader))
    return world


async def test_it_is_read_whole_or_without_its_segments() -> None:
    world = await with_history()
    history, damaged = await read_history(world.bucket, NAME)
    assert history is not None
    assert len(history.segments) == 1
    assert damaged is None
    assert await read_summary(world.bucket, NAME) == (history.summary, None)


async def test_none_is_no_damage() -> None:
    world = await with_history()
    other = NAME._replace(partition=1)
    assert await read_history(world.bucket, other) == (None, None)
    assert await read_summary(world.bucket, other) == (None, None)


async def test_a_byte_that_the_network_flipped_is_fetched_again() -> None:
    world = await with_history()
    world.store.fail("get", Fault.WRONG_BYTES)
    assert (await read_history(world.bucket, NAME)).damaged is None
    world.store.fail("get", Fault.WRONG_BYTES)
    assert (await read_summary(world.bucket, NAME)).damaged is None


async def test_damage_is_named_and_denial_is_no_damage() -> None:
    world = await with_history()
    for read in (read_history, read_summary):
        world.store.fail("get", Fault.WRONG_BYTES, times=2)
        found, damaged = await read(world.bucket, NAME)
        assert found is None
        assert damaged is not None
        assert (damaged.key, damaged.start_offset) == (KEY, -1)
        assert "CRC" in damaged.problem
        world.store.fail("get", Fault.DENIED)
        with pytest.raises(StoreDeniedError):
            await read(world.bucket, NAME)


async def test_one_that_belongs_to_another_partition_is_damaged() -> None:
    """Copied by hand, perhaps."""
    world = await with_history()
    world.store.objects[KEY.replace("/0/", "/1/")] = StoredObject(world.store.objects[KEY].data, 0)
    for read in (read_history, read_summary):
        _, damaged = await read(world.bucket, NAME._replace(partition=1))
        assert damaged is not None
        assert damaged.problem.startswith("the history is of t-0 ")


@pytest.mark.parametrize(
    ("earlier", "earlier_end", "later", "later_end", "expected"),
    [
        ([(0, 0)], 10, [(0, 0)], 10, True),
        ([(0, 0)], 10, [(0, 0), (2, 10)], 30, True),
        ([(0, 0)], 10, [(0, 0), (2, 9)], 30, False),
        ([(0, 0)], 10, [(0, 0)], 9, False),
        ([(0, 0), (2, 5)], 10, [(2, 7)], 30, True),
        ([(0, 0), (2, 5)], 10, [(1, 7)], 30, False),
        ([(0, 0), (2, 5)], 10, [(3, 12)], 30, True),
        ([(0, 0), (2, 5)], 10, [(2, 12)], 30, True),
        ([(4, 0)], 6, [(0, 12), (3, 20)], 30, False),
        ([(0, 5)], 10, [(0, 0)], 30, True),
        ([(0, 0), (1, 5), (2, 5)], 10, [(0, 0), (2, 5)], 30, True),
        ([], 10, [(0, 0)], 30, True),
        ([(0, 0)], 10, [], 30, False),
    ],
)
def test_a_log_continues_another_that_has_its_epochs(
    earlier: list[tuple[int, int]],
    earlier_end: int,
    later: list[tuple[int, int]],
    later_end: int,
    expected: bool,
) -> None:
    assert continues(earlier, earlier_end, later, later_end) is expected


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=5, unique=True).map(sorted),
    st.integers(1, 40),
    st.integers(0, 20),
    st.integers(0, 20),
)
def test_every_log_continues_its_own_beginning(
    starts: list[int], length: int, cut: int, deleted: int
) -> None:
    epochs = [*enumerate(starts)]
    end = starts[-1] + length
    earlier_end = max(end - cut, starts[0] + 1)
    earlier = [entry for entry in epochs if entry[1] < earlier_end]
    begun = [epoch for epoch, at in epochs if at <= deleted]
    later = [(epoch, at) for epoch, at in epochs if at > deleted]
    if begun:
        later.insert(0, (begun[-1], deleted))
    assert continues(earlier, earlier_end, later or epochs, end)


async def test_a_newer_version_is_told_from_damage() -> None:
    """Whoever reads it needs a newer program, not another disk."""
    world = await with_history()
    data = bytearray(world.store.objects[KEY].data)
    data[4:6] = (2).to_bytes(2, "big")
    data[-4:] = crc32c(bytes(data[:-4])).to_bytes(4, "big")
    world.store.objects[KEY] = StoredObject(bytes(data), 0)
    for read in (read_history, read_summary):
        found, damaged = await read(world.bucket, NAME)
        assert found is None
        assert damaged is not None
        assert (damaged.key, "has version 2" in damaged.problem) == (KEY, True)
