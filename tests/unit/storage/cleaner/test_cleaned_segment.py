"""The segment that compaction writes."""

import pytest

from protocol.records.batch import read_header
from protocol.records.builder import build_batch
from storage.cleaner.cleaned_segment import CleanedSegment
from storage.errors import DiskError
from storage.index.transaction_index import AbortedTxn
from tests.fakes.filesystem import FakeFilesystem

STEM = "/d/00000000000000000010"


@pytest.fixture
def filesystem() -> FakeFilesystem:
    fake = FakeFilesystem()
    fake.mkdir("/d")
    fake.sync_directory("/")
    return fake


def fill(segment: CleanedSegment) -> list[bytes]:
    """Five batches of 71 bytes with offsets 10, 12, 14, 16, 18; times rise, fall, rise."""
    batches = []
    for index, stamp in enumerate((100, 300, 200, 300, 400)):
        batch = build_batch([(b"k", b"vv", (), stamp)], base_offset=10 + 2 * index)
        segment.append(read_header(batch), batch)
        batches.append(bytes(batch))
    return batches


def test_files(filesystem: FakeFilesystem) -> None:
    """Log, sparse indexes by the rules of a live segment, aborted transactions; all durable."""
    segment = CleanedSegment("/d", 10, filesystem, index_interval_bytes=100)
    batches = fill(segment)
    size = len(batches[0])
    segment.append_aborted(AbortedTxn(1, 10, 12, 13))
    segment.finish()
    disk = filesystem.after_crash(None)
    assert disk.peek(f"{STEM}.log.cleaned") == b"".join(batches)
    # More than 100 bytes after the last entry: the third batch, and the fifth.
    assert disk.peek(f"{STEM}.index.cleaned") == b"".join(
        value.to_bytes(4, "big") for value in (4, 2 * size, 8, 4 * size)
    )
    assert disk.peek(f"{STEM}.timeindex.cleaned") == b"".join(
        stamp.to_bytes(8, "big") + relative.to_bytes(4, "big")
        for stamp, relative in ((300, 2), (400, 8))
    )
    assert len(disk.peek(f"{STEM}.txnindex.cleaned")) == 34


def test_remains_are_overwritten(filesystem: FakeFilesystem) -> None:
    """Of a run that was cut off."""
    for kind in ("log", "index", "timeindex", "txnindex"):
        filesystem.poke(f"{STEM}.{kind}.cleaned", b"x" * 1000)
    segment = CleanedSegment("/d", 10, filesystem, index_interval_bytes=100)
    segment.finish()
    assert filesystem.peek(f"{STEM}.log.cleaned") == b""
    assert not filesystem.exists(f"{STEM}.txnindex.cleaned")


def test_discard(filesystem: FakeFilesystem) -> None:
    """Nothing is left."""
    segment = CleanedSegment("/d", 10, filesystem, index_interval_bytes=100)
    fill(segment)
    segment.append_aborted(AbortedTxn(1, 10, 12, 13))
    segment.discard()
    assert filesystem.list_directory("/d") == []


def test_failed_write_is_told(filesystem: FakeFilesystem) -> None:
    """And the caller discards."""
    segment = CleanedSegment("/d", 10, filesystem, index_interval_bytes=100)
    fill(segment)
    filesystem.fail("write")
    with pytest.raises(DiskError):
        segment.finish()
