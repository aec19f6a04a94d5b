"""Truncation: what is left, and who may still be reading what is not."""

import errno
from random import Random

import pytest

from config.topic import TopicConfig
from protocol.records.builder import build_batch
from storage.checkpoints.leader_epochs import LeaderEpochCache
from storage.errors import CutSegmentError, DiskError, LogDirectoryOfflineError
from storage.log.log import Log
from storage.log.truncation import StateBelow
from storage.producers.snapshot import encode_rows
from storage.types.transaction_marker import TransactionMarker
from tests.fakes.filesystem import KEEP_ALL, FakeFilesystem
from tests.unit.storage.log.log_model import (
    NOW_MS,
    Opened,
    append,
    make_batch,
    open_log,
    read_records,
    small_segments,
)


def test_a_truncation_takes_whole_batches_and_their_epochs() -> None:
    """The batch that holds the offset goes as well, and all that was known of it."""
    log = open_log(FakeFilesystem(), small_segments(150))
    append(log, make_batch(b"a", b"b"))
    for epoch in (1, 2, 3):
        append(log, make_batch(b"x" * 40), leader_epoch=epoch)
    log.flusher.flush()
    assert log.truncation.truncate_to(1)
    assert log.log_end_offset == log.high_watermark == log.recovery_point == 0
    assert log.latest_leader_epoch == -1
    assert log.segment_facts() == (log.segments.active,)
    assert append(log, make_batch(b"n"), leader_epoch=4).first_offset == 0


@pytest.mark.parametrize("offset", [5, 7])
def test_a_cut_between_batches_of_a_compacted_log_leaves_no_hole(offset: int) -> None:
    """It goes on where the last batch ends: its leader may have records from there on.

    As a start would, to which it would be a log that ends before what is known of it.
    """
    config = small_segments(10_000, cleanup_policy=("compact",))
    filesystem = FakeFilesystem()
    log = open_log(filesystem, config)

    def follow(offset: int, epoch: int) -> None:
        batch = build_batch([(b"k", b"x", (), NOW_MS)], base_offset=offset, leader_epoch=epoch)
        log.follower.append(memoryview(batch), fetch_offset=log.log_end_offset)

    for offset in (0, 1, 2, 7):
        follow(offset, 0)
    log.flusher.flush()
    log.truncation.truncate_to(offset)
    assert log.log_end_offset == log.recovery_point == 3
    filesystem.crash(KEEP_ALL)
    found = open_log(filesystem, config, opened=Opened(recovery_point=log.recovery_point))
    assert (found.log_end_offset, found.is_short) == (3, False)
    follow(3, 1)
    assert log.leader_epochs.entries() == [(0, 0), (1, 3)]


@pytest.mark.parametrize("fully", [False, True])
def test_what_is_written_behind_a_truncation_waits_for_its_own_copy(fully: bool) -> None:
    """A past leader had copied what was there; local retention went by that until it was told."""
    config = small_segments(150, remote_storage_enable=True, local_retention_bytes=0)
    log = open_log(FakeFilesystem(), config)
    for _ in range(6):
        append(log, make_batch(b"x" * 40))
    log.highest_remote_offset = log.durable_remote_offset = 4
    if fully:
        log.truncation.truncate_fully_and_start_at(2)
    else:
        log.truncation.truncate_to(2)
    assert log.highest_remote_offset == 1
    for _ in range(6):
        append(log, make_batch(b"y" * 40), leader_epoch=1)
    log.update_high_watermark(log.log_end_offset)
    log.retention.delete_old_segments()
    assert log.local_log_start_offset == 2
    log.truncation.truncate_to(7)
    assert log.highest_remote_offset == 1


def transactional(log: Log, sequence: int) -> None:
    batch = make_batch(
        b"t", producer_id=7, producer_epoch=0, base_sequence=sequence, transactional=True
    )
    log.writer.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)


def committed(log: Log, *, aborted: bool = False) -> None:
    marker = TransactionMarker(7, 0, not aborted, 1, 0)
    log.markers.append([marker], leader_epoch=0, now_ms=NOW_MS)


