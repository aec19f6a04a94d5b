"""Reading remote segments: what is answered, compared with the log that kept everything."""

from dataclasses import replace

import pytest
from typing_extensions import override

from storage.environment.repeated_line import AGAIN_MS
from storage.log.log import Log
from storage.segment.segment import Segment
from tests.unit.storage.log.log_model import NOW_MS
from tests.unit.tiered.fetch.remote_history import (
    ALICE,
    BOB,
    PARTITION,
    RemoteHistory,
    bytes_of,
    close_readers,
    headers_of,
    settings,
    settle,
)
from tiered.errors import (
    CorruptRemoteDataError,
    ObjectNotFoundError,
    QueueFullError,
    RemoteOffsetNotFoundError,
    RemotePausedError,
    RemoteStorageError,
    StoreUnavailableError,
    TierProcessError,
)
from tiered.fetch.reader import RELEASED_MS
from tiered.remote_read import RemoteReader
from tiered.segment_metadata import SegmentState

__all__ = ["close_readers"]


def _filled(batches: int = 40, **options: object) -> RemoteHistory:
    history = RemoteHistory(**options)  # type: ignore[arg-type]  # as the caller spells them
    history.fill(batches)
    history.copy()
    return history


async def test_a_consumer_reads_all_that_was_copied() -> None:
    history = _filled()
    assert len(history.copied) > 3
    assert await history.replay(max_bytes=500) == history.expected()


def test_it_is_the_reader_that_the_broker_knows() -> None:
    reader: RemoteReader = RemoteHistory(begin=False).make_reader()
    assert reader is not None


async def test_every_offset_gives_the_batch_that_holds_it() -> None:
    history = RemoteHistory(chunk_bytes=100)
    for number in range(30):
        history.append(*[bytes([number]) * (number % 5 * 30 + 1)] * (number % 4 + 1))
    history.copy()
    for offset in range(history.log.local_log_start_offset):
        header = headers_of(bytes_of(await history.answer(offset, max_bytes=1)))[0]
        assert header.base_offset <= offset <= header.last_offset


async def test_a_second_read_is_finished_at_once_and_downloads_nothing() -> None:
    history = _filled()
    await history.replay()
    first = await history.answer(0)
    downloads = history.downloads
    read = history.read(0)
    assert read.finished
    assert bytes_of(read.records) == bytes_of(first)
    assert history.downloads == downloads
    assert history.reader.chunks.hits > 0


async def test_after_a_restart_nothing_is_downloaded_again() -> None:
    history = _filled()
    expected = await history.replay()
    downloads, indexes = history.downloads, sum(history.tier.index_calls.values())
    await history.reader.close()
    history.begin()
    assert await history.replay() == expected
    assert history.downloads == downloads
    assert sum(history.tier.index_calls.values()) == indexes


async def test_many_readers_of_a_chunk_cause_one_download() -> None:
    history = _filled()
    history.tier.gate("fetch_chunk").close()
    reads = [history.read(0, client=("User:x", str(number))) for number in range(20)]
    await settle()
    assert not any(read.finished for read in reads)
    history.tier.gate("fetch_chunk").open()
    await settle()
    assert all(read.finished and read.error is None for read in reads)
    assert set(history.tier.chunk_calls.values()) == {1}
    assert set(history.tier.index_calls.values()) == {1}


async def test_a_batch_that_spans_three_chunks_is_given_whole() -> None:
    history = RemoteHistory(chunk_bytes=100, segment_bytes=2000)
    history.append(b"x" * 250)
    history.append(b"y" * 250)
    history.copy()
    records = await history.answer(1, max_bytes=10)
    (header,) = headers_of(bytes_of(records))
    assert header.base_offset == 1
    assert len(records.slices) >= 3
    assert history.tier.chunk_calls[(0, 0)] <= 1


async def test_a_batch_that_is_too_large_is_given_only_if_asked_for() -> None:
    history = RemoteHistory(chunk_bytes=100)
    history.append(b"x" * 250)
    history.copy()
    assert (await history.answer(0, max_bytes=10, min_one_batch=False)).length == 0
    assert (await history.answer(0, max_bytes=10)).length > 250


