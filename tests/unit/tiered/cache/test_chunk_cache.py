"""The chunk cache: limits, restarts, faults of the disk, what is counted as wasted."""

import errno

import pytest

from storage.errors import DiskError
from tests.unit.tiered.fetch.remote_history import (
    RemoteHistory,
    bytes_of,
    close_readers,
    settings,
    settle,
)
from tiered.cache.chunk_cache import ChunkCache
from tiered.cache.remote_segment import RemoteSegment
from tiered.errors import CorruptRemoteDataError, StoreUnavailableError
from tiered.format.chunk_file import ChunkKey

__all__ = ["close_readers"]

A = ("a", "")


async def _world(**changes: object) -> tuple[RemoteHistory, ChunkCache, RemoteSegment]:
    """A cache of 256-byte chunks and the first segment, which has four of them."""
    history = RemoteHistory(**changes)  # type: ignore[arg-type]  # as the caller spells them
    history.fill(20)
    history.copy()
    flight = history.reader.indexes.demand(history.copied[0], lambda: None, A)
    await settle()
    assert flight.result is not None
    return history, history.reader.chunks, flight.result


def _key(segment: RemoteSegment, chunk: int) -> ChunkKey:
    return ChunkKey(segment.metadata.id, chunk)


async def _have(cache: ChunkCache, segment: RemoteSegment, *chunks: int) -> None:
    for chunk in chunks:
        flight = cache.demand(segment, chunk, lambda: None, A)
        await settle()
        assert flight.error is None


async def test_a_chunk_is_downloaded_once_and_then_here() -> None:
    history, cache, segment = await _world()
    assert cache.get(_key(segment, 1)) is None
    await _have(cache, segment, 1)
    file = cache.get(_key(segment, 1))
    assert file is not None
    stored = history.tier.segments[segment.metadata.id]
    assert file.read_at(1000, 0) == stored.log[256:512]
    assert (cache.hits, cache.misses, cache.downloads, cache.bytes) == (1, 1, 1, 256)
    assert cache.downloaded_bytes == 256
    assert cache.unread_bytes == 0


async def test_the_least_recently_used_goes_first() -> None:
    _, cache, segment = await _world(rsm_config_fetch_chunk_cache_size=2 * 256)
    await _have(cache, segment, 0, 1)
    assert cache.get(_key(segment, 0))
    await _have(cache, segment, 2)
    assert [cache.holds(_key(segment, chunk)) for chunk in range(3)] == [True, False, True]
    assert (cache.evicted, cache.evicted_bytes, cache.bytes) == (1, 256, 512)


async def test_evicted_files_are_removed() -> None:
    history, cache, segment = await _world()
    await _have(cache, segment, 0, 1, 2)
    cache.update(256, finish_abandoned=True)
    await settle()
    assert len(history.files("/cache/chunks")) == 1
    assert cache.bytes == 256


async def test_a_chunk_that_comes_back_at_once_keeps_its_file() -> None:
    history, cache, segment = await _world(rsm_config_fetch_chunk_cache_size=256)
    await _have(cache, segment, 0)
    cache.demand(segment, 1, lambda: None, A)
    cache.demand(segment, 0, lambda: None, A)
    await settle()
    left = [chunk for chunk in (0, 1) if cache.holds(_key(segment, chunk))]
    assert len(left) == len(history.files("/cache/chunks")) == 1
    assert cache.get(_key(segment, left[0])) is not None


async def test_a_file_that_vanished_is_downloaded_again() -> None:
    history, cache, segment = await _world()
    await _have(cache, segment, 0)
    (name,) = history.files("/cache/chunks")
    history.fs.unlink(f"/cache/chunks/{name[:2]}/{name}")
    for chunk in cache._chunks.values():
        chunk.release()
    assert cache.get(_key(segment, 0)) is None
    assert cache.damaged == 1
    await _have(cache, segment, 0)
    assert cache.get(_key(segment, 0)) is not None


async def test_a_file_that_is_cut_off_while_it_is_in_use_is_downloaded_again() -> None:
    """Its slices would end the connection of every client that asks, as long as it is there."""
    history, cache, segment = await _world()
    await _have(cache, segment, 0)
    assert cache.get(_key(segment, 0)) is not None
    (name,) = history.files("/cache/chunks")
    history.fs.open(f"/cache/chunks/{name[:2]}/{name}").truncate(200)
    assert cache.get(_key(segment, 0)) is None
    assert (cache.damaged, cache.bytes) == (1, 0)
    await _have(cache, segment, 0)
    file = cache.get(_key(segment, 0))
    assert file is not None
    assert len(file.read_at(1000, 0)) == 256