def test_what_was_stable_stays_so_when_the_log_is_cut_behind_it() -> None:
    """The last stable offset went back to where a transaction began that had long ended.

    It stayed there until the high watermark moved: also where the log led next, and nobody wrote
    to it.
    """
    log = open_log(FakeFilesystem(), small_segments(4000))
    append(log, make_batch(b"a"))
    transactional(log, 0)
    committed(log)
    log.update_high_watermark(3)
    log.writer.append_as_leader(make_batch(b"b"), leader_epoch=0, now_ms=NOW_MS)
    assert (log.high_watermark, log.last_stable_offset) == (3, 3)
    log.truncation.truncate_to(3)
    assert (log.high_watermark, log.last_stable_offset) == (3, 3)


def test_a_transaction_that_is_not_committed_yet_is_not_stable_behind_a_cut() -> None:
    """Be it open, or its marker above the high watermark."""
    log = open_log(FakeFilesystem(), small_segments(4000))
    append(log, make_batch(b"a"))
    transactional(log, 0)
    committed(log)
    log.writer.append_as_leader(make_batch(b"b"), leader_epoch=0, now_ms=NOW_MS)
    log.truncation.truncate_to(3)
    assert (log.high_watermark, log.last_stable_offset) == (1, 1)
    log.update_high_watermark(3)
    assert log.last_stable_offset == 3
    transactional(log, 1)
    transactional(log, 2)
    log.update_high_watermark(4)
    log.truncation.truncate_to(4)
    assert (log.log_end_offset, log.high_watermark, log.last_stable_offset) == (4, 4, 3)


