"""Scanning a segment: batches larger than a chunk, epochs, markers, the same state as appending."""

import tracemalloc

import pytest

from storage.log.recovery import segment_recovery
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import (
    DIRECTORY,
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