async def test_a_failing_disk_fails_the_read_and_not_the_cache() -> None:
    history, cache, segment = await _world()
    await _have(cache, segment, 0)
    history.fs.fail("create", errno.EIO, path="/cache/chunks")
    flight = cache.demand(segment, 1, lambda: None, A)
    await settle()
    assert isinstance(flight.error, DiskError)
    assert cache.download_errors == 1
    assert cache.get(_key(segment, 0)) is not None
    await _have(cache, segment, 1)
    assert len(history.files("/cache/chunks")) == 2


async def test_a_rename_that_fails_leaves_nothing_behind() -> None:
    history, cache, segment = await _world()
    history.fs.fail("rename", errno.EIO, path=".part", skip=1)
    flight = cache.demand(segment, 1, lambda: None, A)
    await settle()
    assert isinstance(flight.error, DiskError)
    assert history.files("/cache/chunks") == []
    assert len(cache) == cache.bytes == 0


async def test_a_file_that_cannot_be_removed_leaves_the_cache() -> None:
    history, cache, segment = await _world()
    await _have(cache, segment, 0, 1)
    history.fs.fail("unlink", errno.EIO, path="/cache/chunks")
    cache.update(1, finish_abandoned=True)
    await settle()
    assert len(cache) == 1
    assert len(history.files("/cache/chunks")) == 2


async def test_a_chunk_of_the_wrong_length_is_damage() -> None:
    history, cache, segment = await _world()
    stored = history.tier.segments[segment.metadata.id]
    stored.log = stored.log[:300]
    flight = cache.demand(segment, 1, lambda: None, A)
    await settle()
    assert isinstance(flight.error, CorruptRemoteDataError)
    assert history.files("/cache/chunks") == []


async def test_a_restart_finds_what_was_there() -> None:
    history, cache, segment = await _world()
    await _have(cache, segment, 0, 1, 2)
    await history.reader.close()
    cache = history.begin().chunks
    await cache.wait_scanned()
    assert (len(cache), cache.bytes) == (3, 768)
    assert cache.get(_key(segment, 0)) is None, "not before its checksum was compared"
    await _have(cache, segment, 0)
    assert cache.get(_key(segment, 0)) is not None
    assert cache.downloads == 0
    assert cache.damaged == 0


async def test_a_smaller_cache_after_a_restart() -> None:
    history, cache, segment = await _world()
    await _have(cache, segment, 0, 1, 2)
    await history.reader.close()
    history.settings = settings(rsm_config_fetch_chunk_cache_size=300)
    cache = history.begin().chunks
    await cache.wait_scanned()
    await settle()
    assert (len(cache), cache.bytes) == (1, 256)
    assert len(history.files("/cache/chunks")) == 1


async def test_a_read_does_not_wait_for_the_whole_directory() -> None:
    history, cache, segment = await _world()
    await _have(cache, segment, 0)
    await history.reader.close()
    other = "00" if segment.metadata.id.hex[:2] != "00" else "01"
    history.fs.mkdir(f"/cache/chunks/{other}")
    cache = history.begin().chunks
    flight = cache.demand(segment, 0, lambda: None, A)
    await settle()
    assert flight.error is None
    assert cache.downloads == 0


async def test_a_directory_that_cannot_be_listed_is_an_empty_cache() -> None:
    history, cache, segment = await _world()
    await _have(cache, segment, 0)
    await history.reader.close()
    history.fs.fail("list", errno.EIO, path="/cache/chunks", times=2)
    cache = history.begin().chunks
    await cache.wait_scanned()
    assert cache.scanned
    await _have(cache, segment, 0)
    assert cache.get(_key(segment, 0)) is not None


async def test_unfinished_files_go_at_a_restart_but_not_those_of_now() -> None:
    history, _, segment = await _world()
    folder = f"/cache/chunks/{segment.metadata.id.hex[:2]}"
    history.fs.mkdir(folder)
    history.fs.open(f"{folder}/{segment.metadata.id.hex}.0.old-1.part", create=True)
    await history.reader.close()
    history.begin()
    await history.reader.chunks.wait_scanned()
    assert history.files("/cache/chunks") == []


async def test_prefetched_chunks_are_used_or_wasted() -> None:
    _, cache, segment = await _world(rsm_config_fetch_chunk_cache_size=3 * 256)
    unused: list[int] = []
    assert cache.prefetch(segment, 0, A, unused.append)
    assert cache.prefetch(segment, 0, A, unused.append), "under way"
    assert cache.bytes_ahead == 256
    await settle()
    assert cache.prefetch(segment, 0, A, unused.append), "here"
    assert (cache.prefetched_bytes, cache.unread_bytes, cache.bytes_ahead) == (256, 256, 256)
    assert cache.get(_key(segment, 0))
    assert (cache.prefetch_used_bytes, cache.unread_bytes, cache.bytes_ahead) == (256, 0, 0)
    assert cache.prefetch(segment, 1, A, unused.append)
    await settle()
    await _have(cache, segment, 2, 3)
    cache.update(1, finish_abandoned=True)
    assert unused == [256]
    assert cache.prefetch_unused_bytes == cache.wasted_bytes == 256


