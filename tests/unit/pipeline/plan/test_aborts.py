"""Aborted transactions of a range: from all segments that may tell of one, and from no more."""

import struct
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.plan import aborts
from pipeline.plan.aborts import AbortedTransactions, parse_transaction_index, read_aborts
from pipeline.plan.errors import DamagedBucketError, PlanError
from pipeline.plan.in_parallel import REQUESTS_AT_A_TIME
from pipeline.plan.piece import AbortedRange
from storage.errors import CorruptFileError
from tests.fakes.tiered.memory_object_store import Fault
from tests.unit.pipeline.plan.bucket_world import BucketWorld


async def aborted_in_the_third() -> BucketWorld:
    """A transaction of producer 7 at 10 .. 12, whose marker is at 30, two segments later."""
    world = BucketWorld()
    leader = world.replica("a")
    leader.write(10)
    leader.transaction(7, 3)
    leader.roll()
    leader.write(12)
    leader.roll()
    leader.write(5)
    leader.finish(7, commit=False)
    leader.roll()
    for _ in range(20):
        leader.transaction(8)
        leader.finish(8, commit=False)
        leader.roll()
    await world.copy(leader)
    return world


async def test_a_transaction_may_end_segments_later() -> None:
    world = await aborted_in_the_third()
    log = await world.log()
    for start, end in ((0, 11), (10, 13), (20, 21), (30, 31)):
        found = await read_aborts(world.bucket, log, start, end)
        assert found.overlapping(start, end) == [AbortedRange(7, 10, 30)]
    assert not (await read_aborts(world.bucket, log, 0, 10)).overlapping(0, 10)
    assert not await read_aborts(world.bucket, log, 5, 5)


async def test_no_more_indexes_are_read_than_can_tell_of_the_range() -> None:
    """The first entry whose last stable offset has reached the end is the last that matters."""
    world = await aborted_in_the_third()
    log = await world.log()
    world.bucket = world.open()
    world.store.log.clear()
    await read_aborts(world.bucket, log, 0, 31)
    read = [key for call, key in world.store.log if call == "get_range"]
    # So many at a time as are read together, of 21 that have an index.
    assert len(read) == REQUESTS_AT_A_TIME
    everything = await read_aborts(world.bucket, log, 0, log.end_offset)
    assert len(everything) == 21


async def test_a_damaged_index_is_named() -> None:
    world = await aborted_in_the_third()
    log = await world.log()
    world.store.fail("get_range", Fault.WRONG_BYTES, key=".indexes", times=50)
    with pytest.raises(DamagedBucketError, match=r"\.indexes at byte .*fails its CRC"):
        await read_aborts(world.bucket, log, 0, 11)


async def test_more_than_can_be_held_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    world = await aborted_in_the_third()
    log = await world.log()
    monkeypatch.setattr(aborts, "ENTRIES_MAX", 5)
    with pytest.raises(PlanError, match="t-0: more than 5 aborted transactions in offsets 0 to"):
        await read_aborts(world.bucket, log, 0, log.end_offset)


ranges = st.builds(
    lambda producer, first, length: AbortedRange(producer, first, first + length),
    st.integers(0, 3),
    st.integers(0, 50),
    st.integers(1, 30),
)


@given(
    st.lists(ranges, max_size=30),
    st.integers(0, 80),
    st.integers(0, 80),
    st.sampled_from([1, 3, 99]),
)
def test_those_that_overlap_are_found(
    entries: list[AbortedRange], start: int, end: int, block: int
) -> None:
    """Each once, ascending by first offset, however many are passed over together."""
    with mock.patch.object(aborts, "BLOCK", block):
        check_overlapping(entries, start, end)


def check_overlapping(entries: list[AbortedRange], start: int, end: int) -> None:
    found = AbortedTransactions([*entries, *entries]).overlapping(start, end)
    plain = {one for one in entries if one.last_offset >= start and one.first_offset < end}
    assert set(found) == plain
    assert len(found) == len(plain)
    assert [one.first_offset for one in found] == sorted(one.first_offset for one in found)


def test_one_that_lasts_for_ever_costs_no_walk_through_all_that_follow() -> None:
    """It overlaps every piece, and its marker lies behind all the others."""
    count = 50_000
    entries = [AbortedRange(1, at * 10, at * 10 + 5) for at in range(count)]
    aborted = AbortedTransactions([*entries, AbortedRange(2, 0, count * 10)])
    firsts = aborted._firsts
    counted = mock.MagicMock()
    counted.__getitem__.side_effect = firsts.__getitem__
    counted.__len__.return_value = len(firsts)
    aborted._firsts = counted
    assert aborted.overlapping(1000, 1010) == [
        AbortedRange(2, 0, count * 10),
        AbortedRange(1, 1000, 1005),
    ]
    assert 0 < counted.__getitem__.call_count < 1000


def entry(*fields: int) -> bytes:
    return struct.pack(">hqqqq", *fields)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (entry(0, 7, 1, 5, 6)[:-1], "ends within an entry"),
        (entry(1, 7, 1, 5, 6), "has version 1"),
        (entry(0, 7, 6, 5, 6), "has AbortedTxn"),
        (entry(0, 7, 1, 5, 6) * 2, "after offset 5"),
    ],
)
def test_what_is_no_index_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(CorruptFileError, match=problem):
        parse_transaction_index(data)
    assert parse_transaction_index(b"") == []
