"""One flipped bit is found by what it does to the CRC; anything else is not guessed at."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tiered.format.test_manifest import manifest
from tiered.format.manifest import SegmentManifest
from tiered.format.manifest_repair import REPAIRED_BYTES_MAX, repair_manifest

KEY = "t/0/k.rsm-manifest"
DATA = manifest().to_json()


def flip(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@given(st.integers(0, 8 * len(DATA) - 1))
def test_any_flipped_bit_is_put_right(bit: int) -> None:
    mended = repair_manifest(flip(DATA, bit), KEY)
    assert mended is not None
    assert mended[1] == DATA
    assert mended[0].metadata == SegmentManifest.from_json(DATA, KEY).metadata


@pytest.mark.parametrize("name", [b'"varve"', b'"crc32c":"'])
def test_a_flip_in_a_name_is_not_believed_beside_the_sums_loss(name: bytes) -> None:
    """Another flip, in the name of the sum, would make it the sum-less manifest of a plugin."""
    at = DATA.rindex(name)
    for bit in range(8 * at, 8 * (at + len(name))):
        mended = repair_manifest(flip(DATA, bit), KEY)
        assert mended is not None
        assert mended[1] == DATA


@given(st.integers(0, 8 * len(DATA) - 1), st.integers(0, 8 * len(DATA) - 1))
def test_two_flipped_bits_are_not_taken_for_one(first: int, second: int) -> None:
    """What comes out is nothing, or what was written."""
    damaged = flip(flip(DATA, first), second)
    if damaged != DATA:
        mended = repair_manifest(damaged, KEY)
        assert mended is None or mended[1] == DATA


@pytest.mark.parametrize("data", [b"", b"{}", DATA[:-1], DATA[1:], b"x" * REPAIRED_BYTES_MAX * 2])
def test_what_is_no_manifest_stays_none(data: bytes) -> None:
    assert repair_manifest(data, KEY) is None
