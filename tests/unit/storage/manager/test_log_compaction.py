"""Compaction: which log is next, what stops it, and that nothing is lost or comes back by it."""

import errno
from collections.abc import Callable

import pytest

from config.topic import TopicConfig
from protocol.records.batch import LOG_OVERHEAD, iterate_batches
from storage.checkpoints.checkpoint_files import CLEANER_CHECKPOINT, RECOVERY_POINT_CHECKPOINT
from storage.log.log import Log
from storage.manager.log_manager import LogManager
from storage.types.transaction_marker import TransactionMarker
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import NOW_MS, make_batch, read_records, small_segments
from tests.unit.storage.manager.log_disk import A0, A1, B0, ID_A, ID_B, Disk, append, append_durably

DAY_MS = 86_400_000
SMALL = TopicConfig(cleanup_policy=("compact",), segment_bytes=300, min_cleanable_dirty_ratio=0.01)


def test_a_power_cut_takes_no_key_of_which_a_record_was_on_disk() -> None:
    """Its last record was not yet: the one before it stays until then, whenever the power goes."""
    disk = Disk()
    manager = disk.started(SMALL)
    log = manager.creation.get_or_create(A0, ID_A, SMALL)
    append(log, key=b"k", value=b"1")
    append(log, 10, key=b"x")
    log.flusher.flush()
    append(log, key=b"k", value=b"2")
    append(log, 10, key=b"x")
    cuts: list[FakeFilesystem] = []
    disk.filesystem.observer = lambda _event: cuts.append(disk.filesystem.after_crash())
    assert manager.compaction.clean_dirtiest() is not None
    for disk.filesystem in cuts:
        found = disk.started(SMALL).get(A0)
        assert found is not None
        assert b"k" in {record.key for record in read_records(found)}


def ended_and_not_flushed(manager: LogManager) -> Log:
    """A record, and a transaction's that is to replace it, are on disk; its marker is not."""
    log = manager.creation.get_or_create(A0, ID_A, SMALL)
    append(log, key=b"k", value=b"committed")
    replacing = make_batch(
        b"new", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True
    )
    log.writer.append_as_leader(replacing, leader_epoch=0, now_ms=NOW_MS)
    append(log, 10, key=b"x")
    log.flusher.flush()
    marker = TransactionMarker(7, 0, True, 1, 0)
    log.markers.append([marker], leader_epoch=0, now_ms=NOW_MS)
    return log


def test_a_power_cut_that_opens_a_transaction_again_takes_no_committed_record() -> None:
    """Its records were on disk, and its marker not: what it was to replace stays until then."""
    disk = Disk()
    manager = disk.started(SMALL)
    log = ended_and_not_flushed(manager)
    append(log, key=b"x")
    assert log.last_stable_offset == log.log_end_offset > log.recovery_point
    manager.compaction.clean_dirtiest()
    disk.filesystem.crash()
    manager = disk.started(SMALL)
    found = manager.get(A0)
    assert found is not None
    assert found.producer_state.first_undecided_offset == 1
    marker = TransactionMarker(7, 0, False, 1, 0)
    found.markers.append([marker], leader_epoch=0, now_ms=NOW_MS)
    append(found, 10, key=b"x")
    found.flusher.flush()
    assert manager.compaction.clean_dirtiest() is not None
    values = {record.value for record in read_records(found)}
    assert b"committed" in values
    assert b"new" not in values


def test_a_log_that_is_cut_remembers_which_markers_are_not_on_disk() -> None:
    """What it knows of producers comes from a snapshot above them, and that does not name them."""
    disk = Disk()
    manager = disk.started(SMALL)
    log = ended_and_not_flushed(manager)
    log.writer.roll()
    log.writer.append_as_leader(make_batch(b"1"), leader_epoch=0, now_ms=NOW_MS)
    log.writer.append_as_leader(make_batch(b"2"), leader_epoch=0, now_ms=NOW_MS)
    assert log.producer_state.first_unstable_offset == 1
    manager.truncation.truncate_to(log, log.log_end_offset - 1)
    append(log, key=b"x")
    assert log.last_stable_offset == log.log_end_offset
    stats = manager.compaction.clean_dirtiest()
    assert stats is None or stats.end_offset <= 1
    log.flusher.flush()
    stats = manager.compaction.clean_dirtiest()
    assert stats is not None
    assert stats.end_offset > 1


