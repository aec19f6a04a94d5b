"""Reads that come to offsets which nobody has: on at the next there is, as in a compacted log."""

from dataclasses import replace

import pytest

from tests.unit.tiered.fetch.remote_history import (
    PARTITION,
    RemoteHistory,
    bytes_of,
    close_readers,
    headers_of,
    settle,
)
from tiered.errors import RemoteOffsetNotFoundError, RemoteStorageError
from tiered.segment_metadata import SegmentState

__all__ = ["close_readers"]


def _history(batches: int = 40, **options: object) -> RemoteHistory:
    history = RemoteHistory(**options)  # type: ignore[arg-type]  # as the caller spells them
    history.fill(batches)
    history.append(b"local" * 160)
    history.copy(roll=False)
    assert len(history.copied) >= 5
    return history


def _lose(history: RemoteHistory, *numbers: int) -> range:
    """Segments of which there is neither metadata nor an object; their offsets."""
    for number in numbers:
        lost = history.copied[number]
        del history.metadata._segments[lost.id]
        history.tier.remove(lost)
    first, last = history.copied[numbers[0]], history.copied[numbers[-1]]
    return range(first.start_offset, last.end_offset + 1)


async def _first(history: RemoteHistory, offset: int, **options: object) -> int:
    records = await history.answer(offset, **options)
    return headers_of(bytes_of(records))[0].base_offset


@pytest.mark.parametrize("lost", [(0,), (1,), (0, 1, 2), (2, 3)])
async def test_every_offset_of_a_gap_gives_the_segment_behind_it(lost: tuple[int, ...]) -> None:
    history = _history()
    for offset in _lose(history, *lost):
        assert await _first(history, offset) == history.copied[lost[-1] + 1].start_offset
    assert history.reader.gaps_passed


@pytest.mark.parametrize("with_aborted", [False, True])
async def test_behind_a_gap_at_the_end_comes_the_local_log(with_aborted: bool) -> None:
    history = _history()
    last = len(history.copied) - 1
    local = history.log.local_log_start_offset
    for offset in _lose(history, last - 1, last):
        assert await _first(history, offset, with_aborted=with_aborted) == local


async def test_a_consumer_passes_every_gap_and_gets_all_there_is_once() -> None:
    history = _history()
    _lose(history, 0)
    _lose(history, 2, 3)
    expected = b"".join(history.tier.segments[m.id].log for m in history.copied[1:2])
    expected += b"".join(history.tier.segments[m.id].log for m in history.copied[4:])
    assert await history.replay(max_bytes=400) == expected


async def test_a_reader_is_read_ahead_of_across_a_gap() -> None:
    history = _history(
        60,
        rsm_config_fetch_chunk_cache_prefetch_max_size=4 * 256,
        rsm_config_fetch_chunk_cache_size=1 << 20,
    )
    _lose(history, 2, 3)
    offset = waited = 0
    while offset < history.log.local_log_start_offset:
        read = history.read(offset, max_bytes=200)
        waited += not read.finished and offset > history.copied[1].start_offset
        await settle()
        assert read.error is None
        offset = headers_of(bytes_of(read.records))[-1].next_offset
    assert waited == 0


async def test_a_gap_may_lie_over_a_change_of_leader_epochs() -> None:
    history = RemoteHistory()
    for epoch in (0, 2, 5):
        history.epoch = epoch
        history.fill(14)
    history.append(b"local" * 160)
    history.copy(roll=False)
    spans = [m.segment_leader_epochs[0].epoch for m in history.copied]
    lost = [n for n, epoch in enumerate(spans) if epoch == 2]
    lost = [lost[0] - 1, *lost]
    for offset in _lose(history, *lost):
        assert await _first(history, offset) == history.copied[lost[-1] + 1].start_offset


async def test_what_was_aborted_behind_a_gap_is_told() -> None:
    history = RemoteHistory()
    history.fill(14)
    lost_from = len(history.oracle.segment_facts())
    history.fill(14)
    for number in range(8):
        history.append(
            b"a" * 60, producer_id=9, producer_epoch=0, base_sequence=number, transactional=True
        )
    history.mark(9, commit=False)
    history.append(b"local" * 160)
    history.copy(roll=False)
    (aborting,) = [n for n, m in enumerate(history.copied) if not m.txn_index_empty]
    gap = _lose(history, *range(lost_from - 1, aborting))
    records = await history.answer(gap[0], with_aborted=True)
    assert [producer for producer, _ in records.aborted] == [9]
    headers = headers_of(bytes_of(records))
    assert headers[0].base_offset == history.copied[aborting].start_offset


async def test_a_time_is_looked_up_behind_a_gap() -> None:
    history = _history()
    gap = _lose(history, 1, 2)
    wanted = history.copied[2].max_timestamp_ms
    found = await history.reader.find_timestamp(PARTITION, history.log, wanted, ("u", "c"))
    assert found is not None
    assert found.offset == gap.stop


async def test_nothing_may_be_behind_a_gap_so_far() -> None:
    """The read is made anew when something is appended: the answer must say so."""
    history = RemoteHistory()
    history.fill(40)
    history.copy()
    gap = _lose(history, len(history.copied) - 1)
    read = history.read(gap[0])
    await settle()
    assert read.records is not None
    assert (read.records.length, read.records.awaits_append) == (0, True)


async def test_a_copy_whose_end_is_not_known_is_no_gap() -> None:
    """It may be complete, and is told so a moment later: nothing is passed over until then."""
    history = _history()
    history.metadata.tell(history.copied[2], SegmentState.COPY_SEGMENT_STARTED)
    with pytest.raises(RemoteStorageError, match="not known yet"):
        await history.answer(history.copied[2].start_offset + 1)
    history.metadata.tell(history.copied[2], SegmentState.COPY_SEGMENT_FINISHED)
    offset = history.copied[2].start_offset
    assert await _first(history, offset) == offset


async def test_metadata_that_knows_no_copy_at_all_is_lost_not_a_gap() -> None:
    history = _history()
    _lose(history, *range(len(history.copied)))
    with pytest.raises(RemoteStorageError, match="metadata is lost"):
        await history.answer(0)


async def test_below_the_log_start_nothing_is_passed_over() -> None:
    """The client must notice that what it wanted has expired."""
    history = _history()
    history.tier.gate("fetch_chunk").close()
    read = history.read(0)
    await settle()
    history.log.raise_log_start(history.copied[1].start_offset)
    _lose(history, 0)
    history.tier.gate("fetch_chunk").open()
    await settle()
    assert isinstance(read.error, RemoteOffsetNotFoundError)


async def test_what_another_history_copied_is_not_what_comes_next() -> None:
    """A past leader's segment begins where our lineage has another epoch already."""
    history = _history()
    stray = replace(
        history.copied[2],
        segment_leader_epochs=(history.copied[2].segment_leader_epochs[0]._replace(epoch=1),),
    )
    _lose(history, 2)
    history.metadata.add_finished(stray)
    assert await _first(history, stray.start_offset) == history.copied[3].start_offset
