"""Rows of transactions that may have ended where the bucket has nothing: they are left out."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline.plan.known_outcomes import with_known_outcomes
from pipeline.plan.layout import Gap
from pipeline.plan.partition_log import PartitionLog
from pipeline.plan.piece import AbortedRange
from tests.fakes.tiered.memory_object_store import Fault
from tests.unit.pipeline.plan.bucket_world import BucketWorld, Replica
from tiered.segment_metadata import RemoteLogSegmentMetadata

Copied = list[RemoteLogSegmentMetadata]


async def aborted_in_the_second() -> tuple[BucketWorld, Copied]:
    """0 .. 4 plain, 5 .. 7 of a transaction, 8 plain | 9 plain, 10 its abort | 11 plain | 12."""
    world = BucketWorld()
    leader = world.replica("a")
    leader.write(5)
    leader.transaction(7, 3)
    leader.write()
    leader.roll()
    leader.write()
    leader.finish(7, commit=False)
    leader.roll()
    leader.write()
    leader.roll()
    leader.write()
    leader.roll()
    return world, await world.copy(leader)


def laid(log: PartitionLog) -> list[tuple[int, int]]:
    return [(one.start_offset, one.end_offset) for one in log.segments]


async def test_a_whole_log_stays_as_it_is() -> None:
    world, _ = await aborted_in_the_second()
    log = await world.log()
    known = await with_known_outcomes(world.bucket, log, 0, 13)
    assert known.log is log
    assert known.aborted.overlapping(0, 13) == [AbortedRange(7, 5, 10)]


async def test_what_was_open_where_a_gap_begins_is_part_of_the_gap() -> None:
    world, copied = await aborted_in_the_second()
    world.remove(copied[1])
    log = await world.log()
    assert log.gaps == (Gap(9, 11),)
    known = await with_known_outcomes(world.bucket, log, 0, 13)
    assert laid(known.log) == [(0, 5), (11, 12), (12, 13)]
    assert known.log.missing(0, 13) == [Gap(5, 11)]
    below = await with_known_outcomes(world.bucket, log, 0, 5)
    behind = await with_known_outcomes(world.bucket, log, 11, 13)
    assert laid(below.log) == laid(behind.log) == laid(log)


async def test_a_segment_whose_index_is_damaged_is_a_hole() -> None:
    world, copied = await aborted_in_the_second()
    log = await world.log()
    # Of the segment alone that has the marker: its index is the only one that is read.
    world.store.fail("get_range", Fault.WRONG_BYTES, key=f"{copied[1].start_offset:020d}", times=2)
    known = await with_known_outcomes(world.bucket, log, 0, 13)
    assert known.log.missing(0, 13) == [Gap(5, 11)]
    (damaged,) = known.log.damaged
    assert damaged.start_offset == 9
    assert damaged.key.endswith(".indexes")


async def test_a_segment_without_its_snapshot_is_doubted_as_well() -> None:
    world, copied = await aborted_in_the_second()
    world.remove(copied[2])
    log = await world.log()
    world.store.fail("get_range", Fault.WRONG_BYTES, key=f"{copied[1].start_offset:020d}", times=50)
    known = await with_known_outcomes(world.bucket, log, 0, 13)
    # The first segment's says that the transaction of 5 .. 7 is open, and not what became of it.
    assert known.log.missing(0, 13) == [Gap(5, 12)]


def fill(leader: Replica, steps: list[tuple[int, int]]) -> None:
    """Plain batches, transactions of three producers and their ends, segments."""
    for kind, producer in steps:
        if kind == 0:
            leader.write()
        elif kind == 1:
            leader.transaction(producer)
        elif kind == 4:
            leader.roll()
        elif producer in leader.open:
            leader.finish(producer, commit=kind == 2)
    for producer in [*leader.open]:
        leader.finish(producer, commit=False)
    leader.write()
    leader.roll()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from((0, 1, 1, 2, 3, 3, 4, 4)), st.integers(1, 2)),
        min_size=5,
        max_size=40,
    ),
    st.sets(st.integers(0, 8), min_size=1, max_size=3),
    st.integers(0, 10),
)
@example([(1, 1), (4, 1), (3, 1), (4, 1), (0, 1)], {1}, 0)
@example([(1, 1), (1, 2), (4, 1), (3, 1), (4, 1), (2, 2), (0, 1), (4, 1)], {1}, 0)
async def test_rows_that_are_left_are_those_of_a_consumer(
    steps: list[tuple[int, int]], removed: set[int], start: int
) -> None:
    """Whatever segments are missing, but the last, from which the log is known."""
    world = BucketWorld()
    leader = world.replica("a")
    fill(leader, steps)
    copied = await world.copy(leader)
    world.write_history(leader, copied)
    for number in removed:
        if number < len(copied) - 1:
            world.remove(copied[number])
    log = await world.log()
    known = await with_known_outcomes(world.bucket, log, start, log.end_offset)
    aborted = known.aborted.overlapping(start, log.end_offset)
    for one in known.log.segments:
        begin = max(one.start_offset, start)
        rows = leader.rows(begin, one.end_offset, read_committed=False)
        told = {
            row.offset
            for row in rows
            for written in leader.written
            if written.row.offset == row.offset
            and not any(
                written.transaction
                and written.producer_id == each.producer_id
                and each.first_offset <= row.offset <= each.last_offset
                for each in aborted
            )
        }
        wanted = leader.rows(begin, one.end_offset, read_committed=True)
        assert told == {row.offset for row in wanted}
