"""A piece whose object is gone: another copy has its offsets, or they are lost."""

from pipeline.plan.layout import Gap
from pipeline.plan.piece import AbortedRange
from pipeline.plan.replan import Replanned, replan
from pipeline.plan.splits import pieces
from tests.unit.pipeline.plan.bucket_world import PARTITION, BucketWorld, Replica
from tests.unit.pipeline.plan.plain_reader import read_rows
from tiered.format.object_keys import ObjectKeys
from tiered.segment_metadata import RemoteLogSegmentMetadata


async def three_segments() -> tuple[BucketWorld, Replica, list[RemoteLogSegmentMetadata]]:
    """Offsets 0 .. 9, 10 .. 30 with an aborted transaction at 10 .. 19, 31 .. 40."""
    world = BucketWorld()
    leader = world.replica("a")
    leader.write(10)
    leader.roll()
    leader.transaction(7, 10)
    leader.write(10)
    leader.roll()
    leader.finish(7, commit=False)
    leader.write(9)
    leader.roll()
    return world, leader, await world.copy(leader)


async def test_another_copy_has_the_offsets() -> None:
    """Of a segment that was copied again, or of several that overlap it."""
    world, leader, copied = await three_segments()
    # A history that does not know better must not be asked again.
    log = await world.log()
    world.write_history(leader, copied)
    _, piece, _ = await pieces(world.bucket, log, 0, 40, read_committed=True)
    assert piece.segment_id == copied[1].id
    again = world.replica("b")
    again.follow(leader, 40)
    again.roll()
    await world.copy(again)
    world.remove(copied[1])
    found = await replan(world.bucket, piece, 15, read_committed=True)
    assert found.lost == ()
    assert [(one.start_offset, one.end_offset) for one in found.pieces] == [(15, 30)]
    assert found.pieces[0].segment_id != piece.segment_id
    rows = await read_rows(world.bucket, found.pieces)
    assert rows == leader.rows(15, 30, read_committed=True)


async def test_what_nobody_has_is_lost() -> None:
    world, _, copied = await three_segments()
    log = await world.log()
    _, piece, _ = await pieces(world.bucket, log, 0, 40, read_committed=True)
    world.remove(copied[1])
    for start in (10, 15):
        found = await replan(world.bucket, piece, start, read_committed=True)
        assert found == Replanned((), (Gap(start, 30),), ("t-0: offsets 10 to 29 are missing",))
    assert await replan(world.bucket, piece, 30, read_committed=True) == Replanned((), ())
    world.store.objects.clear()
    assert (await replan(world.bucket, piece, 10, read_committed=True)).lost == (Gap(10, 30),)


async def test_why_they_are_lost_is_told() -> None:
    """A manifest without its log is damage, not removal."""
    world, _, copied = await three_segments()
    log = await world.log()
    _, piece, _ = await pieces(world.bucket, log, 0, 40, read_committed=False)
    world.remove(copied[1], ".log")
    found = await replan(world.bucket, piece, 10, read_committed=False)
    assert found.lost == (Gap(10, 30),)
    key = ObjectKeys().segment_keys(copied[1]).log
    assert any(key in problem and "it is missing" in problem for problem in found.problems)


async def test_what_was_deleted_meanwhile_stays_deleted() -> None:
    """Also by a history that was written after the plan was made."""
    world, leader, copied = await three_segments()
    log = await world.log()
    _, piece, _ = await pieces(world.bucket, log, 0, 40, read_committed=False)
    again = await world.copy(leader, from_offset=10)
    world.remove(copied[1])
    leader.log.delete_records(14)
    world.write_history(leader, again)
    found = await replan(world.bucket, piece, 10, read_committed=False)
    assert found.lost == (Gap(10, 14),)
    assert [(one.start_offset, one.end_offset) for one in found.pieces] == [(14, 30)]


async def test_aborts_that_were_known_are_not_forgotten() -> None:
    """The segment with their marker may be gone as well."""
    world, leader, copied = await three_segments()
    log = await world.log()
    _, piece, _ = await pieces(world.bucket, log, 0, 40, read_committed=True)
    assert piece.aborted == [AbortedRange(7, 10, 30)]
    await world.copy(leader, from_offset=10)
    for metadata in copied[1:]:
        world.remove(metadata)
    for key in [*world.store.objects]:
        if key.startswith(ObjectKeys().partition_prefix(PARTITION) + f"{30:020d}"):
            del world.store.objects[key]
    found = await replan(world.bucket, piece, 10, read_committed=True)
    assert [one.aborted for one in found.pieces] == [[AbortedRange(7, 10, 30)]]
    assert found.lost == ()


async def test_what_goes_while_it_is_planned_is_planned_again() -> None:
    world, leader, copied = await three_segments()
    log = await world.log()
    _, piece, _ = await pieces(world.bucket, log, 0, 40, read_committed=True)
    again = await world.copy(leader, from_offset=10)
    world.remove(copied[1])
    late = ObjectKeys().segment_keys(again[0])

    def remove(call: str, key: str) -> None:
        # Its index is asked for after the listing was read.
        if (call, key) == ("get_range", late.indexes):
            for name in late:
                world.store.objects.pop(name, None)

    world.store.on_call = remove
    found = await replan(world.bucket, piece, 15, read_committed=True)
    assert found.lost == (Gap(15, 30),)
