"""What one write puts into the bucket: the stable end above all, and how it is found."""

from typing import Any

import pytest

from protocol.records.control import build_end_transaction_marker
from storage.types.append_origin import AppendOrigin
from tests.harness.history_world import INTERVAL_MS, KEY, copied, told, until_told
from tests.unit.storage.log.log_model import append, make_batch
from tests.unit.tiered.tasks.task_world import PARTITION, World
from tiered.errors import (
    CorruptRemoteDataError,
    ObjectNotFoundError,
    StoreUnavailableError,
    TieredError,
)
from tiered.tasks.history_writer import HistoryWriter, WrittenHistory

PRODUCER = 5


def open_transaction(world: World) -> None:
    """One record of a transaction, in a segment of its own."""
    batch = make_batch(
        b"t" * 40, producer_id=PRODUCER, producer_epoch=0, base_sequence=0, transactional=True
    )
    append(world.log, batch, leader_epoch=world.leader_epoch)
    world.log.writer.roll()


def abort(world: World) -> None:
    """Its end, in a segment of its own."""
    marker = build_end_transaction_marker(
        producer_id=PRODUCER,
        producer_epoch=0,
        commit=False,
        coordinator_epoch=0,
        timestamp_ms=world.clock.now_ms(),
    )
    append(world.log, memoryview(marker), origin=AppendOrigin.COORDINATOR)


def writer_of(world: World) -> HistoryWriter:
    return world.manager.history.writer


async def with_an_abort_beyond_the_end() -> World:
    """0 and 1 plain, 2 of a transaction, 3 plain; its abort, at 4, is in no copied segment."""
    world = World()
    world.write(2)
    open_transaction(world)
    world.write(1)
    abort(world)
    world.log.flusher.flush()
    await until_told(world, 4)
    return world


async def test_committed_rows_end_where_a_transaction_is_open_at_the_end_of_the_copied() -> None:
    """Its abort is in the local log: the log's own last stable offset does not help a reader."""
    world = await with_an_abort_beyond_the_end()
    assert world.log.last_stable_offset == 5
    assert told(world).summary[6:9] == (0, 4, 2)


async def test_they_end_further_on_when_its_end_was_copied() -> None:
    world = await with_an_abort_beyond_the_end()
    world.log.writer.roll()
    await world.interval(3)
    await world.run(INTERVAL_MS)
    assert told(world).summary[6:9] == (0, 5, 5)


async def test_they_do_not_end_below_the_log_start() -> None:
    world = await with_an_abort_beyond_the_end()
    world.log.delete_records(3)
    await world.manager.history.publish_log_starts([PARTITION], 1_000)
    assert told(world).summary[6:9] == (3, 4, 3)


def forget_snapshots(world: World) -> None:
    for offset in range(6):
        world.filesystem.unlink(world.log.producer_snapshot_path(offset), missing_ok=True)


async def test_without_the_local_snapshot_that_of_the_bucket_tells_it() -> None:
    world = await with_an_abort_beyond_the_end()
    forget_snapshots(world)
    written = await writer_of(world).write(world.led, None)
    assert world.tier.calls["fetch_side_file"] == 1
    assert written.stable is not None
    assert written.stable.open_offset == 2
    again = await writer_of(world).write(world.led, written)
    assert again == written._replace(size=0)
    assert world.tier.calls["fetch_side_file"] == 1


async def test_a_damaged_local_snapshot_is_not_believed() -> None:
    world = await with_an_abort_beyond_the_end()
    path = world.log.producer_snapshot_path(4)
    file = world.filesystem.open(path)
    file.write_at(b"\xff", 3)
    file.close()
    written = await writer_of(world).write(world.led, None)
    assert written.stable is not None
    assert written.stable.open_offset == 2
    assert world.tier.calls["fetch_side_file"] == 1


@pytest.mark.parametrize(
    "error",
    [CorruptRemoteDataError("x", 1, "damaged"), ObjectNotFoundError("x")],
    ids=lambda error: type(error).__name__,
)
async def test_with_neither_nothing_counts_as_committed(error: TieredError) -> None:
    world = await with_an_abort_beyond_the_end()
    forget_snapshots(world)
    world.tier.fail("fetch_side_file", error)
    await writer_of(world).write(world.led, None)
    assert told(world).summary[6:9] == (0, 4, 0)


async def test_a_store_that_does_not_answer_leaves_the_object_as_it_is() -> None:
    world = await with_an_abort_beyond_the_end()
    before = world.bucket.objects[KEY]
    forget_snapshots(world)
    world.log.delete_records(1)
    world.tier.fail("fetch_side_file", StoreUnavailableError("away"))
    with pytest.raises(StoreUnavailableError):
        await writer_of(world).write(world.led, None)
    assert world.bucket.objects[KEY] is before


async def test_what_was_written_is_known_by_its_ids() -> None:
    world = await copied(3)
    first, *_ = world.metadata.segments(PARTITION)
    written = await writer_of(world).write(world.led, None)
    assert all(written.holds(one.id) for one in world.metadata.segments(PARTITION))
    world.log.delete_records(1)
    after = await writer_of(world).write(world.led, written)
    assert not after.holds(first.id)
    assert len(after.ids) == 2
    assert after.digest != written.digest


async def test_a_long_history_is_finished_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    world = await copied(3)
    small = await writer_of(world).write(world.led, None)
    monkeypatch.setattr("tiered.tasks.history_writer.SMALL_BYTES", 10)
    calls = 0
    run = writer_of(world)._run_blocking

    async def counted(work: Any) -> None:
        nonlocal calls
        calls += 1
        await run(work)

    monkeypatch.setattr(writer_of(world), "_run_blocking", counted)
    before: WrittenHistory = small
    assert (await writer_of(world).write(world.led, before)).digest == small.digest
    assert calls == 1


async def test_more_segments_than_fit_are_not_told_and_do_expire(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = await copied(9)
    monkeypatch.setattr("tiered.metadata.history.CONTENT_BYTES_MAX", 400)
    world.log.delete_records(2)
    await world.interval(2)
    assert told(world).segments == ()
    assert told(world).summary[6:9] == (2, 9, 9)
    assert len(world.finished()) == 7
    monkeypatch.undo()
    world.log.delete_records(3)
    await world.interval(2)
    assert len(told(world).segments) == 6


async def test_a_topic_that_goes_says_so_in_the_object_that_is_there() -> None:
    world = await copied(3)
    before = told(world).summary
    await writer_of(world).mark_deleting(PARTITION, has_segments=True)
    after = told(world)
    assert after.segments == ()
    assert after.summary[6:] == before[6:]
    stored = world.bucket.objects[KEY]
    await writer_of(world).mark_deleting(PARTITION, has_segments=True)
    assert world.bucket.objects[KEY] is stored
    await writer_of(world).remove(PARTITION)
    assert KEY not in world.bucket.objects


@pytest.mark.parametrize("data", [None, b"damaged"])
async def test_or_in_one_of_its_own(data: bytes | None) -> None:
    world = await copied(1)
    del world.bucket.objects[KEY]
    if data is not None:
        world.bucket.put(KEY, data)
    await writer_of(world).mark_deleting(PARTITION, has_segments=data is None)
    assert told(world).summary.state.name == "DELETING"
    assert told(world).summary.partition == PARTITION
