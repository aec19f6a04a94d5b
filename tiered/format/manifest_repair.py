"""Repair of a manifest of which one bit has flipped.

A segment's manifest is the smallest of its objects, and the others are useless without it. Its
CRC-32C finds every flipped bit and which one it was: the difference between the recorded and the
computed sum is different for each bit, as long as there are fewer than 2**31 of them.

    CRC of the bytes  xor  recorded CRC  =  syndrome of the bit

    bit in the last byte    syndromes 0 .. 7: the table's entries of 1, 2, 4 ... 128
    in the byte before      each carried on by one byte of zeros
    ...
    one bit of difference   it was in the CRC's own digits

What comes out is only believed if it is a manifest: version, every number in its place.
"""

from typing import Final

from tiered.errors import CorruptRemoteDataError
from tiered.format.manifest import SegmentManifest
from tiered.format.manifest_layout import crc_of, recorded_crc

REPAIRED_BYTES_MAX: Final = 1024 * 1024
"""Of a larger one every bit is tried no more: a segment of 2 GiB has some 20 KiB by default."""

_POLYNOMIAL: Final = 0x82F63B78
"""Castagnoli's, reflected."""

_DIGITS: Final = 8
_TAIL: Final = len('00000000"}}}')


def repair_manifest(data: bytes, key: str) -> tuple[SegmentManifest, bytes] | None:
    """The manifest that `data` was before one of its bits flipped, and its bytes.

    Args:
        data: A manifest that `SegmentManifest.from_json` refuses.
        key: Its name.

    Returns:
        None: more than one bit is wrong, or it is something else.
    """
    if not _TAIL < len(data) <= REPAIRED_BYTES_MAX:
        return None
    candidates = [_flipped(data, at, bit) for at, bit in _suspects(data)]
    for candidate in candidates:
        # Without a sum of its own it would be believed as another program's: a flip in the key
        # "varve" or "crc32c" beside the one that is there makes it look like that.
        if recorded_crc(candidate) != crc_of(candidate):
            continue
        try:
            return SegmentManifest.from_json(candidate, key), candidate
        except CorruptRemoteDataError:
            continue
    return None


def _suspects(data: bytes) -> list[tuple[int, int]]:
    """(byte, bit) that may have flipped; few."""
    end = len(data)
    recorded = recorded_crc(data)
    # In what frames the CRC, or in its digits, the recorded sum is unknown: try them all.
    tail = range(end - _TAIL - len('"crc32c":"'), end)
    found = [(at, bit) for at in tail for bit in range(8)]
    if recorded is None:
        return found
    wanted = crc_of(data) ^ recorded
    table = [_carried(value) for value in range(256)]
    syndromes = [table[1 << bit] for bit in range(8)]
    # The digits are left out of the sum; what comes after them is in it.
    summed = [*range(end - 1, end - _TAIL + _DIGITS - 1, -1), *range(end - _TAIL - 1, -1, -1)]
    for at in summed:
        if wanted in syndromes:
            found.append((at, syndromes.index(wanted)))
            break
        syndromes = [(one >> 8) ^ table[one & 0xFF] for one in syndromes]
    return found


def _carried(value: int) -> int:
    """What a byte of zeros makes of a sum that differs by `value`."""
    for _ in range(8):
        value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
    return value


def _flipped(data: bytes, at: int, bit: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 1 << bit
    return bytes(changed)
