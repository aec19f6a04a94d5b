"""The batches of a closed segment, with their sums checked."""

import pytest

from protocol.records.builder import build_batch
from storage.cleaner.checked_batches import read_checked_batches
from storage.errors import CorruptFileError
from tests.fakes.clock import ManualClock
from tests.fakes.filesystem import FakeFilesystem

PATH = "/a.log"


def disk_with(data: bytes) -> FakeFilesystem:
    filesystem = FakeFilesystem(ManualClock(0))
    filesystem.open(PATH, create=True).write_at(data, 0)
    return filesystem


def batch(offset: int, value_bytes: int = 10) -> bytes:
    return bytes(build_batch([(b"k", b"v" * value_bytes, (), 0)], base_offset=offset))


@pytest.mark.parametrize("read_bytes", [80, 100, 256, 1 << 20])
def test_all_batches_come_whatever_the_size_of_a_read(read_bytes: int) -> None:
    """Also those that are larger than a read, and those that two reads have a part of."""
    written = [batch(offset, 10 + offset * 37 % 300) for offset in range(30)]
    filesystem = disk_with(b"".join(written))
    size = sum(map(len, written))
    found = list(read_checked_batches(filesystem, PATH, size, read_bytes))
    assert [bytes(data) for _, data in found] == written
    assert [header.base_offset for header, _ in found] == list(range(30))


def test_what_lies_beyond_the_size_is_not_read() -> None:
    """It may be written this moment."""
    filesystem = disk_with(batch(0) + b"\xff" * 100)
    assert len(list(read_checked_batches(filesystem, PATH, len(batch(0)), 64))) == 1


@pytest.mark.parametrize(
    ("data", "size", "problem"),
    [
        (batch(0), len(batch(0)) + 1, "ends before"),
        (batch(0), len(batch(0)) - 1, "ends within a batch at 0"),
        (batch(0) + batch(1)[:20], len(batch(0)) + 20, f"ends within a batch at {len(batch(0))}"),
        (batch(0)[:-1] + b"\x07", len(batch(0)), "at 0: record batch fails its CRC"),
        (batch(0) + b"\0" * 100, len(batch(0)) + 100, "magic 0"),
    ],
)
def test_damage_is_told_with_its_place(data: bytes, size: int, problem: str) -> None:
    """And nothing after it comes."""
    with pytest.raises(CorruptFileError, match=problem):
        list(read_checked_batches(disk_with(data), PATH, size, 1 << 16))