def test_what_was_aborted_above_a_cut_does_not_come_back_with_a_power_cut() -> None:
    """The index had no entry left, and nothing synced it: what it had hid committed records."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/data")
    filesystem.sync_directory("/")
    log = open_log(filesystem, small_segments(4000))
    append(log, make_batch(b"a"))
    transactional(log, 0)
    committed(log, aborted=True)
    log.flusher.flush()
    assert log.reader.aborted_transactions(0, 3)
    log.truncation.truncate_to(1)
    transactional(log, 0)
    committed(log)
    log.flusher.flush()
    log.writer.roll()
    append(log, make_batch(b"b"))
    log.flusher.flush()
    again = open_log(
        filesystem.after_crash(), small_segments(4000), opened=Opened(log.recovery_point)
    )
    assert again.log_end_offset == 4
    assert again.reader.aborted_transactions(0, 4) == []


def test_producers_of_the_former_log_do_not_come_back_with_a_power_cut() -> None:
    """A snapshot of it, as of the offset at which the log begins anew.

    The transaction that was open in it held back the readers of committed records for ever.
    """
    filesystem = FakeFilesystem()
    filesystem.mkdir("/data")
    filesystem.sync_directory("/")
    log = open_log(filesystem)
    append(log, make_batch(b"a"))
    transactional(log, 0)
    log.close()
    log.truncation.truncate_fully_and_start_at(2)
    filesystem.crash()
    found = open_log(filesystem, opened=Opened(recovery_point=log.recovery_point))
    assert (found.log_start_offset, found.log_end_offset) == (2, 2)
    assert found.producer_state.last_entry(7) is None
    assert found.producer_state.first_undecided_offset is None


def test_a_truncation_to_the_end_removes_nothing() -> None:
    log = open_log(FakeFilesystem())
    append(log, make_batch(b"a", b"b"))
    assert not log.truncation.truncate_to(2)
    assert [record.value for record in read_records(log)] == [b"a", b"b"]


def test_a_slice_outlives_its_segment() -> None:
    """Retention, truncation and the pool of open files leave readers alone."""
    filesystem = FakeFilesystem(open_files_max=1)
    log = open_log(filesystem, small_segments(150))
    for number in range(4):
        append(log, make_batch(bytes([65 + number]) * 40))
    found = log.reader.read(0, max_bytes=999, end_offset=4, min_one_batch=True)
    assert found is not None
    log.truncation.truncate_fully_and_start_at(100)
    data = found.file.read_at(found.length, found.position)
    assert b"A" * 40 in data
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (100, 100, 100)
    assert append(log, make_batch(b"n")).first_offset == 100


def written(filesystem: FakeFilesystem) -> Log:
    """Six batches of one producer in three epochs and several segments, all of it on disk."""
    log = open_log(filesystem, small_segments(250))
    for number in range(6):
        batch = make_batch(b"x" * 40, producer_id=7, producer_epoch=0, base_sequence=number)
        append(log, batch, leader_epoch=number // 2)
    log.flusher.flush()
    for path in ("/data", "/"):
        filesystem.sync_directory(path)
    return log


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("create", "leader-epoch-checkpoint.tmp"),
        ("rename", "leader-epoch-checkpoint.tmp"),
        ("write", ".index"),
        ("write", ".timeindex"),
        ("create", ".index"),
        ("create", ".snapshot"),
        ("write", ".snapshot"),
    ],
)
@pytest.mark.parametrize("offset", range(6))
def test_a_truncation_without_room_is_a_whole_one(kind: str, path: str, offset: int) -> None:
    """The end had moved by the time the disk refused: a second attempt found nothing to do.

    So the producers of what was gone stayed: of a leader of them, what they sent again was a
    duplicate of records that it did not have.
    """
    filesystem = FakeFilesystem()
    log = written(filesystem)
    filesystem.fail(kind, errno.ENOSPC, path=path)
    log.truncation.truncate_to(offset)
    filesystem.heal()
    assert log.log_end_offset == offset
    entry = log.producer_state.last_entry(7)
    assert (-1 if entry is None else entry.last_sequence) == offset - 1
    assert log.latest_leader_epoch == (offset - 1) // 2
    log.begin_to_lead(3)
    batch = make_batch(b"y" * 40, producer_id=7, producer_epoch=0, base_sequence=offset)
    assert append(log, batch, leader_epoch=3).first_offset == offset
    epochs = log.leader_epochs.entries()
    log.flusher.flush()
    on_disk = LeaderEpochCache(log.leader_epochs.path, filesystem.after_crash())
    assert on_disk.entries() == epochs
    records = read_records(log)
    again = open_log(filesystem, small_segments(250), opened=Opened(log.recovery_point))
    assert read_records(again) == records
    assert len(records) == offset + 1


@pytest.mark.parametrize("kind", ["open", "sync_directory"])
def test_a_truncation_that_stops_half_way_puts_the_log_out_of_service(kind: str) -> None:
    """Wherever that is, the next start finds a log with the producers that it has."""
    stopped = 0
    for skip in range(20):
        filesystem = FakeFilesystem(open_files_max=1)
        log = written(filesystem)
        filesystem.fail(kind, errno.EMFILE, skip=skip)
        try:
            log.truncation.truncate_to(1)
        except DiskError:
            stopped += 1
            # Nor does a second attempt pass for a whole one, without what the first has left.
            for cut in (log.truncation.truncate_to, log.truncation.truncate_fully_and_start_at):
                with pytest.raises(LogDirectoryOfflineError):
                    cut(1)
            log = open_log(filesystem, small_segments(250), opened=Opened(0))
        filesystem.heal()
        entry = log.producer_state.last_entry(7)
        assert entry is not None
        assert entry.last_sequence == log.log_end_offset - 1
    assert stopped


EPOCHS = ((0, 0), (2, 4), (5, 9))


def remote_segments() -> TopicConfig:
    return small_segments(1000, remote_storage_enable=True)


def below(at: int = 12) -> StateBelow:
    """Twelve offsets of three epochs, by a producer that has a transaction open."""
    row = (7, 1, 2, 11, 0, NOW_MS, 0, 10)
    return StateBelow(at, EPOCHS, encode_rows([(row,)], 1))


def reopened(filesystem: FakeFilesystem, log_start_offset: int) -> Log:
    return open_log(filesystem, remote_segments(), opened=Opened(log_start_offset=log_start_offset))


def test_a_log_goes_on_behind_what_is_elsewhere() -> None:
    """It knows the epochs and the producers of what it does not have."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, remote_segments())
    append(log, make_batch(b"old"), leader_epoch=1)
    log.truncation.start_behind(below(), log_start_offset=5, now_ms=NOW_MS)
    assert (log.log_start_offset, log.local_log_start_offset, log.log_end_offset) == (5, 12, 12)
    assert (log.high_watermark, log.last_stable_offset) == (12, 10)
    assert log.leader_epochs.entries() == [(2, 5), (5, 9)]
    assert log.latest_leader_epoch == 5
    assert [segment.base_offset for segment in log.segments] == [12]
    log.flusher.flush()
    again = open_log(filesystem, remote_segments())
    assert (again.log_end_offset, again.producer_state.last_entry(7) is not None) == (12, True)