async def test_after_a_restart_reading_ahead_compares_checksums() -> None:
    history, cache, segment = await _world()
    await _have(cache, segment, 0)
    await history.reader.close()
    cache = history.begin().chunks
    await cache.wait_scanned()
    assert not cache.is_ready(segment.metadata.id, 0)
    assert cache.prefetch(segment, 0, A, lambda _: None)
    assert cache.bytes_ahead == 0
    await settle()
    assert cache.is_ready(segment.metadata.id, 0)
    assert cache.get(_key(segment, 0)) is not None
    assert cache.downloads == 0


async def test_a_prefetch_that_a_reader_joins_is_used() -> None:
    history, cache, segment = await _world()
    history.tier.gate("fetch_chunk").close()
    assert cache.prefetch(segment, 0, A, lambda size: pytest.fail(str(size)))
    await settle()
    told: list[int] = []
    cache.demand(segment, 0, lambda: told.append(1), A)
    history.tier.gate("fetch_chunk").open()
    await settle()
    assert told == [1]
    assert cache.prefetch_used_bytes == 256
    cache.update(1, finish_abandoned=True)
    assert cache.wasted_bytes == 0


async def test_a_prefetch_that_fails_is_forgotten() -> None:
    history, cache, segment = await _world()
    history.tier.broken[(0, 0)] = StoreUnavailableError("503")
    assert cache.prefetch(segment, 0, A, lambda _: None)
    await settle()
    assert cache.bytes_ahead == 0
    assert not cache.is_coming(segment.metadata.id, 0)


async def test_a_download_that_its_reader_left_is_waste_if_evicted_unread() -> None:
    history, cache, segment = await _world()
    history.tier.gate("fetch_chunk").close()
    flight = cache.demand(segment, 0, _nobody, A)
    await settle()
    flight.leave(_nobody)
    history.tier.gate("fetch_chunk").open()
    await settle()
    assert cache.unread_bytes == 256
    await _have(cache, segment, 1)
    cache.update(1, finish_abandoned=True)
    assert cache.abandoned_unused_bytes == cache.wasted_bytes == 256
    assert cache.unread_bytes == 0


def _nobody() -> None:
    pytest.fail("it was left")


async def test_the_mean_time_of_downloads_is_known() -> None:
    history, cache, segment = await _world()
    history.tier.gate("fetch_chunk").close()
    cache.demand(segment, 0, lambda: None, A)
    await settle()
    history.clock.advance(100)
    history.tier.gate("fetch_chunk").open()
    await settle()
    assert cache.fetch_ms == 100
    await _have(cache, segment, 1)
    assert cache.fetch_ms == pytest.approx(80)


async def test_dropping_a_segment_takes_all_of_it() -> None:
    history, cache, segment = await _world()
    await history.replay()
    cache.drop_segment(segment.metadata.id)
    await settle()
    assert not any(cache.holds(_key(segment, chunk)) for chunk in range(4))
    assert not any(segment.metadata.id.hex in name for name in history.files("/cache/chunks"))
    assert len(cache) > 0
    assert bytes_of(await history.answer(0))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
async def test_a_disk_that_is_full_before_the_cache_is_its_limit(code: int) -> None:
    history, cache, segment = await _world()
    await _have(cache, segment, 0, 1)
    assert cache.get(_key(segment, 0))
    history.fs.fail("write", code, path="/cache/chunks")
    await _have(cache, segment, 2)
    assert [cache.holds(_key(segment, chunk)) for chunk in range(3)] == [True, False, True]
    assert (cache.evicted, cache.download_errors, len(history.files("/cache/chunks"))) == (1, 0, 2)


async def test_a_full_disk_that_others_have_filled_is_an_error() -> None:
    history, cache, segment = await _world()
    history.fs.fail("write", errno.ENOSPC, path="/cache/chunks")
    flight = cache.demand(segment, 0, lambda: None, A)
    await settle()
    assert isinstance(flight.error, DiskError)
    await _have(cache, segment, 0)
    history.fs.fail("write", errno.ENOSPC, path="/cache/chunks", times=2)
    flight = cache.demand(segment, 1, lambda: None, A)
    await settle()
    assert isinstance(flight.error, DiskError)
    assert (len(cache), cache.bytes, history.files("/cache/chunks")) == (0, 0, [])
