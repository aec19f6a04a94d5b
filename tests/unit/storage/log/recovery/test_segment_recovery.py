"""Scanning a segment: batches larger than a chunk, epochs, markers, the same state as appending."""

import tracemalloc

import pytest

from storage.log.recovery import segment_recovery
from tests.fakes.filesystem import FakeFilesystem
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