async def test_an_answer_ends_with_a_whole_batch() -> None:
    history = _filled()
    for max_bytes in range(171, 900, 37):
        records = await history.answer(0, max_bytes=max_bytes)
        assert records.length <= max_bytes
        headers_of(bytes_of(records))


async def test_records_are_answered_from_what_is_here() -> None:
    """Half of what is wanted is enough; the rest comes with the next read."""
    history = _filled(chunk_bytes=512)
    await history.answer(0, max_bytes=200)
    history.tier.gate("fetch_chunk").close()
    read = history.read(0, max_bytes=700)
    assert read.finished
    assert 0 < read.records.length <= 512  # type: ignore[union-attr]  # finished without an error


async def test_a_hung_store_holds_up_only_its_readers() -> None:
    history = _filled()
    await history.answer(0, max_bytes=200)
    history.tier.gate("fetch_chunk").close()
    hanging = history.read(history.copied[-1].start_offset)
    await settle()
    assert not hanging.finished
    assert history.read(0, max_bytes=200).finished


async def test_eviction_leaves_an_open_slice_readable() -> None:
    history = _filled(rsm_config_fetch_chunk_cache_size=600)
    records = await history.answer(0)
    expected = history.tier.segments[history.copied[0].id].log
    await history.replay()
    assert history.reader.chunks.evicted > 0
    assert len(bytes_of(records)) == records.length > 300
    assert expected.startswith(bytes_of(records))
    assert history.reader.chunks.bytes <= 600


async def test_a_read_larger_than_the_cache_is_answered() -> None:
    history = _filled(
        rsm_config_fetch_chunk_cache_size=1, remote_log_index_file_cache_total_size_bytes=1
    )
    assert await history.replay() == history.expected()


async def test_cancelling_stops_the_download_in_the_same_turn() -> None:
    history = _filled(tier_abandoned_reads="cancel")
    history.tier.gate("fetch_chunk").close()
    read = history.read(0)
    await settle()
    assert history.reader.queue.running > 0
    read.on_finished = lambda: pytest.fail("nobody waits")
    read.cancel()
    await settle()
    assert history.reader.queue.running == 0
    assert history.tier.ended["cancelled"] > 0
    assert history.reader.chunks.wasted_bytes > 0
    assert not read.finished
    assert not history.reader.pending
    history.tier.gate("fetch_chunk").open()
    assert (await history.answer(0)).length


async def test_a_released_read_has_a_moment_to_be_asked_for_again() -> None:
    """A chunk takes longer than a fetch waits: all are answered without it, until it comes."""
    history = _filled(tier_abandoned_reads="cancel")
    history.tier.gate("fetch_chunk").close()
    for _ in range(4):
        history.read(0).release()
        await settle()
        history.timer.advance(RELEASED_MS - 1)
        await settle()
    begun = sum(history.tier.chunk_calls.values())
    history.tier.gate("fetch_chunk").open()
    await settle()
    assert history.read(0).finished
    assert history.tier.ended["cancelled"] == 0
    assert sum(history.tier.chunk_calls.values()) == begun


async def test_a_released_read_that_nobody_asks_for_again_stops() -> None:
    history = _filled(tier_abandoned_reads="cancel")
    history.tier.gate("fetch_chunk").close()
    read = history.read(0)
    await settle()
    read.release()
    await settle()
    assert history.reader.queue.running > 0
    history.timer.advance(RELEASED_MS)
    await settle()
    assert history.reader.queue.running == 0
    assert history.reader.chunks.wasted_bytes > 0


async def test_an_abandoned_download_is_finished_into_the_cache() -> None:
    history = _filled(tier_abandoned_reads="finish")
    history.tier.gate("fetch_chunk").close()
    read = history.read(0, max_bytes=200)
    await settle()
    read.cancel()
    history.tier.gate("fetch_chunk").open()
    await settle()
    assert history.tier.ended["cancelled"] == 0
    assert history.read(0, max_bytes=200).finished
    assert history.reader.chunks.wasted_bytes == 0


