"""Truncation: what is left, and who may still be reading what is not."""

from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import (
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
