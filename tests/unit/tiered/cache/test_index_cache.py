"""The index cache: limits, what a scan may not flush, restarts, faults."""

import errno

import pytest

from storage.errors import DiskError
from tests.unit.tiered.fetch.remote_history import (
    ALICE,
    BOB,
    RemoteHistory,
    bytes_of,
    close_readers,
    settle,
)
from tiered.cache import index_cache
from tiered.cache.index_cache import IndexCache
from tiered.cache.remote_segment import IndexesEvictedError, RemoteSegment
from tiered.errors import CorruptRemoteDataError, StoreUnavailableError

__all__ = ["close_readers"]


def _world(**changes: object) -> tuple[RemoteHistory, IndexCache]:
    history = RemoteHistory(**changes)  # type: ignore[arg-type]  # as the caller spells them
    history.fill(80)
    history.copy()
    assert len(history.copied) >= 10
    return history, history.reader.indexes


async def _have(
    history: RemoteHistory, number: int, client: tuple[str, str] = ALICE
) -> RemoteSegment:
    metadata = history.copied[number]
    found = history.reader.indexes.get(metadata, client)
    if found is not None:
        return found
    flight = history.reader.indexes.demand(metadata, lambda: None, client)
    await settle()
    if flight.error is not None:
        raise flight.error
    assert flight.result is not None
    return flight.result


async def test_a_set_is_fetched_once_and_then_in_memory() -> None:
    history, cache = _world()
    assert cache.get(history.copied[0], ALICE) is None
    segment = await _have(history, 0)
    assert cache.get(history.copied[0], ALICE) is segment
    assert cache.peek(history.copied[0].id) is segment
    assert cache.holds(history.copied[0].id)
    assert (cache.hits, cache.misses, cache.loads, cache.fetched) == (1, 1, 0, 1)
    assert cache.bytes == sum(
        history.fs.file_size(f"/cache/indexes/{name}") for name in history.files("/cache/indexes")
    )
    assert cache.fetched_bytes == cache.bytes


async def test_what_memory_forgets_is_on_the_disk() -> None:
    history, cache = _world()
    cache.loaded.capacity = 1
    await _have(history, 0)
    await _have(history, 1)
    assert cache.peek(history.copied[0].id) is None
    await _have(history, 0)
    assert (cache.loads, cache.fetched) == (1, 2)
    assert len(cache.loaded) == 1


async def test_a_restart_finds_whole_sets() -> None:
    history, _ = _world()
    for number in range(3):
        await _have(history, number)
    await history.reader.close()
    history.fs.unlink(next(f"/cache/indexes/{n}" for n in history.files("/cache/indexes")))
    cache = history.begin().indexes
    await cache.wait_scanned()
    assert len(cache) == 2
    for number in range(3):
        await _have(history, number)
    assert (cache.loads, cache.fetched) == (2, 1)


