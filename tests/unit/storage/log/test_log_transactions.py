"""Transactions of a log across segments, restarts, retention and deletion."""

from random import Random

import pytest

from config.topic import TopicConfig
from protocol.records.control import build_end_transaction_marker
from storage.errors import BatchTooLargeError, InvalidProducerEpochError
from storage.log.log import Log
from storage.producers.table import PRODUCER_ID_EXPIRATION_MS
from storage.producers.verification import TransactionTerms
from storage.types.append_origin import AppendOrigin
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import (
    NOW_MS,
    Opened,
    append,
    make_batch,
    open_log,
    small_segments,
)

PID = 5


def write(log: Log, sequence: int = 0, value: bytes = b"v" * 100, *, pid: int = PID) -> None:
    """A transactional batch; three of them fill a segment."""
    append(
        log,
        make_batch(
            value,
            producer_id=pid,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=True,
            timestamp_ms=NOW_MS,
        ),
    )


def end(log: Log, *, commit: bool = False, pid: int = PID, epoch: int = 0, version: int = 0) -> int:
    """A marker; the last stable offset after it."""
    marker = build_end_transaction_marker(
        producer_id=pid,
        producer_epoch=epoch,
        commit=commit,
        coordinator_epoch=1,
        timestamp_ms=NOW_MS,
    )
    log.writer.append_as_leader(
        memoryview(marker),
        leader_epoch=0,
        now_ms=NOW_MS,
        origin=AppendOrigin.COORDINATOR,
        terms=TransactionTerms(version=version),
    )
    log.update_high_watermark(log.log_end_offset)
    return log.last_stable_offset


def plain(log: Log, count: int = 1) -> None:
    for _ in range(count):
        append(log, make_batch(b"p" * 100))


def reopened(filesystem: FakeFilesystem, log: Log, *, clean: bool) -> Log:
    """After a stop, or after a crash of the process."""
    if clean:
        log.close()
        return open_log(
            filesystem, small_segments(), opened=Opened(log.log_end_offset, clean_shutdown=True)
        )
    return open_log(filesystem, small_segments())


@pytest.mark.parametrize("clean", [True, False])
def test_an_open_transaction_survives(clean: bool) -> None:
    """In a snapshot or read back: it is held, goes on, ends, and is told to readers."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments())
    plain(log)
    for sequence in range(6):
        write(log, sequence)
        plain(log)
    assert len(log.segment_facts()) > 3
    log = reopened(filesystem, log, clean=clean)
    log.update_high_watermark(log.log_end_offset)
    assert (log.last_stable_offset, log.log_end_offset) == (1, 13)
    write(log, 6)
    assert end(log) == 15
    log = reopened(filesystem, log, clean=clean)
    log.update_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == 15
    assert log.reader.aborted_transactions(0, 15) == [(PID, 1)]
    assert log.reader.aborted_transactions(12, 13) == [(PID, 1)]


@pytest.mark.parametrize("clean", [True, False])
def test_a_version_2_marker_fences_after_a_restart(clean: bool) -> None:
    """Its epoch is all that is left of the producer; a batch of the old one is late."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments())
    write(log)
    end(log, epoch=1, version=2)
    log = reopened(filesystem, log, clean=clean)
    with pytest.raises(InvalidProducerEpochError):
        write(log, 1)
    with pytest.raises(InvalidProducerEpochError):
        end(log, epoch=1, version=2)


def test_a_silent_producer_with_an_open_transaction_stays() -> None:
    """Else nothing would hold the last stable offset, and no marker would find it."""
    log = open_log(FakeFilesystem())
    write(log)
    write(log, pid=6)
    end(log, pid=6)
    late = NOW_MS + PRODUCER_ID_EXPIRATION_MS
    assert [log.producer_state.remove_expired(late) for _ in range(3)] == [0, 1, 0]
    assert log.last_stable_offset == 0
    assert end(log) == log.log_end_offset
    assert [log.producer_state.remove_expired(late) for _ in range(3)] == [0, 1, 0]