async def test_one_of_two_that_wait_may_leave() -> None:
    history = _filled(tier_abandoned_reads="cancel")
    history.tier.gate("fetch_chunk").close()
    leaving, staying = history.read(0), history.read(0, client=BOB)
    await settle()
    leaving.cancel()
    history.tier.gate("fetch_chunk").open()
    await settle()
    assert staying.finished
    assert staying.error is None
    assert history.tier.ended["cancelled"] == 0


async def test_too_many_reads_are_refused() -> None:
    history = _filled(remote_log_reader_threads=1, remote_log_reader_max_pending_tasks=1)
    history.tier.gate("fetch_indexes").close()
    reads = [history.read(metadata.start_offset) for metadata in history.copied[:3]]
    await settle()
    assert [type(read.error) for read in reads] == [type(None), type(None), QueueFullError]
    assert history.reader.queue.rejected == 1
    assert history.reader.topics["t"].errors == 1


async def test_metadata_that_is_not_ready_is_waited_for() -> None:
    history = _filled()
    history.metadata.hold()
    reads = [history.read(0), history.read(5)]
    leaving = history.read(0)
    await settle()
    leaving.cancel()
    assert not any(read.finished for read in reads)
    assert history.metadata.waiting == 1
    told: list[int] = []
    reads[0].on_finished = lambda: told.append(1)
    history.metadata.let_go()
    await settle()
    assert all(read.finished and read.error is None for read in reads)
    assert told == [1]
    assert not leaving.finished


async def test_waiting_for_metadata_ends_with_the_last_who_waits() -> None:
    history = _filled()
    history.metadata.hold()
    read = history.read(0)
    await settle()
    read.cancel()
    await settle()
    assert history.metadata.waiting == 0


async def test_an_offset_that_was_never_copied_is_not_found() -> None:
    history = _filled()
    metadata = history.copied[0]
    history.metadata.tell(metadata, SegmentState.DELETE_SEGMENT_STARTED)
    with pytest.raises(RemoteOffsetNotFoundError):
        await history.answer(0)
    assert history.reader.topics["t"].errors == 0


async def test_a_segment_that_expires_while_it_is_read_is_looked_up_again() -> None:
    history = _filled()
    history.tier.gate("fetch_chunk").close()
    read = history.read(0)
    await settle()
    history.metadata.tell(history.copied[0], SegmentState.DELETE_SEGMENT_STARTED)
    history.tier.remove(history.copied[0])
    history.tier.gate("fetch_chunk").open()
    await settle()
    assert isinstance(read.error, RemoteOffsetNotFoundError)


async def test_a_segment_that_metadata_still_name_is_missing() -> None:
    """The bucket lost it: an error, not a place to begin elsewhere."""
    history = _filled()
    history.tier.remove(history.copied[0])
    read = history.read(0)
    await settle()
    assert isinstance(read.error, ObjectNotFoundError)
    assert history.reader.topics["t"].errors == 1


async def test_why_reads_fail_is_told_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    """A consumer tries again without end, and nobody else would see that it gets nothing."""
    history = _filled()
    history.tier.remove(history.copied[0])

    async def lines() -> list[str]:
        caplog.clear()
        history.read(0)
        await settle()
        return [record.message for record in caplog.records if record.levelname == "WARNING"]

    (line,) = await lines()
    assert line.startswith(f"remote log read failed partition={PARTITION} offset=0 error=")
    assert await lines() == []
    history.clock.advance(AGAIN_MS)
    assert len(await lines()) == 1
    history.clock.advance(AGAIN_MS)
    history.metadata.tell(history.copied[0], SegmentState.DELETE_SEGMENT_STARTED)
    assert await lines() == [], "it is not there any more: nothing is wrong"


class _Once(dict[tuple[int, int], Exception]):
    """Errors that are raised once."""

    @override
    def __getitem__(self, key: tuple[int, int]) -> Exception:
        return self.pop(key)