async def test_eviction_renames_and_removes_later() -> None:
    history, cache = _world()
    for number in range(3):
        await _have(history, number)
    size = cache.bytes
    cache.update(size * 2 // 3 + 5, finish_abandoned=True)
    await settle()
    names = history.files("/cache/indexes")
    assert len([name for name in names if name.endswith(".deleted")]) == 3
    assert len(names) == 9
    assert cache.evicted == 1
    assert cache.bytes + cache.evicted_bytes == size
    history.timer.advance(index_cache.REMOVE_DELAY_MS - 1)
    await settle()
    assert len(history.files("/cache/indexes")) == 9
    history.timer.advance(2)
    await settle()
    assert len(history.files("/cache/indexes")) == 6


async def test_a_scan_does_not_flush_what_others_use() -> None:
    history, cache = _world()
    for number in (0, 1):
        await _have(history, number, ALICE)
        await _have(history, number, BOB)
    cache.update(cache.bytes * 2, finish_abandoned=True)
    for number in range(2, 12 if len(history.copied) > 11 else len(history.copied)):
        for _ in range(5):
            await _have(history, number, ("User:scan", "s"))
    assert cache.evicted > 3
    assert cache.holds(history.copied[0].id)
    assert cache.holds(history.copied[1].id)


async def test_coming_back_later_protects_too() -> None:
    history, cache = _world()
    await _have(history, 0)
    await _have(history, 0)
    await _have(history, 1)
    history.clock.advance(index_cache.VISIT_GAP_MS + 1)
    await _have(history, 0)
    cache.update(cache.bytes, finish_abandoned=True)
    await _have(history, 2)
    assert [cache.holds(history.copied[n].id) for n in range(3)] == [True, False, True]


async def test_the_protected_part_is_bounded() -> None:
    history, cache = _world()
    cache.update(1, finish_abandoned=True)
    for number in range(3):
        await _have(history, number, ALICE)
        await _have(history, number, BOB)
    assert len(cache) == 1
    assert cache._protected_bytes == 0


async def test_a_set_in_use_is_passed_over() -> None:
    history, cache = _world()
    pinned = await _have(history, 0)
    pinned.pin()
    await _have(history, 1)
    cache.update(1, finish_abandoned=True)
    await settle()
    assert cache.holds(history.copied[0].id)
    pinned.unpin()
    await _have(history, 2)
    assert not cache.holds(history.copied[0].id)
    with pytest.raises(IndexesEvictedError):
        pinned.pin()


async def test_a_damaged_set_is_fetched_again() -> None:
    history, cache = _world()
    segment = await _have(history, 0)
    cache.loaded.capacity = 1
    await _have(history, 1)
    file = history.fs.open(segment.path + ".index")
    file.write_at(b"\xff\xff\xff\xff", 0)
    again = await _have(history, 0)
    assert again is not segment
    assert (cache.damaged, cache.fetched) == (1, 3)
    history.timer.advance(index_cache.REMOVE_DELAY_MS + 5)
    await settle()
    assert len(history.files("/cache/indexes")) == 6


async def test_what_was_fetched_damaged_is_an_error() -> None:
    history, cache = _world()
    history.tier.segments[history.copied[0].id].offset_index = b"xxxxxxxxx"
    with pytest.raises(CorruptRemoteDataError):
        await _have(history, 0)
    await settle()
    assert cache.fetch_errors == 1
    assert not cache.holds(history.copied[0].id)
    history.timer.advance(index_cache.REMOVE_DELAY_MS + 5)
    await settle()
    assert history.files("/cache/indexes") == []


async def test_errors_of_the_store_and_of_the_disk_are_told() -> None:
    history, cache = _world()
    history.tier.failures["fetch_indexes"] = StoreUnavailableError("503")
    with pytest.raises(StoreUnavailableError):
        await _have(history, 0)
    history.tier.failures.clear()
    history.fs.fail("mkdir", errno.ENOSPC, path="/cache/indexes")
    with pytest.raises(DiskError):
        await _have(history, 0)
    assert cache.fetch_errors == 2
    assert (await _have(history, 0)).metadata == history.copied[0]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
async def test_on_a_full_disk_chunks_go_first(code: int) -> None:
    """Else nothing new could be read for as long as the disk is full of them."""
    history, cache = _world()
    assert bytes_of(await history.answer(0))
    chunks = history.reader.chunks
    assert len(chunks) > 0
    history.fs.fail("write", code, path="/cache/indexes")
    assert (await _have(history, 3)).metadata == history.copied[3]
    assert (cache.fetch_errors, len(chunks), history.files("/cache/chunks")) == (0, 0, [])
    # Where others have filled it, it is an error.
    history.fs.fail("write", code, path="/cache/indexes")
    with pytest.raises(DiskError):
        await _have(history, 4)
    assert (await _have(history, 4)).metadata == history.copied[4]


async def test_a_directory_that_cannot_be_listed_is_an_empty_cache() -> None:
    history, _ = _world()
    await history.reader.close()
    history.fs.fail("list", errno.EIO, path="/cache/indexes")
    cache = history.begin().indexes
    await cache.wait_scanned()
    assert len(cache) == 0
    assert (await _have(history, 0)).metadata == history.copied[0]


async def test_reading_ahead_tells_when_it_is_here() -> None:
    history, cache = _world()
    told: list[int] = []
    assert cache.prefetch(history.copied[0], ALICE, lambda: told.append(1))
    await settle()
    assert told == [1]
    assert cache.peek(history.copied[0].id) is not None
