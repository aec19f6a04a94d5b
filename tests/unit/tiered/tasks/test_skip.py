"""A corrupt segment that an operator gives up: recorded, kept aside, and passed over."""

import errno

import pytest

from storage.environment.alerts import AlertKind
from storage.errors import DiskError
from storage.index.transaction_index import AbortedTxn
from tests.unit.tiered.tasks.task_world import PARTITION, World, tiered_config
from tiered.errors import CorruptSegmentError, RemoteStorageError
from tiered.fetch.gaps import find_gaps
from tiered.tasks.copier import BLOCKED_RETRY_MS

CORRUPT = CorruptSegmentError("/data/t-0/x.log", 7, "bad", rebuildable=False)
LOG = "/data/t-0/00000000000000000002.log"


async def _blocked(*, copied: int = 2, after: int = 3) -> World:
    """Segments of one record each; that of offset 2 is corrupt."""
    world = World(tiered_config(local_retention_bytes=-1))
    world.write(copied)
    await world.start()
    await world.interval()
    world.tier.fail("copy_segment", CORRUPT, times=50)
    world.write(1 + after)
    await world.interval()
    assert world.led.blocked is not None
    world.tier._faults.clear()
    return world


def _alerts(world: World) -> list[str]:
    return [a.text for a in world.manager._alerts.all() if a.kind is AlertKind.TIER_COPY_BLOCKED]


async def test_copying_goes_on_behind_it_and_the_files_stay() -> None:
    world = await _blocked()
    content = world.filesystem.peek(LOG)
    (text,) = _alerts(world)
    assert "varve tier skip t:0 --start 2 --execute" in text
    told = await world.manager.skip_blocked(PARTITION, None)
    assert (told.start_offset, told.end_offset, told.size_bytes) == (2, 3, len(content))
    assert world.filesystem.peek(LOG) == content, "only told so far"
    assert await world.manager.skip_blocked(PARTITION, 2) == told
    await world.interval()
    assert world.finished() == [(0, 0), (1, 1), (3, 3), (4, 4), (5, 5)]
    assert world.filesystem.peek(told.kept_as) == content
    assert world.filesystem.peek(LOG) == b""
    assert (_alerts(world), world.led.blocked) == ([], None)
    assert find_gaps(world.metadata, PARTITION, world.log) == [(2, 3)]
    assert world.tier.empty_from[3] is None, "its records are lost"


async def test_reads_go_on_behind_it_here_and_when_it_is_remote() -> None:
    world = await _blocked()
    await world.manager.skip_blocked(PARTITION, 2)
    await world.interval()
    found = world.log.reader.read(2, max_bytes=1000, end_offset=6, min_one_batch=True)
    assert found is not None
    assert int.from_bytes(found.file.read_at(8, found.position), "big") == 3
    world.set_config(local_retention_bytes=0)
    world.expire_local()
    assert world.log.local_log_start_offset > 3
    assert find_gaps(world.metadata, PARTITION, world.log) == [(2, 3)]
    assert world.log.log_start_offset == 0


async def test_it_is_given_up_for_good() -> None:
    """After a crash nobody looks at it again, and its neighbours are not copied twice."""
    world = await _blocked(after=1)
    await world.manager.skip_blocked(PARTITION, 2)
    world.write(2)
    await world.crash()
    await world.start()
    await world.interval(2)
    assert world.led.blocked is None
    assert world.finished() == [(0, 0), (1, 1), (3, 3), (4, 4), (5, 5)]
    assert world.filesystem.exists(LOG + ".skipped")
    assert [s.base_offset for s in world.log.segment_facts()][:4] == [0, 1, 2, 3]


async def test_the_first_segment_of_a_log_can_be_given_up() -> None:
    world = await _blocked(copied=0)
    with pytest.raises(RemoteStorageError, match="begins at offset 0, not at 2"):
        await world.manager.skip_blocked(PARTITION, 2)
    await world.manager.skip_blocked(PARTITION, 0)
    await world.interval()
    assert world.finished() == [(1, 1), (2, 2), (3, 3)]
    await world.crash()
    await world.start()
    await world.interval()
    assert world.finished() == [(1, 1), (2, 2), (3, 3)]
    assert world.log.log_start_offset == 1


async def test_what_is_not_blocked_is_not_given_up() -> None:
    world = World()
    world.write(2)
    await world.start()
    await world.interval()
    for start in (None, 0):
        with pytest.raises(RemoteStorageError, match="nothing to skip"):
            await world.manager.skip_blocked(PARTITION, start)
    with pytest.raises(RemoteStorageError, match="not led"):
        await world.manager.skip_blocked(PARTITION._replace(partition=7), None)
    assert world.finished() == [(0, 0), (1, 1)]


async def test_not_while_it_is_read_again() -> None:
    world = await _blocked()
    world.tier.hang("copy_segment")
    await world.run(BLOCKED_RETRY_MS + 60_000, 60_000)
    assert world.manager.copies_in_flight == 1
    with pytest.raises(RemoteStorageError, match="under way"):
        await world.manager.skip_blocked(PARTITION, 2)


async def test_a_disk_that_refuses_leaves_it_as_it_was() -> None:
    world = await _blocked()
    content = world.filesystem.peek(LOG)
    world.filesystem.fail("sync", errno.EIO, path=".cleaned")
    with pytest.raises(DiskError):
        await world.manager.skip_blocked(PARTITION, 2)
    world.filesystem.heal()
    assert world.filesystem.peek(LOG) == content
    assert world.led.blocked is not None
    assert world.led.stopped_copying == ""
    await world.manager.skip_blocked(PARTITION, 2)
    await world.interval()
    assert world.finished()[-1] == (5, 5)


async def test_what_was_aborted_in_it_stays_aborted() -> None:
    """A marker says so of records that lie before it, and are not lost."""
    world = await _blocked()
    segment = world.log.segment_facts()[2]
    segment.transaction_index.append(AbortedTxn(9, 1, 2, 1))
    segment.transaction_index.flush()
    await world.manager.skip_blocked(PARTITION, 2)
    assert world.log.reader.aborted_transactions(1, 4) == [(9, 1)]


async def test_a_sound_copy_of_the_file_clears_the_alert() -> None:
    world = await _blocked()
    await world.run(BLOCKED_RETRY_MS + 60_000, 60_000)
    assert world.finished()[2] == (2, 2)
    assert _alerts(world) == []
