"""Reading ahead: how far, across borders, within bounds."""

import pytest

from tests.unit.tiered.fetch.remote_history import (
    ALICE,
    BOB,
    RemoteHistory,
    bytes_of,
    close_readers,
    headers_of,
    settings,
    settle,
)
from tiered.errors import StoreUnavailableError
from tiered.fetch import prefetch
from tiered.fetch.prefetch import Stream

__all__ = ["close_readers"]


def _world(**changes: object) -> RemoteHistory:
    options: dict[str, object] = {
        "rsm_config_fetch_chunk_cache_prefetch_max_size": 4 * 256,
        **changes,
    }
    history = RemoteHistory(**options)  # type: ignore[arg-type]  # as the caller spells them
    history.fill(60)
    history.copy()
    return history


async def _next(history: RemoteHistory, offset: int, client: tuple[str, str] = ALICE) -> int:
    data = bytes_of(await history.answer(offset, max_bytes=200, client=client))
    return headers_of(data)[-1].next_offset


async def test_one_read_is_no_stream() -> None:
    history = _world()
    await _next(history, 0)
    assert history.reader.prefetcher.issued == 0
    assert history.reader.prefetcher.streams == 1


async def test_a_reader_that_goes_on_is_read_ahead_of() -> None:
    history = _world()
    offset = await _next(history, await _next(history, 0))
    await settle()
    assert history.reader.prefetcher.issued >= 1
    history.tier.gate("fetch_chunk").close()
    ahead = history.read(offset, max_bytes=200)
    assert ahead.finished
    assert ahead.error is None


async def test_all_of_it_is_read_without_waiting_at_the_borders() -> None:
    history = _world(rsm_config_fetch_chunk_cache_size=1 << 20)
    offset = 0
    for _ in range(6):
        offset = await _next(history, offset)
    waited = 0
    while offset < history.log.local_log_start_offset:
        read = history.read(offset, max_bytes=200)
        waited += not read.finished
        await settle()
        assert read.error is None
        offset = headers_of(bytes_of(read.records))[-1].next_offset
    assert waited == 0
    assert set(history.tier.chunk_calls.values()) == {1}
    assert set(history.tier.index_calls.values()) == {1}
    assert history.reader.chunks.prefetch_used_bytes > 2000
    assert history.reader.chunks.wasted_bytes == 0


@pytest.mark.parametrize(("run_chunks", "issued"), [(1, 2), (4, 4)])
async def test_chunks_that_cost_one_question_are_asked_for_together(
    run_chunks: int, issued: int
) -> None:
    """A run is asked for whole, as far as the segment goes."""
    history = _world(chunk_bytes=128, rsm_config_fetch_chunk_cache_prefetch_max_size=100 * 128)
    history.reader.chunks.run_chunks = run_chunks
    offset = await _next(history, 0)
    while not history.reader.prefetcher.issued:
        offset = await _next(history, offset)
    assert history.reader.prefetcher.issued == issued
    if run_chunks > 1:
        await settle()
        assert set(history.tier.chunk_calls) == {(0, chunk) for chunk in range(7)}


async def test_a_run_ends_where_one_reader_may_not_be_further_ahead() -> None:
    history = _world(chunk_bytes=128, rsm_config_fetch_chunk_cache_prefetch_max_size=2 * 128)
    history.reader.chunks.run_chunks = 4
    offset = await _next(history, 0)
    while not history.reader.prefetcher.issued:
        offset = await _next(history, offset)
    assert history.reader.prefetcher.issued <= 2


async def test_nothing_local_is_read_ahead() -> None:
    history = _world()
    await history.replay(max_bytes=200)
    copied = {metadata.start_offset for metadata in history.copied}
    assert set(history.tier.index_calls) == copied


async def test_readers_of_one_client_at_different_places_are_told_apart() -> None:
    history = _world()
    first, second = 0, history.copied[2].start_offset
    for _ in range(3):
        first, second = await _next(history, first), await _next(history, second)
    assert history.reader.prefetcher.streams == 2
    assert history.tier.chunk_calls[(history.copied[2].start_offset, 2)] == 1


async def test_a_reader_that_jumps_about_is_not_read_ahead_of() -> None:
    history = _world()
    for offset in (30, 3, 21, 10, 40):
        await _next(history, offset)
    assert history.reader.prefetcher.issued == 0