def test_what_was_flushed_with_its_marker_is_compacted() -> None:
    """A transaction that ends after the flush keeps what it has written, and no more, from that."""
    disk = Disk()
    manager = disk.started(SMALL)
    log = manager.creation.get_or_create(A0, ID_A, SMALL)
    for sequence in range(20):
        batch = make_batch(
            b"%d" % sequence,
            producer_id=7,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=True,
        )
        log.writer.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
        marker = TransactionMarker(7, 0, True, 1, 0)
        log.markers.append([marker], leader_epoch=0, now_ms=NOW_MS)
        log.update_high_watermark(log.log_end_offset)
        if sequence == 9:
            log.flusher.flush()
            flushed = log.log_end_offset
    stats = manager.compaction.clean_dirtiest()
    assert stats is not None
    assert flushed - 6 < stats.end_offset <= flushed
    log.flusher.flush()
    stats = manager.compaction.clean_dirtiest()
    assert stats is not None
    assert stats.end_offset == log.segments.active.base_offset


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOSPC])
def test_what_a_transaction_wrote_that_no_file_names_as_aborted_replaces_nothing(code: int) -> None:
    """There was no room for the entry of the index: it is in memory, where no cleaner reads it."""
    disk = Disk()
    manager = disk.started(SMALL)
    log = manager.creation.get_or_create(A0, ID_A, SMALL)
    append(log, key=b"k", value=b"committed")
    aborted = make_batch(
        b"aborted", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True
    )
    log.writer.append_as_leader(aborted, leader_epoch=0, now_ms=NOW_MS)
    append(log, 10, key=b"x")
    log.flusher.flush()
    disk.filesystem.fail("open", code, path=".txnindex")
    disk.filesystem.fail("create", code, path=".txnindex")
    marker = TransactionMarker(7, 0, False, 1, 0)
    log.markers.append([marker], leader_epoch=0, now_ms=NOW_MS)
    log.update_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == log.log_end_offset
    manager.compaction.clean_dirtiest()
    assert b"committed" in {record.value for record in read_records(log)}
    disk.filesystem.heal()
    for _ in range(2):
        manager.room.check()
    append(log, 10, key=b"x")
    log.flusher.flush()
    assert manager.compaction.clean_dirtiest() is not None
    values = {record.value for record in read_records(log)}
    assert b"committed" in values
    assert b"aborted" not in values


def test_what_is_written_behind_a_cut_is_compacted_again() -> None:
    """The log has lost its end, and goes on: what a tombstone there has deleted stays deleted."""
    disk = Disk()
    manager = disk.started(SMALL)
    log = manager.creation.get_or_create(A0, ID_A, SMALL)
    append(log, key=b"gone", value=b"v")
    append(log, 40)
    log.flusher.flush()
    stats = manager.compaction.clean_dirtiest()
    assert stats is not None
    manager.checkpoints.write()
    first, *others = log.segment_facts()
    for segment in others:
        disk.filesystem.unlink(segment.path)
    data = disk.filesystem.peek(first.path)
    (_, header), *_ = iterate_batches(memoryview(data))
    disk.filesystem.poke(first.path, data[: header.batch_length + LOG_OVERHEAD])
    disk.filesystem.sync_directory(log.directory)
    disk.filesystem.crash()
    manager = disk.started(SMALL)
    found = manager.get(A0)
    assert found is not None
    log = found
    assert log.log_end_offset == 1 < stats.end_offset
    cleaned = manager.directories[0].checkpointed(CLEANER_CHECKPOINT, A0)
    assert cleaned == log.log_end_offset
    append(log, key=b"gone", value=None)
    for _ in range(3):
        append(log, 40)
        log.flusher.flush()
        assert manager.compaction.clean_dirtiest() is not None
        disk.clock.advance(2 * DAY_MS)
    assert b"gone" not in {record.key for record in read_records(log)}


def test_compaction_pass(disk: Disk) -> None:
    """The dirtiest log is compacted, the checkpoint says how far, and it is then clean."""
    config = TopicConfig(
        cleanup_policy=("compact",), segment_bytes=300, min_cleanable_dirty_ratio=0.1
    )
    manager = disk.started()
    log = manager.creation.get_or_create(A0, ID_A, config)
    append_durably(log, 40)
    before = log.size()
    stats = manager.compaction.clean_dirtiest()
    assert stats is not None
    assert log.size() < before / 3
    assert manager.directories[0].checkpointed("cleaner-offset-checkpoint", A0) == stats.end_offset
    assert stats.end_offset == log.active_base_offset
    assert manager.compaction.clean_dirtiest() is None
    log.retention.delete_old_segments()
    manager.shutdown()
    again = disk.started(config)
    assert again.compaction.clean_dirtiest() is None