@pytest.mark.parametrize("records", [0, 3])
@pytest.mark.parametrize("behind", [False, True])
def test_where_a_log_begins_anew_is_durable_when_that_is_said(records: int, behind: bool) -> None:
    """Its recovery point is: of a log that ends below, records would count as lost."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/data")
    filesystem.sync_directory("/")
    log = open_log(filesystem, remote_segments())
    for _ in range(records):
        append(log, make_batch(b"old"), leader_epoch=1)
    log.close(clean=True)
    log = open_log(filesystem, remote_segments())
    if behind:
        log.truncation.start_behind(below(), log_start_offset=5, now_ms=NOW_MS)
    else:
        log.truncation.truncate_fully_and_start_at(12)
    assert log.recovery_point == 12
    again = open_log(
        filesystem.after_crash(), remote_segments(), opened=Opened(12, log.log_start_offset)
    )
    assert [segment.base_offset for segment in again.segments] == [12]
    assert (again.log_start_offset, again.log_end_offset) == (log.log_start_offset, 12)


@pytest.mark.parametrize("keep", ["what was synced", "all", "some"])
def test_wherever_a_crash_stops_it_a_log_that_begins_there_knows_what_lies_before(
    keep: str,
) -> None:
    """Else it would be taken for one that has no past: producers' retries would be doubled."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, remote_segments())
    append(log, make_batch(b"old" * 30), leader_epoch=1)
    append(log, make_batch(b"old" * 30), leader_epoch=3)
    log.flusher.flush()
    crashed: list[FakeFilesystem] = []

    def after_change(_event: object) -> None:
        how = {"what was synced": None, "all": KEEP_ALL, "some": Random(len(crashed))}[keep]
        crashed.append(filesystem.after_crash(how))

    filesystem.observer = after_change
    log.truncation.start_behind(below(), log_start_offset=5, now_ms=NOW_MS)
    filesystem.observer = None
    assert len(crashed) > 10
    begun = 0
    for disk in crashed:
        again = reopened(disk, 0)
        assert again.log_end_offset in (0, 1, 2, 5, 12), again.log_end_offset
        if again.log_end_offset == 12:
            begun += 1
            assert again.leader_epochs.epoch_for_offset(8) == 2
            assert again.leader_epochs.epoch_for_offset(11) == 5
            entry = again.producer_state.last_entry(7)
            assert entry is not None
            assert (entry.epoch, entry.txn_first_offset) == (1, 10)
    assert begun or keep != "all"


def test_nothing_follows_on_a_part_of_a_batch() -> None:
    """A closed segment was cut within a batch, and is the last one after the truncation."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, small_segments(400))
    for number in range(12):
        append(log, make_batch(b"%d" % number * 50))
    first, second, *_ = log.segments
    assert second.base_offset >= 3
    size = first.size // second.base_offset
    log.close(clean=True)
    file = filesystem.open(first.path)
    file.truncate(2 * size + 7)
    file.close()
    log = open_log(filesystem, small_segments(400), opened=Opened(12, clean_shutdown=True))
    with pytest.raises(CutSegmentError):
        log.reader.read(2, max_bytes=9999, end_offset=12, min_one_batch=True)
    log.truncation.truncate_to(second.base_offset - 1)
    assert log.log_end_offset == 2
    for number in range(2, 12):
        assert append(log, make_batch(b"%d" % number * 50)).first_offset == number
    assert [record.offset for record in read_records(log)] == list(range(12))
