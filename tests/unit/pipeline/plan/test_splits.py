"""However ranges are cut, the rows are those of the log, each once."""

from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.plan import splits
from pipeline.plan.errors import PlanError
from pipeline.plan.splits import OffsetRange, SplitLimits, pieces, plan_pieces
from tests.effort import examples
from tests.unit.pipeline.plan.bucket_world import BucketWorld, Replica
from tests.unit.pipeline.plan.plain_reader import read_rows
from tiered.errors import ObjectNotFoundError


async def one_segment(count: int = 60, **changes: Any) -> tuple[BucketWorld, Replica]:
    world = BucketWorld()
    leader = world.replica("a")
    leader.write(count, **changes)
    leader.roll()
    await world.copy(leader)
    return world, leader


async def test_a_small_segment_is_one_piece_and_costs_no_request() -> None:
    world, leader = await one_segment()
    log = await world.log()
    world.store.log.clear()
    (piece,) = await pieces(world.bucket, log, 0, 60, read_committed=True)
    assert world.store.log == []
    size = log.segments[0].metadata.segment_size_bytes
    assert (piece.position, piece.end_position) == (0, size)
    assert (piece.start_offset, piece.end_offset, piece.aborted) == (0, 60, [])
    assert await read_rows(world.bucket, [piece]) == leader.rows(0, 60, read_committed=True)


async def test_a_large_one_is_cut_where_its_index_has_entries() -> None:
    world, leader = await one_segment()
    log = await world.log()
    size = log.segments[0].metadata.segment_size_bytes
    cut = await pieces(
        world.bucket, log, 0, 60, read_committed=False, max_partition_bytes=size // 4
    )
    assert len(cut) in (4, 5)
    assert cut[0].position == 0
    assert cut[-1].end_position == size
    for before, after in pairwise(cut):
        assert before.end_offset == after.start_offset
        # At most a batch with an entry, and what lies up to the next entry, are read by both.
        assert 0 <= before.end_position - after.position < 400
    assert await read_rows(world.bucket, cut) == leader.rows(0, 60, read_committed=False)


async def test_an_index_without_entries_is_one_piece() -> None:
    """One batch that is as large as the segment."""
    world, leader = await one_segment(1, records=50, size=1000)
    log = await world.log()
    (piece,) = await pieces(world.bucket, log, 0, 50, read_committed=False, max_partition_bytes=100)
    assert piece.end_position == log.segments[0].metadata.segment_size_bytes
    # But for the records in one, of which there is a promise.
    cut = await pieces(world.bucket, log, 0, 50, read_committed=False, max_records=20)
    assert [(one.start_offset, one.end_offset) for one in cut] == [(0, 16), (16, 33), (33, 50)]
    assert await read_rows(world.bucket, cut) == leader.rows(0, 50, read_committed=False)


async def test_there_are_as_many_as_are_wanted_at_least() -> None:
    """By bytes, over all ranges; where there is less to read, fewer."""
    world, leader = await one_segment()
    log = await world.log()
    limits = SplitLimits(min_partitions=8)
    cut = await plan_pieces(world.bucket, [OffsetRange(log, 0, 60)], limits, read_committed=False)
    assert len(cut) >= 8
    assert await read_rows(world.bucket, cut) == leader.rows(0, 60, read_committed=False)
    limits = SplitLimits(min_partitions=1000)
    cut = await plan_pieces(world.bucket, [OffsetRange(log, 7, 9)], limits, read_committed=False)
    assert 1 <= len(cut) <= 2
    assert await read_rows(world.bucket, cut) == leader.rows(7, 9, read_committed=False)
    assert await plan_pieces(world.bucket, [OffsetRange(log, 7, 7)], read_committed=True) == []
    assert await plan_pieces(world.bucket, [], limits, read_committed=True) == []


async def test_more_pieces_than_anybody_can_hold_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, _ = await one_segment()
    log = await world.log()
    monkeypatch.setattr(splits, "PIECES_MAX", 50)
    with pytest.raises(PlanError, match="raise maxRecordsPerPartition"):
        await pieces(world.bucket, log, 0, 60, read_committed=False, max_records=1)


async def test_a_segment_that_is_gone_is_told_apart() -> None:
    """So that its offsets are planned once more."""
    world, _ = await one_segment()
    log = await world.log()
    world.remove(log.segments[0].metadata)
    world.bucket = world.open()
    with pytest.raises(ObjectNotFoundError):
        await pieces(world.bucket, log, 5, 9, read_committed=False)


class Step(NamedTuple):
    producer: int
    batches: int
    records: int
    then: str


steps = st.lists(
    st.builds(
        Step,
        st.sampled_from([0, 0, 1, 2, 3]),
        st.integers(1, 4),
        st.integers(1, 5),
        st.sampled_from(["", "", "commit", "abort", "abort", "roll", "roll"]),
    ),
    min_size=1,
    max_size=12,
)


async def build(script: list[Step], **form: bool) -> tuple[BucketWorld, Replica]:
    """Transactions of three producers between plain batches, over several segments."""
    world = BucketWorld(**form)
    leader = world.replica("a")
    for step in script:
        if step.producer:
            leader.write(
                step.batches, records=step.records, producer_id=step.producer, transactional=True
            )
        else:
            leader.write(step.batches, records=step.records)
        if step.then == "roll":
            leader.roll()
        elif step.then and leader.open:
            leader.finish(next(iter(leader.open)), commit=step.then == "commit")
    leader.roll()
    await world.copy(leader)
    return world, leader


@examples(60)
@given(
    script=steps,
    form=st.fixed_dictionaries({"compression": st.booleans(), "encryption": st.booleans()}),
    fractions=st.tuples(st.integers(0, 100), st.integers(0, 100)),
    max_bytes=st.sampled_from([1, 200, 500, 1 << 30]),
    max_records=st.sampled_from([None, 1, 7]),
)
async def test_rows_are_those_of_a_consumer(
    script: list[Step],
    form: dict[str, bool],
    fractions: tuple[int, int],
    max_bytes: int,
    max_records: int | None,
) -> None:
    """At both levels, of any range, cut in any way."""
    world, leader = await build(script, **form)
    log = await world.log()
    assert log.end_offset == leader.end
    assert log.stable_end_offset == min([leader.end, *(one - 1 for one in leader.open.values())])
    for read_committed in (False, True):
        end = log.end(read_committed=read_committed)
        start, stop = sorted(end * fraction // 100 for fraction in fractions)
        cut = await pieces(
            world.bucket,
            log,
            start,
            stop,
            read_committed=read_committed,
            max_partition_bytes=max_bytes,
            max_records=max_records,
        )
        expected = leader.rows(start, stop, read_committed=read_committed)
        assert await read_rows(world.bucket, cut) == expected
        covered = [offset for one in cut for offset in range(one.start_offset, one.end_offset)]
        assert covered == [*range(start, stop)]
        if max_records:
            assert all(one.end_offset - one.start_offset <= max_records for one in cut)
