"""Scanning a segment: batches larger than a chunk, epochs, markers, the same state as appending."""

import tracemalloc

import pytest

from storage.log.recovery import segment_recovery
from tests.fakes.filesystem import KEEP_ALL, FakeFilesystem, PowerCut
from tests.unit.storage.log.log_model import (
    DIRECTORY,
    Opened,
    append,
    make_batch,
    open_log,
    read_batches,
    small_segments,
)

WIDE = small_segments(1 << 20)


@pytest.mark.parametrize("chunk", [64, 100, 150, 1000, 1 << 20])
def test_the_chunk_size_makes_no_difference(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches cut by its end, and larger than it, are read whole."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, WIDE)
    for size in (1, 500, 3, 70, 2000, 1, 1, 90):
        append(log, make_batch(b"x" * size))
    expected = read_batches(log)
    indexes = log.segment_facts()[0].offset_index.entries()
    monkeypatch.setattr(segment_recovery, "CHUNK_BYTES", chunk)
    recovered = open_log(filesystem, WIDE)
    assert read_batches(recovered) == expected
    assert recovered.segment_facts()[0].offset_index.entries() == indexes
    assert recovered.log_end_offset == 8


def test_epochs_come_from_the_batches_when_the_checkpoint_is_gone() -> None:
    """And from the checkpoint while it is there."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, WIDE)
    for epoch in (0, 0, 3, 3, 5):
        append(log, make_batch(b"x"), leader_epoch=epoch)
    filesystem.remove(f"{DIRECTORY}/leader-epoch-checkpoint")
    assert open_log(filesystem, WIDE).leader_epochs.entries() == [(0, 0), (3, 2), (5, 4)]


def test_epochs_come_back_with_records_whose_deletion_was_not_checkpointed() -> None:
    """The log start is checkpointed later than the epochs: a crash between them brings it back."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, WIDE)
    for epoch in (0, 0, 3, 3, 5):
        append(log, make_batch(b"x"), leader_epoch=epoch)
    log.delete_records(5)
    append(log, make_batch(b"x"), leader_epoch=6)
    reopened = open_log(filesystem, WIDE)
    assert reopened.log_start_offset == 0
    assert reopened.leader_epochs.entries() == [(0, 0), (3, 2), (5, 4), (6, 5)]


def test_epochs_of_deleted_records_stay_away() -> None:
    """Where the deletion was checkpointed."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, WIDE)
    for epoch in (0, 0, 3, 3, 5):
        append(log, make_batch(b"x"), leader_epoch=epoch)
    log.delete_records(3)
    append(log, make_batch(b"x"), leader_epoch=6)
    reopened = open_log(filesystem, WIDE, opened=Opened(0, log_start_offset=3))
    assert reopened.leader_epochs.entries() == [(3, 3), (5, 4), (6, 5)]


def stopped_in_a_cut() -> FakeFilesystem:
    """Three records of epoch 0 are on disk; the last two were cut off, which was not synced yet."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, WIDE)
    for _ in range(3):
        append(log, make_batch(b"former"))
    log.flusher.flush()
    filesystem.sync_directory("/")
    filesystem.stop_after = filesystem.changes + 1
    with pytest.raises(PowerCut):
        log.truncation.truncate_to(1)
    filesystem.crash(KEEP_ALL)
    return filesystem


@pytest.mark.parametrize(
    ("opened", "end"),
    [
        (Opened(0, has_other_replicas=True), 1),
        (Opened(2, has_other_replicas=True), 2),
        (Opened(0), 3),
    ],
)
def test_what_was_cut_does_not_come_back_under_a_later_epoch(opened: Opened, end: int) -> None:
    """Not below the recovery point, nor where no other replica can have had the log cut."""
    filesystem = stopped_in_a_cut()
    log = open_log(filesystem, WIDE, opened=opened)
    assert log.log_end_offset == 1
    append(log, make_batch(b"y"), leader_epoch=2)
    filesystem.crash()
    log = open_log(filesystem, WIDE, opened=opened)
    assert log.log_end_offset == end
    assert len(log.set_aside) == (end < 3)


def test_epochs_that_were_read_from_batches_say_nothing_of_a_cut() -> None:
    """One that is too high, by a damage that no sum covers, leaves the others of no consequence."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, WIDE)
    for epoch in (0, 4, 4):
        append(log, make_batch(b"x"), leader_epoch=epoch)
    path = log.segment_facts()[0].path
    data = bytearray(filesystem.peek(path))
    data[12:16] = (5).to_bytes(4, "big")
    filesystem.poke(path, bytes(data))
    filesystem.remove(f"{DIRECTORY}/leader-epoch-checkpoint")
    assert open_log(filesystem, WIDE, opened=Opened(has_other_replicas=True)).log_end_offset == 3


def test_an_announced_length_costs_no_memory() -> None:
    """A damaged length is compared with the file before a buffer is made for it."""
    filesystem = FakeFilesystem()
    log = open_log(filesystem, WIDE)
    append(log, make_batch(b"x"))
    path = log.segment_facts()[0].path
    data = bytearray(filesystem.peek(path))
    data[8:12] = (0x7FFF_0000).to_bytes(4, "big")
    filesystem.poke(path, bytes(data))
    tracemalloc.start()
    recovered = open_log(filesystem, WIDE)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert recovered.log_end_offset == 0
    assert peak < 1 << 20