@pytest.mark.parametrize("hangs_at_batch", [1, 3, 30, 60])
def test_a_log_is_deleted_under_its_compaction(
    disk: Disk, monkeypatch: pytest.MonkeyPatch, hangs_at_batch: int
) -> None:
    """Nobody waits for a run that hangs, and whatever it does afterwards harms no namesake."""
    config = TopicConfig(
        cleanup_policy=("compact",),
        segment_bytes=300,
        min_cleanable_dirty_ratio=0.1,
        file_delete_delay_ms=0,
    )
    batches = 0

    def hang(_size: int, _check_done: Callable[[], None]) -> None:
        nonlocal batches
        batches += 1
        if batches == hangs_at_batch:
            assert manager.deletion.delete_all([A0, A1]) == 2
            assert manager.deletion.remove_deleted() == 1, "only the one that nobody compacts"
            append_durably(manager.creation.get_or_create(A0, ID_B, config), 25)

    manager = disk.manager(cleaner_throttle=hang)
    manager.startup.load(lambda _topic: config)
    abandon = manager.cleaning.abandon
    monkeypatch.setattr(
        manager.cleaning, "abandon", lambda partitions: abandon(partitions, timeout_s=0.0)
    )
    append_durably(manager.creation.get_or_create(A0, ID_A, config), 40)
    append_durably(manager.creation.get_or_create(A1, ID_A, config), 1)
    assert manager.compaction.clean_dirtiest() is None
    assert batches >= hangs_at_batch
    assert not manager.offline_directories
    assert not manager.cleaning.uncleanable
    assert manager.directories[0].checkpointed("cleaner-offset-checkpoint", A0) is None
    log = manager.get(A0)
    assert log is not None
    assert (log.topic_id, log.log_end_offset) == (ID_B, 25)
    assert manager.deletion.remove_deleted() == 1
    files = [entry.name for entry in disk.filesystem.list_directory(log.directory)]
    assert not [name for name in files if "cleaned" in name]
    assert manager.compaction.clean_dirtiest() is not None


def test_damaged_log_is_left_alone(disk: Disk) -> None:
    """Compaction gives the partition up; it still serves, and others are still compacted."""
    config = TopicConfig(
        cleanup_policy=("compact",), segment_bytes=300, min_cleanable_dirty_ratio=0.1
    )
    manager = disk.started()
    append_durably(manager.creation.get_or_create(A0, ID_A, config), 40)
    append_durably(manager.creation.get_or_create(B0, ID_B, config), 20)
    path = "/one/a-0/00000000000000000000.log"
    damaged = bytearray(disk.filesystem.peek(path))
    damaged[-1] ^= 1
    disk.filesystem.poke(path, bytes(damaged))
    assert manager.compaction.clean_dirtiest() is None
    assert list(manager.cleaning.uncleanable) == [A0]
    assert manager.compaction.clean_dirtiest() is not None
    assert manager.get(A0) is not None
    assert disk.filesystem.peek(path) == bytes(damaged)


@pytest.mark.parametrize(
    "lost",
    [(), (RECOVERY_POINT_CHECKPOINT,), (RECOVERY_POINT_CHECKPOINT, CLEANER_CHECKPOINT)],
)
def test_a_formerly_compacted_topic_survives_a_scan_of_everything(lost: tuple[str, ...]) -> None:
    """Whatever checkpoints are left: what compaction left and was flushed is there after a kill."""
    disk = Disk()
    compact = small_segments(600, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.01)
    manager = disk.started(compact)
    disk.filesystem.sync_directory("/")
    log = manager.creation.get_or_create(A0, ID_A, compact)
    for number in range(60):
        append(log, key=b"%d" % (number % 7), value=b"v" * 40)
    log.flusher.flush(log.active_base_offset)
    assert manager.compaction.clean_dirtiest() is not None
    manager.checkpoints.write()
    expected = read_records(log)
    assert 7 <= len(expected) < 60
    for name in lost:
        disk.filesystem.remove(f"/one/{name}")
    disk.filesystem = disk.filesystem.after_crash()
    again = disk.started(small_segments(600)).get(A0)
    assert again is not None
    found = read_records(again)
    assert found == expected[: len(found)]
    assert len(found) >= len([r for r in expected if r.offset < log.recovery_point]) > 0
    assert again.set_aside == ()