async def test_nothing_is_read_ahead_where_it_is_switched_off() -> None:
    history = _world(rsm_config_fetch_chunk_cache_prefetch_max_size=0)
    await history.replay(max_bytes=200)
    assert history.reader.prefetcher.issued == history.reader.prefetcher.streams == 0
    history.reader.update(settings(rsm_config_fetch_chunk_cache_prefetch_max_size=1000))
    assert history.reader.prefetcher.max_bytes == 1000


async def test_bytes_ahead_of_all_are_a_share_of_the_cache() -> None:
    history = _world(
        rsm_config_fetch_chunk_cache_size=4 * 256,
        rsm_config_fetch_chunk_cache_prefetch_max_size=100 * 256,
    )
    offset = 0
    for _ in range(20):
        offset = await _next(history, offset)
        assert history.reader.chunks.bytes_ahead <= 2 * 256
    assert history.reader.prefetcher.held_back > 0


async def test_above_the_quota_nothing_is_read_ahead() -> None:
    history = _world(remote_log_manager_fetch_max_bytes_per_second=10_000, chunk_bytes=600)
    offset = await _next(history, 0)
    history.reader.quota.downloaded(1 << 20)
    await _next(history, offset)
    assert history.reader.prefetcher.issued == 0
    assert history.reader.prefetcher.held_back > 0
    assert history.reader.quota.throttled == 0


async def test_prefetches_do_not_hold_up_readers() -> None:
    history = _world(
        remote_log_reader_threads=2, rsm_config_fetch_chunk_cache_prefetch_max_size=100 * 256
    )
    history.tier.gate("fetch_chunk").close()
    offset = history.copied[0].start_offset
    history.tier.gate("fetch_chunk").open()
    offset = await _next(history, await _next(history, offset))
    history.tier.gate("fetch_chunk").close()
    for _ in range(3):
        read = history.read(offset, max_bytes=200)
        if not read.finished:
            break
        offset = headers_of(bytes_of(read.records))[-1].next_offset
    await settle()
    other = history.read(history.copied[-1].start_offset, max_bytes=200, client=BOB)
    await settle()
    assert not other.finished
    assert history.reader.queue.running_prefetches <= 1
    assert history.reader.queue.waiting == 0


@pytest.mark.parametrize("abandoned", ["cancel", "finish"])
async def test_with_its_reader_goes_what_is_read_ahead(abandoned: str) -> None:
    history = _world(tier_abandoned_reads=abandoned)
    offset = await _next(history, await _next(history, 0))
    await settle()
    history.tier.gate("fetch_chunk").close()
    read = history.read(offset, max_bytes=200)
    while read.finished:
        offset = headers_of(bytes_of(read.records))[-1].next_offset
        read = history.read(offset, max_bytes=200)
    await settle()
    assert len(history.reader.chunks.flights) > 1
    read.cancel()
    await settle()
    assert (len(history.reader.chunks.flights) > 0) is (abandoned == "finish")
    assert (history.reader.chunks.wasted_bytes > 0) is (abandoned == "cancel")
    history.tier.gate("fetch_chunk").open()
    assert await history.replay() == history.expected()


async def test_indexes_that_come_late_do_not_begin_it_again() -> None:
    """They were asked for ahead of a reader who has gone since."""
    history = _world(tier_abandoned_reads="cancel")
    offset = await _next(history, 0)
    history.tier.gate("fetch_indexes").close()
    while not history.reader.indexes.flights:
        offset = await _next(history, offset)
        await settle()
    history.tier.gate("fetch_chunk").close()
    history.reader.chunks.drop_segment(history.copied[0].id)
    read = history.read(offset, max_bytes=200)
    await settle()
    read.cancel()
    await settle()
    issued = history.reader.prefetcher.issued
    history.tier.gate("fetch_indexes").open()
    await settle()
    assert history.reader.prefetcher.issued == issued
    history.tier.gate("fetch_chunk").open()
    assert await history.replay() == history.expected()


async def test_what_is_read_ahead_stays_for_another_who_waits_for_it() -> None:
    history = _world(tier_abandoned_reads="cancel")
    offset = await _next(history, await _next(history, 0))
    await settle()
    history.tier.gate("fetch_chunk").close()
    read = history.read(offset, max_bytes=200)
    while read.finished:
        offset = headers_of(bytes_of(read.records))[-1].next_offset
        read = history.read(offset, max_bytes=200)
    await settle()
    other = history.read(offset, max_bytes=400, client=BOB)
    await settle()
    read.cancel()
    history.tier.gate("fetch_chunk").open()
    await settle()
    assert other.finished
    assert other.error is None


