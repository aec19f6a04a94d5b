"""Gaps within segments show that a log was compacted."""

import pytest

from storage.segment.gaps import SegmentFile, has_gaps_within
from tests.fakes.filesystem import FakeFilesystem
from tests.unit.storage.log.log_model import make_batch


def files_of(filesystem: FakeFilesystem, *segments: tuple[int, list[int]]) -> list[SegmentFile]:
    """Segments by base offset and the offsets of their batches, which have a record each."""
    found = []
    for base_offset, offsets in segments:
        path = f"/{base_offset:020}.log"
        file = filesystem.open(path, create=True)
        data = b""
        for offset in offsets:
            batch = make_batch(b"v")
            batch[0:8] = offset.to_bytes(8, "big")
            data += bytes(batch)
        file.write_at(data, 0)
        file.close()
        found.append(SegmentFile(path, base_offset, len(data)))
    return found


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        # Between segments alone: they may have been cut.
        ([(0, [0, 1]), (3, [3]), (5, [5]), (6, [6])], False),
        # Before the first batch of any.
        ([(0, [0, 1]), (3, [3]), (5, [5]), (6, [7])], True),
        # Within it, or the next one.
        ([(0, [0, 2]), (3, [3]), (5, [5]), (6, [6])], True),
        ([(0, [0, 1]), (3, [3, 5]), (6, [6]), (7, [7])], True),
        # Not in one that is further away.
        ([(0, [0, 1]), (3, [3]), (5, [5, 7]), (8, [8])], False),
        ([(0, []), (3, [3])], False),
    ],
)
def test_only_gaps_within_segments_count(
    segments: list[tuple[int, list[int]]], expected: bool
) -> None:
    """Asked about the first."""
    filesystem = FakeFilesystem()
    files = files_of(filesystem, *segments)
    assert has_gaps_within(filesystem, files, 0) is expected


def test_a_file_that_has_gone_shows_nothing() -> None:
    filesystem = FakeFilesystem()
    files = files_of(filesystem, (0, [0, 1]), (3, [4]))
    filesystem.unlink(files[0].path)
    assert has_gaps_within(filesystem, files, 0)
    filesystem.unlink(files[1].path)
    assert not has_gaps_within(filesystem, files, 0)
