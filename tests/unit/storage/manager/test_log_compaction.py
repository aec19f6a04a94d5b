"""Compaction and what a start finds: nothing is lost or comes back by it."""

from config.topic import TopicConfig
from protocol.records.batch import LOG_OVERHEAD, iterate_batches
from storage.checkpoints.checkpoint_files import CLEANER_CHECKPOINT
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import read_records
from tests.unit.storage.manager.test_log_manager import A0, ID_A, Disk, append

DAY_MS = 86_400_000
CONFIG = TopicConfig(cleanup_policy=("compact",), segment_bytes=300, min_cleanable_dirty_ratio=0.01)


def test_a_power_cut_takes_no_key_of_which_a_record_was_on_disk() -> None:
    """Its last record was not yet: the one before it stays until then, whenever the power goes."""
    disk = Disk()
    manager = disk.started(CONFIG)
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
    append(log, key=b"k", value=b"1")
    append(log, 10, key=b"x")
    log.flusher.flush()
    append(log, key=b"k", value=b"2")
    append(log, 10, key=b"x")
    cuts: list[FakeFilesystem] = []
    disk.filesystem.observer = lambda _event: cuts.append(disk.filesystem.after_crash())
    assert manager.compaction.clean_dirtiest() is not None
    for disk.filesystem in cuts:
        found = disk.started(CONFIG).get(A0)
        assert found is not None
        assert b"k" in {record.key for record in read_records(found)}


def test_what_is_written_behind_a_cut_is_compacted_again() -> None:
    """The log has lost its end, and goes on: what a tombstone there has deleted stays deleted."""
    disk = Disk()
    manager = disk.started(CONFIG)
    log = manager.creation.get_or_create(A0, ID_A, CONFIG)
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
    manager = disk.started(CONFIG)
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