async def test_a_reader_that_gave_up_waiting_goes_on_where_it_was() -> None:
    """A slow store: each first try of a chunk expires, the download goes on."""
    history = _world()
    offset = await _next(history, await _next(history, 0))
    prefetcher = history.reader.prefetcher
    history.tier.gate("fetch_chunk").close()
    expired = 0
    for _ in range(30):
        read = history.read(offset, max_bytes=200)
        if read.finished:
            offset = headers_of(bytes_of(read.records))[-1].next_offset
            continue
        await settle()
        read.cancel()
        expired += 1
        history.tier.gate("fetch_chunk").open()
        await settle()
        history.tier.gate("fetch_chunk").close()
    assert expired >= 1
    assert prefetcher.streams == 1
    assert prefetcher.issued > 3


async def test_a_prefetch_that_is_stopped_is_not_counted_for_ever() -> None:
    history = _world(tier_abandoned_reads="cancel", remote_log_reader_threads=1)
    segment = history.copied[0]
    flight = history.reader.indexes.demand(segment, lambda: None, ALICE)
    await settle()
    assert flight.result is not None
    chunks = history.reader.chunks
    history.tier.gate("fetch_chunk").close()
    for chunk in (0, 1):
        assert chunks.prefetch(flight.result, chunk, ALICE, lambda _: None)
    assert chunks.bytes_ahead == 512
    for chunk in (0, 1):
        chunks.demand(flight.result, chunk, _nothing, BOB).leave(_nothing)
    await settle()
    assert chunks.bytes_ahead == 0
    assert history.reader.queue.running == 0


def _nothing() -> None:
    pytest.fail("it was left")


async def test_an_error_ahead_is_nobodys_error() -> None:
    history = _world(chunk_bytes=600)
    offset = await _next(history, 0)
    history.tier.failures["fetch_chunk"] = StoreUnavailableError("503")
    offset = await _next(history, offset)
    await settle()
    assert history.reader.chunks.download_errors > 0
    assert history.reader.topics["t"].errors == 0
    history.tier.failures.clear()
    while offset < history.log.local_log_start_offset:
        offset = await _next(history, offset)


async def test_the_table_of_streams_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "STREAMS_MAX", 3)
    history = _world()
    for number in range(8):
        await _next(history, 0, (str(number), ""))
    assert history.reader.prefetcher.streams == 3


def _stream() -> Stream:
    return Stream(ALICE, None, None)  # type: ignore[arg-type]  # not looked at here


async def test_a_read_widens_the_window_once() -> None:
    history = _world(
        rsm_config_fetch_chunk_cache_prefetch_max_size=100 * 256,
        rsm_config_fetch_chunk_cache_size=1 << 20,
    )
    offset = await _next(history, await _next(history, 0))
    prefetcher = history.reader.prefetcher
    (stream,) = prefetcher._streams.values()
    before = stream.window
    segment = history.reader.indexes.peek(history.copied[0].id)
    assert segment is not None
    for _ in range(3):
        prefetcher.waits(stream, segment, offset * 171)
    assert stream.window == before * 2


def test_a_window_doubles_once_per_chunk() -> None:
    stream = _stream()
    stream.widen(8)
    stream.widen(8)
    assert stream.window == 2
    stream.passed_chunk(1.0, 0.0, 256, 8)
    stream.widen(8)
    stream.passed_chunk(2.0, 0.0, 256, 8)
    stream.widen(8)
    stream.passed_chunk(3.0, 0.0, 256, 8)
    stream.widen(8)
    assert stream.window == 8


def test_a_window_follows_the_speed() -> None:
    stream = _stream()
    now_ms = 1.0
    stream.passed_chunk(now_ms, 100.0, 1000, 50)
    for _ in range(20):
        now_ms += 10.0
        stream.read(1000)
        stream.passed_chunk(now_ms, 100.0, 1000, 50)
    assert stream.bytes_per_ms == pytest.approx(100)
    assert stream.window == 12
    for _ in range(20):
        now_ms += 1000.0
        stream.read(1000)
        stream.passed_chunk(now_ms, 100.0, 1000, 50)
    assert stream.window <= 3
    stream.window = 9
    stream.shrink()
    assert stream.window == 4
