"""A full disk: an append is written whole or undone, and the log goes on when there is room."""

import contextlib
import errno
from typing import Any

import pytest

from config.topic import TopicConfig
from protocol.records.control import build_end_transaction_marker
from storage.errors import (
    DiskError,
    LogDirectoryFullError,
    LogDirectoryOfflineError,
    OutOfOrderSequenceError,
)
from storage.log.log import Log
from storage.types.append_origin import AppendOrigin
from storage.types.transaction_marker import TransactionMarker
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import KEEP_ALL, FakeFilesystem
from tests.unit.storage.log.log_model import (
    NOW_MS,
    append,
    make_batch,
    open_log,
    read_batches,
    read_records,
    small_segments,
)

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def new_disk() -> FakeFilesystem:
    """The folder of the logs is there for good."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/data")
    filesystem.sync_directory("/")
    return filesystem


def transactional(value: bytes) -> memoryview:
    return make_batch(value, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)


def sequenced(value: bytes, sequence: int) -> memoryview:
    return make_batch(value, producer_id=1, producer_epoch=0, base_sequence=sequence)


def state_of(log: Log) -> tuple[object, ...]:
    """What an append that did not happen leaves as it was.

    Not the leader epochs: one may have begun, without a record, as with each new leader.
    """
    return (
        log.log_start_offset,
        log.log_end_offset,
        log.high_watermark,
        [(entry.producer_id, entry.last_sequence) for entry in producers(log)],
        read_batches(log),
        max(segment.max_timestamp for segment in log.segment_facts()),
    )


def producers(log: Log) -> list[Any]:
    return [entry for pid in range(10) if (entry := log.producer_state.last_entry(pid)) is not None]


@pytest.mark.parametrize("code", NO_ROOM)
@pytest.mark.parametrize("kind", ["write", "allocate", "create", "truncate"])
@pytest.mark.parametrize("preallocate", [False, True])
def test_wherever_the_room_ends_the_append_is_undone(
    code: int, kind: str, preallocate: bool
) -> None:
    """At every change of the disk that an append makes: batch, indexes, snapshot, epoch, segment.

    Writes are torn in the middle, as on a disk that is nearly full. The retry of a producer is no
    duplicate, and a start after a crash finds what was acknowledged and nothing else.
    """
    for skip in range(60):
        filesystem = new_disk()
        filesystem.tear_failed_writes = True
        log = open_log(filesystem, small_segments(220, preallocate=preallocate))
        for at in range(6):
            append(log, sequenced(b"x" * 40, at))
        filesystem.fail(kind, code, skip=skip, times=1)
        refused = 0
        for at in range(6, 14):
            before = state_of(log)
            with contextlib.suppress(DiskError):
                append(log, sequenced(b"y" * (50 + at), at), leader_epoch=at // 4)
                continue
            refused += 1
            assert log.failure is None
            assert state_of(log) == before
            found = open_log(filesystem.after_crash(KEEP_ALL), small_segments(220))
            assert read_batches(found) == read_batches(log)
            assert log.accept_appends()
            append(log, sequenced(b"y" * (50 + at), at), leader_epoch=at // 4)
        log.flusher.flush()
        assert [record.offset for record in read_records(log)] == list(range(14))
        assert [entry.last_sequence for entry in producers(log)] == [13]
        with pytest.raises(OutOfOrderSequenceError):
            append(log, sequenced(b"z", 15))
        assert read_batches(open_log(filesystem.after_crash())) == read_batches(log)
        assert not [
            entry.name
            for entry in filesystem.list_directory(log.directory)
            if entry.name.endswith(".tmp")
        ]
        if not refused:
            return
    raise AssertionError("there is always one more change")


def test_what_cannot_be_cut_off_now_is_cut_off_before_the_next_record() -> None:
    """On some file systems also cutting wants room: what is left must not become log."""
    filesystem = new_disk()
    filesystem.tear_failed_writes = True
    log = open_log(filesystem)
    append(log, make_batch(b"first"))
    filesystem.fail("write", errno.ENOSPC, path=".log")
    filesystem.fail("truncate", errno.ENOSPC, path=".log", times=2)
    with pytest.raises(DiskError):
        append(log, make_batch(b"lost" * 20))
    assert log.failure is None
    with pytest.raises(LogDirectoryFullError):
        append(log, make_batch(b"refused"))
    assert not log.accept_appends()
    assert log.accept_appends()
    append(log, make_batch(b"second"))
    assert [record.value for record in read_records(log)] == [b"first", b"second"]
    path = log.segment_facts()[-1].path
    assert filesystem.file_size(path) == log.segment_facts()[-1].size


def test_a_log_that_refuses_records_does_all_else() -> None:
    filesystem = new_disk()
    log = open_log(filesystem, small_segments(150))
    for _ in range(10):
        append(log, make_batch(b"x" * 40))
    log.update_high_watermark(log.log_end_offset)
    writes = len([event for event in filesystem.events if event.kind == "write"])
    log.refuse_appends(DiskError("cannot write", log.directory, errno.ENOSPC))
    with pytest.raises(LogDirectoryFullError) as refused:
        append(log, make_batch(b"x"))
    assert refused.value.is_full
    with pytest.raises(LogDirectoryFullError):
        log.follower.append(memoryview(read_batches(log)[0]))
    with pytest.raises(LogDirectoryFullError):
        log.markers.append([TransactionMarker(1, 0, False, 0, 0)], leader_epoch=0, now_ms=NOW_MS)
    assert len([event for event in filesystem.events if event.kind == "write"]) == writes
    assert len(read_records(log)) == 10
    log.flusher.flush()
    assert log.recovery_point == 10
    log.delete_records(5)
    assert log.retention.delete_old_segments() > 0
    assert log.accept_appends()
    assert append(log, make_batch(b"x")).first_offset == 10


def test_a_log_that_has_failed_takes_no_records_again() -> None:
    log = open_log(new_disk())
    log.refuse_appends(DiskError("cannot write", log.directory, errno.ENOSPC))
    log.fail(DiskError("cannot sync", log.directory, errno.EIO))
    assert not log.accept_appends()
    with pytest.raises(LogDirectoryOfflineError):
        append(log, make_batch(b"x"))


def test_a_failed_sync_is_final_also_where_it_says_no_space() -> None:
    """Blocks are given late on some file systems: what was accepted may be gone."""
    filesystem = new_disk()
    log = open_log(filesystem)
    append(log, make_batch(b"x"))
    filesystem.fail("sync", errno.ENOSPC, path=".log")
    with pytest.raises(DiskError):
        log.flusher.flush()
    assert log.failure is not None
    assert not log.accept_appends()


@pytest.mark.parametrize("together", [False, True])
def test_aborted_transactions_stay_aborted_without_room_for_their_index(together: bool) -> None:
    """The marker is in the log: readers are told from memory until the entry is written."""
    filesystem = new_disk()
    log = open_log(filesystem)
    append(log, transactional(b"x"))
    filesystem.fail("write", errno.ENOSPC, path=".txnindex", times=2)
    marker = TransactionMarker(1, 0, False, 0, 0)
    if together:
        log.markers.append([marker], leader_epoch=0, now_ms=NOW_MS)
    else:
        append_marker(log)
    log.update_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == log.log_end_offset == 2
    records = log.reader.read(0, max_bytes=1 << 20, end_offset=2, min_one_batch=True)
    assert records is not None
    assert log.reader.aborted_transactions(0, records) == [(1, 0)]
    with pytest.raises(LogDirectoryFullError):
        append(log, make_batch(b"y"))
    assert not log.accept_appends()
    assert log.accept_appends()
    assert log.reader.aborted_transactions(0, records) == [(1, 0)]
    append(log, make_batch(b"y"))
    log.flusher.flush()
    found = open_log(filesystem.after_crash(), TopicConfig())
    found.update_high_watermark(found.log_end_offset)
    again = found.reader.read(0, max_bytes=1 << 20, end_offset=2, min_one_batch=True)
    assert again is not None
    assert found.reader.aborted_transactions(0, again) == [(1, 0)]


def append_marker(log: Log) -> None:
    marker = build_end_transaction_marker(
        producer_id=1, producer_epoch=0, commit=False, coordinator_epoch=0, timestamp_ms=NOW_MS
    )
    log.writer.append_as_leader(
        memoryview(marker), leader_epoch=0, now_ms=NOW_MS, origin=AppendOrigin.COORDINATOR
    )


def test_an_index_is_not_durable_before_what_it_has_no_room_for() -> None:
    """Else a crash behind the recovery point would show the aborted records."""
    filesystem = new_disk()
    log = open_log(filesystem)
    append(log, transactional(b"x"))
    filesystem.fail("write", errno.ENOSPC, path=".txnindex", times=2)
    append_marker(log)
    with pytest.raises(DiskError):
        log.flusher.flush()
    assert log.failure is None
    assert log.recovery_point == 0
    log.flusher.flush()
    assert log.recovery_point == 2


def test_expired_segments_go_where_there_is_no_room_for_a_new_one() -> None:
    """All of a log is old: its active segment stays until there is a new one, the others go."""
    filesystem = new_disk()
    log = open_log(
        filesystem, small_segments(150, retention_ms=1), clock=ManualClock(NOW_MS + 1_000)
    )
    for _ in range(10):
        append(log, make_batch(b"x" * 40))
    log.update_high_watermark(log.log_end_offset)
    closed = len(log.segment_facts()) - 1
    assert closed > 2
    filesystem.fail("create", errno.ENOSPC, path=".log")
    assert log.retention.delete_old_segments() == closed
    assert log.retention.delete_old_segments() == 1
    assert log.log_start_offset == 10
