"""Reads of remote segments against a model: random batches, chunks, offsets, limits, failures."""

from hypothesis import given
from hypothesis import strategies as st

from tests.effort import examples
from tests.unit.tiered.fetch.remote_history import (
    RemoteHistory,
    bytes_of,
    headers_of,
    play,
    settle,
)
from tiered.errors import StoreUnavailableError
from tiered.fetch.read_range import CHUNKS_HELD_MAX

BATCHES = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 300)), min_size=1, max_size=14)
READS = st.lists(
    st.tuples(st.floats(0, 0.999), st.integers(1, 1500), st.booleans()), min_size=1, max_size=12
)


@examples(200)
@given(
    batches=BATCHES,
    chunk_bytes=st.integers(12, 700),
    segment_bytes=st.integers(200, 3000),
    cache_bytes=st.sampled_from([1, 500, 1 << 20]),
    prefetch=st.booleans(),
    reads=READS,
)
def test_a_read_gives_what_the_model_does(
    batches: list[tuple[int, int]],
    chunk_bytes: int,
    segment_bytes: int,
    cache_bytes: int,
    prefetch: bool,
    reads: list[tuple[float, int, bool]],
) -> None:
    async def scene() -> None:
        history = RemoteHistory(
            chunk_bytes=chunk_bytes,
            segment_bytes=max(segment_bytes, 2000),
            rsm_config_fetch_chunk_cache_size=cache_bytes,
            rsm_config_fetch_chunk_cache_prefetch_max_size=1000 if prefetch else 0,
        )
        for records, size in batches:
            history.append(*[b"v" * (size // records)] * records)
        history.copy()
        logs = [history.tier.segments[metadata.id].log for metadata in history.copied]
        end = history.log.local_log_start_offset
        for place, max_bytes, min_one_batch in reads:
            offset = int(place * end)
            answer = await history.answer(offset, max_bytes=max_bytes, min_one_batch=min_one_batch)
            _check(bytes_of(answer), offset, max_bytes, min_one_batch, logs)

    play(scene)


def _check(
    data: bytes, offset: int, max_bytes: int, min_one_batch: bool, logs: list[bytes]
) -> None:
    """The batches from that of `offset` on, whole ones, within the limit."""
    log = next(log for log in logs if headers_of(log)[-1].last_offset >= offset)
    position = 0
    for header in headers_of(log):
        if header.last_offset >= offset:
            break
        position += header.size
    assert log[position:].startswith(data)
    headers = headers_of(data)
    if not headers:
        assert header.size > max_bytes
        assert not min_one_batch
    elif len(data) > max_bytes:
        assert len(headers) == 1
        assert min_one_batch
    else:
        assert headers[0].base_offset <= offset <= headers[0].last_offset


@examples(100)
@given(
    batches=BATCHES,
    chunk_bytes=st.integers(20, 700),
    broken=st.sets(st.integers(0, 20), max_size=4),
    max_bytes=st.integers(1, 1500),
)
def test_chunks_that_do_not_come_fail_only_the_reads_that_need_them(
    batches: list[tuple[int, int]], chunk_bytes: int, broken: set[int], max_bytes: int
) -> None:
    async def scene() -> None:
        history = RemoteHistory(chunk_bytes=chunk_bytes, segment_bytes=100_000)
        for records, size in batches:
            history.append(*[b"v" * (size // records)] * records)
        history.copy()
        log = history.tier.segments[history.copied[0].id].log
        for chunk in broken:
            history.tier.broken[(0, chunk)] = StoreUnavailableError("503")
        position = 0
        for header in headers_of(log):
            read = history.read(header.base_offset, max_bytes=max_bytes)
            await settle()
            assert read.finished
            chunks = range(position // chunk_bytes, -(-(position + header.size) // chunk_bytes))
            if read.error is None:
                data = bytes_of(read.records)
                assert log[position:].startswith(data)
                assert len(headers_of(data)) >= 1
                assert not broken.intersection(chunks)
            else:
                # Looking for the batch may take chunks before it, answering those after.
                assert isinstance(read.error, StoreUnavailableError)
                assert broken
            position += header.size
        history.tier.broken.clear()
        assert await history.replay(max_bytes=max_bytes) == log

    play(scene)


async def test_an_answer_holds_so_many_chunks_open_and_no_more() -> None:
    """Else one fetch could take all descriptors of the broker."""
    history = RemoteHistory(chunk_bytes=16, segment_bytes=100_000)
    history.fill(60)
    history.append(b"large" * 2000)
    history.fill(3)
    history.copy()
    log = history.tier.segments[history.copied[0].id].log
    offset = 0
    got = b""
    while offset <= history.copied[0].end_offset:
        # As for the second partition of a request: not more than allowed, but as much as that.
        records = await history.answer(offset, min_one_batch=False)
        headers = headers_of(bytes_of(records))
        assert len(records.slices) <= CHUNKS_HELD_MAX + 1 or len(headers) == 1
        got += bytes_of(records)
        offset = headers[-1].next_offset
    assert got == log
