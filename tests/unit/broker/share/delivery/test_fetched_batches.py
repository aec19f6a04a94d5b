"""Batches of a slice are found by their headers, over the borders of what is read at a time."""

from contextlib import closing
from pathlib import Path

import pytest

from broker.share.delivery.fetched_batches import FetchedBatch, aborted_ranges, part_of, scan
from protocol.records.builder import build_batch
from protocol.records.control import build_end_transaction_marker
from storage.environment.local_filesystem import LocalFilesystem
from storage.types.file_slice import FileSlice


def batch(base: int, *values: bytes, producer_id: int = -1) -> bytes:
    return bytes(
        build_batch(
            [(None, value, (), 0) for value in values],
            base_offset=base,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=0,
            transactional=producer_id >= 0,
        )
    )


def marker(base: int, producer_id: int, *, commit: bool) -> bytes:
    return bytes(
        build_end_transaction_marker(
            producer_id=producer_id,
            producer_epoch=0,
            commit=commit,
            coordinator_epoch=0,
            timestamp_ms=0,
            base_offset=base,
        )
    )


def slice_of(path: Path, *batches: bytes, before: int = 7, after: int = 9) -> FileSlice:
    data = b"".join(batches)
    path.write_bytes(bytes(before) + data + bytes(after))
    return FileSlice(LocalFilesystem().open(str(path)), before, len(data))


@pytest.mark.parametrize("size", [1, 1_000, 16_000, 16_330, 40_000])
def test_every_batch_is_found(tmp_path: Path, size: int) -> None:
    records = slice_of(
        tmp_path / "log", *[batch(3 * at, b"a", bytes(size), b"c") for at in range(40)]
    )
    with closing(records.file):
        found = scan(records, 1 << 20)
    assert [(b.base_offset, b.last_offset) for b in found] == [
        (3 * at, 3 * at + 2) for at in range(40)
    ]
    assert found[-1].position + found[-1].size == records.length


def test_not_beyond_what_is_wanted(tmp_path: Path) -> None:
    records = slice_of(tmp_path / "log", *[batch(3 * at, b"a", b"b", b"c") for at in range(40)])
    with closing(records.file):
        assert len(scan(records, 6)) == 3
        assert len(scan(records, 5)) == 2


def test_a_batch_that_is_cut_off_is_left_out(tmp_path: Path) -> None:
    records = slice_of(tmp_path / "log", batch(0, b"a"), batch(1, b"b"))
    records.length -= 1
    with closing(records.file):
        assert [b.base_offset for b in scan(records, 10)] == [0]


def test_part(tmp_path: Path) -> None:
    batches = [batch(2 * at, b"a", b"b") for at in range(4)]
    records = slice_of(tmp_path / "log", *batches)
    with closing(records.file):
        found = scan(records, 100)
        part = part_of(records, found, 3, 4)
        assert isinstance(part, FileSlice)
        assert (part.position, part.length) == (7 + len(batches[0]), 2 * len(batches[0]))
        assert part_of(records, found, 0, 7) is records


@pytest.mark.parametrize(("commit", "expected"), [(False, [(0, 1), (3, 3)]), (True, [(0, 1)])])
def test_aborted(tmp_path: Path, commit: bool, expected: list[tuple[int, int]]) -> None:
    """One producer aborts, and then goes on; another one's batch lies between."""
    records = slice_of(
        tmp_path / "log",
        batch(0, b"a", b"b", producer_id=1),
        batch(2, b"x", producer_id=2),
        batch(3, b"c", producer_id=1) if not commit else marker(3, 1, commit=False),
        marker(4, 1, commit=False),
        batch(5, b"d", producer_id=1),
        batch(6, b"plain"),
    )
    with closing(records.file):
        found = scan(records, 100)
        assert isinstance(found[0], FetchedBatch)
        assert aborted_ranges(records, found, [(1, 0)]) == expected