async def test_a_tier_process_that_ended_is_asked_again() -> None:
    history = _filled()
    history.tier.broken = _Once({(0, 0): TierProcessError("ended")})
    records = await history.answer(0, max_bytes=200)
    assert records.length
    assert history.tier.chunk_calls[(0, 0)] == 2
    assert history.reader.retried == 1


async def test_a_tier_process_that_ends_again_and_again_is_an_error() -> None:
    history = _filled()
    history.tier.broken[(0, 0)] = TierProcessError("ended")
    with pytest.raises(TierProcessError):
        await history.answer(0, max_bytes=200)
    assert history.tier.chunk_calls[(0, 0)] == 3


def _cut_last_batch(history: RemoteHistory, number: int) -> int:
    """Compaction took the last batch of a segment; its first offset."""
    metadata = history.copied[number]
    stored = history.tier.segments[metadata.id]
    last = headers_of(stored.log)[-1]
    stored.log = stored.log[: -last.size]
    entries = [stored.offset_index[at : at + 8] for at in range(0, len(stored.offset_index), 8)]
    kept = [entry for entry in entries if int.from_bytes(entry[4:]) < len(stored.log)]
    stored.offset_index = b"".join(kept)
    metadata = replace(metadata, segment_size_bytes=len(stored.log))
    history.metadata.add_finished(metadata)
    return last.base_offset


async def test_an_offset_in_a_gap_gives_what_follows() -> None:
    history = _filled()
    offset = _cut_last_batch(history, 1)
    headers = headers_of(bytes_of(await history.answer(offset)))
    assert headers[0].base_offset == history.copied[2].start_offset
    assert history.read(offset).finished


async def test_after_a_gap_at_the_end_comes_the_local_log() -> None:
    history = RemoteHistory()
    history.fill(40)
    history.copy(roll=False)
    offset = _cut_last_batch(history, len(history.copied) - 1)
    for with_aborted in (False, True):
        records = await history.answer(offset, with_aborted=with_aborted)
        headers = headers_of(bytes_of(records))
        assert headers[0].base_offset == history.log.local_log_start_offset
        assert records.aborted == []


async def test_after_a_gap_at_the_end_there_may_be_nothing() -> None:
    history = _filled()
    offset = _cut_last_batch(history, len(history.copied) - 1)
    assert (await history.answer(offset)).length == 0


async def test_trouble_with_a_later_chunk_comes_with_the_read_that_needs_it() -> None:
    history = _filled(chunk_bytes=400)
    history.tier.broken[(0, 1)] = StoreUnavailableError("503")
    first = await history.answer(0)
    assert 0 < first.length <= 400
    headers = headers_of(bytes_of(first))
    with pytest.raises(StoreUnavailableError):
        await history.answer(headers[-1].next_offset)
    history.tier.broken.clear()
    assert (await history.answer(headers[-1].next_offset)).length


async def test_reading_may_be_paused() -> None:
    history = _filled()
    history.reader.update(settings(tier_fetch_paused=True))
    read = history.read(0)
    assert isinstance(read.error, RemotePausedError)
    with pytest.raises(RemotePausedError):
        await history.reader.find_timestamp(PARTITION, history.log, 0, ALICE)
    history.reader.update(settings())
    assert (await history.answer(0)).length


async def test_above_the_quota_an_answer_is_empty_and_no_error() -> None:
    history = _filled(remote_log_manager_fetch_max_bytes_per_second=700)
    await history.answer(0)
    records = await history.answer(history.copied[2].start_offset)
    assert records.length == 0
    assert history.reader.quota.throttled == 1
    assert (await history.answer(0)).length, "what is cached costs nothing"
    history.clock.advance(60_000)
    assert (await history.answer(history.copied[2].start_offset)).length


async def test_a_client_has_a_quota_of_its_own() -> None:
    history = _filled(tier_client_fetch_max_bytes_per_second=300)
    await history.answer(0)
    assert (await history.answer(0)).length == 0
    assert (await history.answer(0, client=BOB)).length
    assert history.reader.quota.client_throttled == 1
    history.reader.update(settings())
    assert (await history.answer(0)).length


