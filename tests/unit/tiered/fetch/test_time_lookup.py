"""Looking up times in the remote log, compared with the log that kept everything."""

import asyncio

import pytest

from protocol.records.compression import Codec
from storage.checkpoints.leader_epochs import LeaderEpochCache
from tests.unit.storage.log.log_model import NOW_MS
from tests.unit.tiered.fetch.remote_history import (
    ALICE,
    PARTITION,
    RemoteHistory,
    close_readers,
    settle,
)
from tiered.errors import CorruptRemoteDataError, ObjectNotFoundError, StoreUnavailableError
from tiered.fetch import time_lookup
from tiered.metadata.epoch_bounds import valid_end
from tiered.segment_metadata import RemoteLogSegmentMetadata, SegmentState

__all__ = ["close_readers"]


def _history(**changes: object) -> RemoteHistory:
    """Times rise, fall back now and then, and stand still."""
    history = RemoteHistory(**changes)  # type: ignore[arg-type]  # as the caller spells them
    for number in range(60):
        time_ms = NOW_MS + number // 3 * 30 - (100 if number % 7 == 0 else 0)
        codec = Codec.GZIP if number % 5 == 0 else Codec.NONE
        history.append(b"a" * 60, b"b" * 30, timestamp_ms=time_ms, codec=codec)
    history.copy()
    return history


async def _find(history: RemoteHistory, time_ms: int) -> object:
    return await history.reader.find_timestamp(PARTITION, history.log, time_ms, ALICE)


async def test_every_time_is_found_where_the_whole_log_has_it() -> None:
    history = _history()
    local = history.log.local_log_start_offset
    for time_ms in range(NOW_MS - 150, NOW_MS + 700, 10):
        expected = history.oracle.reader.offset_for_timestamp(time_ms)
        if expected is not None and expected.offset >= local:
            expected = None
        assert await _find(history, time_ms) == expected


async def test_what_lies_below_the_log_start_does_not_count() -> None:
    history = _history()
    for start in (1, 7, 30):
        history.log.raise_log_start(start)
        history.oracle.raise_log_start(start)
        found = await _find(history, NOW_MS - 200)
        assert found == history.oracle.reader.offset_for_timestamp(NOW_MS - 200)


async def test_the_greatest_time_is_that_of_this_history() -> None:
    history = _history()
    find = history.reader.find_timestamp
    latest = await find(PARTITION, history.log, None, ALICE)
    assert latest is not None
    assert latest.timestamp == max(metadata.max_timestamp_ms for metadata in history.copied)
    assert latest == history.oracle.reader.offset_for_timestamp(latest.timestamp)
    # A segment that is going to be removed does not count, nor one of another history.
    for metadata in history.copied[2:]:
        history.metadata.tell(metadata, SegmentState.DELETE_SEGMENT_STARTED)
    latest = await find(PARTITION, history.log, None, ALICE)
    assert latest is not None
    assert latest.timestamp == max(metadata.max_timestamp_ms for metadata in history.copied[:2])
    history.log.leader_epochs.replace([(5, 0)])
    assert await find(PARTITION, history.log, None, ALICE) is None


async def test_only_the_chunks_that_matter_are_fetched() -> None:
    history = _history()
    await _find(history, NOW_MS + 400)
    assert 0 < history.downloads <= 4
    downloads = history.downloads
    await _find(history, NOW_MS + 400)
    assert history.downloads == downloads


async def test_segments_behind_the_one_that_has_it_are_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There may be 50,000 of them, and the loop has others to serve."""
    history = _history()
    assert len(history.copied) > 5
    looked_at = 0

    def counted(metadata: RemoteLogSegmentMetadata, epochs: LeaderEpochCache) -> int:
        nonlocal looked_at
        looked_at += 1
        return valid_end(metadata, epochs)

    monkeypatch.setattr(time_lookup, "valid_end", counted)
    assert await _find(history, NOW_MS) is not None
    # Once to choose it, once to know where it ends.
    assert looked_at == 2


async def test_segments_of_another_history_do_not_count() -> None:
    history = _history()
    foreign = history.copied[0]
    history.log.leader_epochs.replace([(5, 0)])
    assert await _find(history, NOW_MS - 200) is None
    assert history.tier.index_calls[foreign.start_offset] == 0


async def test_metadata_that_is_not_ready_is_waited_for() -> None:
    history = _history()
    history.metadata.hold()
    task = asyncio.create_task(history.reader.find_timestamp(PARTITION, history.log, NOW_MS, ALICE))
    await settle()
    assert not task.done()
    history.metadata.let_go()
    assert await task == history.oracle.reader.offset_for_timestamp(NOW_MS)


async def test_cancelling_stops_what_only_it_wanted() -> None:
    history = _history(tier_abandoned_reads="cancel")
    for call in ("fetch_indexes", "fetch_chunk"):
        history.tier.gate(call).close()
        task = asyncio.create_task(
            history.reader.find_timestamp(PARTITION, history.log, NOW_MS, ALICE)
        )
        await settle()
        assert history.reader.queue.running == 1
        task.cancel()
        await settle()
        assert history.reader.queue.running == 0
        history.tier.gate(call).open()


async def test_a_segment_that_expires_meanwhile_is_passed_over() -> None:
    history = _history()
    history.tier.gate("fetch_chunk").close()
    task = asyncio.create_task(history.reader.find_timestamp(PARTITION, history.log, NOW_MS, ALICE))
    await settle()
    history.metadata.tell(history.copied[0], SegmentState.DELETE_SEGMENT_STARTED)
    history.tier.remove(history.copied[0])
    history.tier.gate("fetch_chunk").open()
    found = await task
    assert found is not None
    assert found.offset >= history.copied[1].start_offset


async def test_errors_of_the_store_are_told() -> None:
    history = _history()
    history.tier.failures["fetch_chunk"] = StoreUnavailableError("503")
    with pytest.raises(StoreUnavailableError):
        await _find(history, NOW_MS)
    history.tier.failures["fetch_chunk"] = ObjectNotFoundError("log")
    with pytest.raises(ObjectNotFoundError):
        await _find(history, NOW_MS)


async def test_a_time_index_that_was_evicted_is_fetched_again() -> None:
    history = _history()
    await _find(history, NOW_MS)
    for name in history.files("/cache/indexes"):
        history.fs.unlink(f"/cache/indexes/{name}")
    assert await _find(history, NOW_MS) == history.oracle.reader.offset_for_timestamp(NOW_MS)
    assert history.tier.index_calls[0] == 2


async def test_indexes_that_lead_astray_are_an_error() -> None:
    history = _history()
    stored = history.tier.segments[history.copied[0].id]
    stored.time_index = b"x" * 13
    with pytest.raises(CorruptRemoteDataError):
        await _find(history, NOW_MS)
    stored.time_index = b""
    stored.offset_index = b"\x00\x00\x00\x01\x00\x00\x00\x11"
    history.log.raise_log_start(3)
    with pytest.raises(CorruptRemoteDataError):
        await _find(history, NOW_MS)
