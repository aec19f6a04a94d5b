"""Batches compared with their own sums, in pieces of any length."""

import struct

import pytest

from tests.fakes.filesystem import FakeFilesystem
from tests.unit.tiered.storage_manager.memory_tier import text_segment
from tiered.format.batch_walk import BatchWalk, first_batch_in

LOG = bytes(text_segment(8).log)


def _walk(data: bytes) -> None:
    walk = BatchWalk()
    walk.feed(memoryview(data))
    walk.finish()


@pytest.mark.parametrize("piece", [1, 7, 60, 61, 62, 400, 5000])
def test_pieces_of_any_length_are_walked(piece: int) -> None:
    walk = BatchWalk()
    for at in range(0, len(LOG), piece):
        walk.feed(memoryview(LOG)[at : at + piece])
    walk.finish()
    assert (walk.position, walk.batches) == (len(LOG), 8)


def test_every_flipped_byte_that_a_batch_vouches_for_is_found() -> None:
    size = len(LOG) // 8
    for at in [*range(16, 61), 100, size - 1]:
        if at in range(17, 21):
            continue
        spoilt = bytearray(LOG[:size])
        spoilt[at] ^= 1
        with pytest.raises(ValueError, match="batch"):
            _walk(bytes(spoilt))


def test_a_cut_is_found_at_the_end() -> None:
    for end in (30, len(LOG) - 1):
        walk = BatchWalk()
        walk.feed(memoryview(LOG)[:end])
        with pytest.raises(ValueError, match="within a batch"):
            walk.finish()


def test_the_index_says_where_a_batch_begins() -> None:
    filesystem = FakeFilesystem()
    file = filesystem.open("/i", create=True)
    file.write_at(
        b"".join(struct.pack(">ii", *entry) for entry in ((5, 100), (9, 950), (20, 2100))), 0
    )
    file.write_at(bytes(16), 24)
    found = [first_batch_in(filesystem, "/i", at, 1000) for at in (0, 1000, 2000, 3000)]
    assert found == [0, -1, 2100, -1]
    assert first_batch_in(filesystem, "/i", 100, 1) == 100