async def test_who_is_told_is_told_once_even_if_he_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    history = _filled()
    read = history.read(0)
    told: list[int] = []

    def fails() -> None:
        told.append(1)
        raise ValueError("told")

    read.on_finished = fails
    await settle()
    assert told == [1]
    assert read.error is None
    assert "remote log read failed after it was answered" in caplog.text


@pytest.mark.parametrize("call", ["fetch_indexes", "fetch_chunk"])
async def test_what_nobody_expected_is_an_error_that_the_broker_knows(
    call: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A fetch that waits would not be answered at all otherwise."""
    history = _filled()
    history.tier.failures[call] = ZeroDivisionError("x")
    with pytest.raises(RemoteStorageError, match="ZeroDivisionError"):
        await history.answer(0)
    assert "ZeroDivisionError" in caplog.text


async def test_topics_are_counted_and_forgotten() -> None:
    history = _filled()
    records = await history.answer(0)
    counters = history.reader.topics["t"]
    assert (counters.requests, counters.bytes, counters.errors) == (1, records.length, 0)
    history.reader.forget_topic("t")
    assert not history.reader.topics


# -- leader epochs ---------------------------------------------------------------------------


async def test_overlapping_segments_are_told_apart_by_epoch() -> None:
    """A past leader copied offsets that its successor wrote again: those are never served."""
    history = RemoteHistory(segment_bytes=100_000)
    past = RemoteHistory(segment_bytes=100_000, begin=False)
    for number in range(20):
        for each in (history, past):
            each.append(bytes([number]) * 50)
    for _ in range(10):
        past.append(b"lost" * 20)
    past.oracle.writer.roll()
    wrong = past.oracle.segment_facts()[0]
    # What the past leader copied: 0 .. 29, all of epoch 0.
    history.copy_segment(past.oracle, _moved(history, past, wrong), 30)
    history.epoch = 3
    for number in range(30):
        history.append(bytes([100 + number]) * 50)
    history.oracle.writer.roll()
    history.log.writer.roll()
    segment = history.oracle.segment_facts()[0]
    replica = history.copy_segment(history.oracle, segment, 50)
    history.log.highest_remote_offset = 49
    history.log.durable_remote_offset = 49
    history.log.retention.delete_old_segments()
    expected = history.tier.segments[replica.id].log

    offset = 0
    got = b""
    while offset < 50:
        data = bytes_of(await history.answer(offset, max_bytes=300))
        got += data
        offset = headers_of(data)[-1].next_offset
    assert got == expected
    assert b"lost" not in got
    # Also when the past leader's copy is the only one left: up to where the histories part.
    history.metadata.tell(replica, SegmentState.DELETE_SEGMENT_STARTED)
    data = bytes_of(await history.answer(15))
    assert headers_of(data)[0].base_offset == 15
    assert headers_of(data)[-1].next_offset == 20
    assert expected.find(data) >= 0
    with pytest.raises(RemoteOffsetNotFoundError):
        await history.answer(20)


async def test_what_a_past_leader_copied_beyond_the_log_is_not_served() -> None:
    """Of a follower that was cut back, say, and has no record of the next epoch yet."""
    history = RemoteHistory(segment_bytes=100_000)
    past = RemoteHistory(segment_bytes=100_000, begin=False)
    for number in range(20):
        if number == 10:
            history.log.writer.roll()
        for each in (history, past):
            each.append(bytes([number]) * 50)
    for _ in range(10):
        past.append(b"lost" * 20)
    past.oracle.writer.roll()
    history.copy_segment(past.oracle, _moved(history, past, past.oracle.segment_facts()[0]), 30)
    history.log.highest_remote_offset = 9
    history.log.durable_remote_offset = 9
    history.log.update_config(
        history.log.config.model_copy(update={"local_retention_bytes": 0, "local_retention_ms": 0})
    )
    history.log.retention.delete_old_segments()
    assert (history.log.local_log_start_offset, history.log.log_end_offset) == (10, 20)
    data = bytes_of(await history.answer(5))
    assert headers_of(data)[0].base_offset == 5
    assert headers_of(data)[-1].next_offset == 20


def _moved(history: RemoteHistory, past: RemoteHistory, segment: Segment) -> Segment:
    """The files of a segment of another disk, brought over."""
    for path in (
        segment.path,
        segment.offset_index.path,
        segment.time_index.path,
        segment.transaction_index.path,
    ):
        if not past.fs.exists(path):
            continue
        history.fs.mkdir(path.rpartition("/")[0])
        file = history.fs.open(path, create=True)
        file.truncate(0)
        file.write_at(past.fs.read_bytes(path), 0)
    return segment


# -- transactions ----------------------------------------------------------------------------


def _transactions(history: RemoteHistory) -> None:
    """Ten producers, every other one aborts; they overlap and span segments."""
    for round_ in range(12):
        for producer in range(1, 6):
            history.append(
                b"v" * 40,
                producer_id=producer,
                producer_epoch=0,
                base_sequence=history_sequence(history, producer),
                transactional=True,
            )
        history.mark(round_ % 5 + 1, commit=round_ % 2 == 0)
    for producer in range(1, 6):
        if _open_transaction(history.oracle, producer):
            history.mark(producer, commit=False)


def history_sequence(history: RemoteHistory, producer: int) -> int:
    counts: dict[int, int] = history.__dict__.setdefault("sequences", {})
    counts[producer] = counts.get(producer, -1) + 1
    return counts[producer]


def _open_transaction(log: Log, producer: int) -> bool:
    return log.producer_state.first_unstable_offset is not None


@pytest.mark.parametrize("max_bytes", [150, 400, 1200])
async def test_aborted_transactions_are_those_of_the_whole_log(max_bytes: int) -> None:
    history = RemoteHistory()
    _transactions(history)
    history.copy(roll=False)
    assert len(history.copied) > 3
    seen = 0
    for offset in range(history.log.local_log_start_offset):
        records = await history.answer(offset, max_bytes=max_bytes, with_aborted=True)
        last = headers_of(bytes_of(records))[-1]
        exact = history.oracle.reader.aborted_transactions(offset, last.next_offset)
        # A bound that is a little too great may name later ones; never too few.
        assert set(exact) <= set(records.aborted)
        assert len(set(records.aborted)) == len(records.aborted)
        segment_end = next(m.end_offset for m in history.copied if m.end_offset >= offset) + 1
        most = history.oracle.reader.aborted_transactions(offset, segment_end)
        assert set(records.aborted) <= set(most)
        seen += len(exact)
    assert seen > 0


def _in_transaction(history: RemoteHistory, *values: bytes) -> None:
    history.append(
        *values,
        producer_id=1,
        producer_epoch=0,
        base_sequence=history_sequence(history, 1),
        transactional=True,
    )


@pytest.mark.parametrize("is_committed", [True, False])
@pytest.mark.parametrize("goes_on", [True, False])
async def test_markers_of_another_history_do_not_count(is_committed: bool, goes_on: bool) -> None:
    """The transaction at 20 ended otherwise than its first leader thought, and told in segments."""
    history = RemoteHistory(segment_bytes=100_000)
    past = RemoteHistory(segment_bytes=100_000, begin=False)
    for number in range(20):
        for each in (history, past):
            each.append(bytes([number]) * 50)
    for each in (history, past):
        _in_transaction(each, b"v")
    for _ in range(8):
        past.append(b"lost" * 20)
    past.mark(1, commit=not is_committed)
    past.oracle.writer.roll()
    if goes_on:
        _in_transaction(past, b"lost")
        past.mark(1, commit=False)
        past.oracle.writer.roll()
    for segment in past.oracle.segment_facts()[:-1]:
        end = 30 if segment.base_offset == 0 else 32
        history.copy_segment(past.oracle, _moved(history, past, segment), end)
    history.epoch = 3
    # What its successor copied begins where the histories part, and ends before the other's end.
    for log in (history.oracle, history.log):
        log.writer.roll()
    history.append(b"w")
    history.mark(1, commit=is_committed)
    for log in (history.oracle, history.log):
        log.writer.roll()
    history.fill(20)
    for log in (history.oracle, history.log):
        log.writer.roll()
    facts = history.oracle.segment_facts()
    for at in (1, 2):
        history.copy_segment(history.oracle, facts[at], facts[at + 1].base_offset)
    history.log.highest_remote_offset = history.copied[-1].end_offset
    history.log.durable_remote_offset = history.copied[-1].end_offset
    history.log.update_config(
        history.log.config.model_copy(update={"local_retention_bytes": facts[-1].size})
    )
    history.log.retention.delete_old_segments()
    assert history.log.local_log_start_offset == facts[-1].base_offset

    records = await history.answer(20, with_aborted=True)
    headers = headers_of(bytes_of(records))
    assert headers[-1].next_offset == 21
    assert list(records.aborted) == history.oracle.reader.aborted_transactions(20, 21)
    assert list(records.aborted) == ([] if is_committed else [(1, 20)])


async def test_without_read_committed_no_transactions_are_named() -> None:
    history = RemoteHistory()
    _transactions(history)
    history.copy(roll=False)
    assert (await history.answer(0)).aborted == []


# -- damage ----------------------------------------------------------------------------------


async def test_a_damaged_index_is_fetched_again() -> None:
    history = _filled()
    await history.answer(0)
    await history.reader.close()
    (name,) = [n for n in history.files("/cache/indexes") if n.endswith(".index")][:1]
    file = history.fs.open(f"/cache/indexes/{name}")
    file.write_at(b"\x00\x00\x00\x05\x00\x00\x00\x11", 0)
    history.begin()
    for offset in range(history.copied[0].end_offset + 1):
        assert headers_of(bytes_of(await history.answer(offset)))[0].last_offset >= offset
    assert history.tier.index_calls[0] == 2


async def test_indexes_that_do_not_fit_the_log_are_an_error() -> None:
    history = _filled()
    stored = history.tier.segments[history.copied[0].id]
    stored.offset_index = b"\x00\x00\x00\x01\x00\x00\x00\x11"
    with pytest.raises(CorruptRemoteDataError):
        await history.answer(3)
    assert history.tier.index_calls[0] == 3
    assert not history.reader.pending


async def test_a_damaged_chunk_file_is_downloaded_again() -> None:
    history = _filled()
    expected = await history.replay()
    await history.reader.close()
    downloads = history.downloads
    name = history.files("/cache/chunks")[0]
    file = history.fs.open(f"/cache/chunks/{name[:2]}/{name}")
    file.write_at(b"\xff", 20)
    history.begin()
    assert await history.replay() == expected
    assert history.downloads == downloads + 1
    assert history.reader.chunks.damaged == 1


async def test_what_was_removed_from_the_store_leaves_the_caches() -> None:
    history = _filled()
    await history.replay()
    chunks, indexes = history.reader.chunks, history.reader.indexes
    sets, size = len(indexes), chunks.bytes
    history.reader.forget_segment(history.copied[0].id)
    history.reader.forget_segment(history.copied[0].id)
    await settle()
    assert (len(indexes), indexes.damaged) == (sets - 1, 0)
    assert chunks.bytes == size - history.copied[0].segment_size_bytes
    hex_ = history.copied[0].id.hex
    assert not any(hex_ in name for name in history.files("/cache/chunks"))
    history.metadata.tell(history.copied[0], SegmentState.DELETE_SEGMENT_STARTED)
    with pytest.raises(RemoteOffsetNotFoundError):
        await history.answer(0)


async def test_closing_ends_reads_and_loses_nothing() -> None:
    history = _filled()
    await history.answer(0)
    history.tier.gate("fetch_chunk").close()
    history.read(history.copied[-1].start_offset)
    await settle()
    await history.reader.close()
    assert not history.reader.pending
    assert not any(name.endswith(".tmp") for name in history.files("/cache"))


async def test_time_is_looked_up_from_the_log_start() -> None:
    history = _filled()
    found = await history.reader.find_timestamp(PARTITION, history.log, NOW_MS + 7, ALICE)
    assert found == history.oracle.reader.offset_for_timestamp(NOW_MS + 7)