def test_an_open_transaction_outlives_a_restart_after_its_expiry() -> None:
    """Snapshots are loaded by the same rule."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments())
    write(log)
    log.close()
    log = open_log(filesystem, opened=Opened(1, clean_shutdown=True))
    state = log.producer_state
    for _ in range(2):
        state.remove_expired(NOW_MS + 2 * PRODUCER_ID_EXPIRATION_MS)
    assert state.first_undecided_offset == 0


def test_records_are_deleted_past_the_start_of_an_open_transaction() -> None:
    """The last stable offset is never below the log start; the marker still ends it."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments())
    for sequence in range(6):
        write(log, sequence)
    log.delete_records(4)
    assert (log.log_start_offset, log.last_stable_offset) == (4, 4)
    log.retention.delete_old_segments()
    assert log.local_log_start_offset > 0
    log = reopened(filesystem, log, clean=False)
    log.update_high_watermark(log.log_end_offset)
    assert log.last_stable_offset <= max(log.log_start_offset, 4)
    assert end(log) == 7
    assert [pid for pid, _ in log.reader.aborted_transactions(4, 7)] == [PID]


def test_all_of_an_open_transaction_is_deleted() -> None:
    """Nothing is left to hold back but the records to come."""
    log = open_log(FakeFilesystem(), small_segments())
    write(log)
    plain(log, 3)
    log.delete_records(4)
    assert log.last_stable_offset == 4
    write(log, 1)
    assert log.last_stable_offset == 4
    assert end(log) == 6


def test_retention_does_not_wait_for_open_transactions() -> None:
    """As Kafka: a hanging transaction must not fill the disk."""
    log = open_log(FakeFilesystem(), small_segments(retention_bytes=400))
    write(log)
    plain(log, 12)
    assert log.retention.delete_old_segments() > 0
    assert log.log_start_offset > 0
    assert log.last_stable_offset == log.log_start_offset
    assert end(log) == log.log_end_offset


def test_a_cut_reopens_the_transaction() -> None:
    """Truncation takes the marker, and its entry in the transaction index."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments())
    for sequence in range(4):
        write(log, sequence)
    assert end(log) == 5
    log.truncation.truncate_to(4)
    assert log.last_stable_offset == 0
    assert log.reader.aborted_transactions(0, 9) == []
    assert end(log, commit=True) == 5
    assert log.reader.aborted_transactions(0, 9) == []


def test_markers_in_other_segments_than_their_data() -> None:
    """Readers of the data are told, however far away the marker is."""
    log = open_log(FakeFilesystem(), small_segments())
    for pid in (5, 6, 7):
        write(log, pid=pid)
    plain(log, 9)
    for pid in (6, 7, 5):
        end(log, pid=pid, commit=pid == 7)
    assert sorted(log.reader.aborted_transactions(0, 3)) == [(5, 0), (6, 1)]
    assert log.reader.aborted_transactions(1, 2) == [(6, 1), (5, 0)]
    assert log.last_stable_offset == 15


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_an_index_that_was_rebuilt_is_there_after_the_next_power_cut(seed: int | None) -> None:
    """The recovery point is the log's end: no flush comes before the segment counts as sound."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/data")
    filesystem.sync_directory("/")
    log = open_log(filesystem, small_segments())
    write(log)
    end(log)
    log.flusher.flush()
    filesystem.crash()
    log = open_log(filesystem, small_segments(), opened=Opened(2))
    assert log.recovery_point == log.log_end_offset == 2
    log.writer.roll()
    # As with any file that is replaced there.
    filesystem.sync_directory(log.directory)
    filesystem.crash(None if seed is None else Random(seed))
    log = open_log(filesystem, small_segments(), opened=Opened(2))
    assert log.reader.aborted_transactions(0, 2) == [(PID, 0)]


def test_a_marker_is_never_too_large() -> None:
    """An administrator who lets nobody write any more must not keep transactions open."""
    log = open_log(FakeFilesystem(), small_segments())
    write(log)
    log.update_config(log.config.model_copy(update={"max_message_bytes": 0}))
    with pytest.raises(BatchTooLargeError):
        write(log, 1)
    assert end(log) == 2


def test_readers_are_told_of_no_abort_above_what_is_stable() -> None:
    """It is held back with its records, by one that is open for long; then it is told."""
    log = open_log(FakeFilesystem(), TopicConfig())
    plain(log)
    write(log, pid=1)
    for pid in range(2, 7):
        write(log, pid=pid)
        assert end(log, pid=pid) == 1
    told = []
    for _ in range(2):
        records = log.reader.read(
            0, max_bytes=1 << 20, end_offset=log.last_stable_offset, min_one_batch=True
        )
        assert records is not None
        told.append(log.reader.aborted_transactions(0, records))
        end(log, pid=1)
    assert told[0] == []
    assert sorted(told[1]) == [(pid, 1 if pid == 1 else 2 * pid - 2) for pid in range(1, 7)]
