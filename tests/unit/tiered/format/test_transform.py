import contextlib

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.environment.randomness import SeededRandomness
from tiered.format.encryption import ChunkCipher, new_data_key
from tiered.format.transform import ChunkTransform, compressed_room, encrypted_room

RANDOMNESS = SeededRandomness(5)
CIPHER = ChunkCipher(new_data_key(RANDOMNESS), RANDOMNESS)
TRANSFORMS = [
    ChunkTransform(compression=compression, cipher=cipher)
    for compression in (False, True)
    for cipher in (None, CIPHER)
]


def stored(transform: ChunkTransform, chunk: bytes) -> memoryview:
    return transform.store(
        memoryview(bytearray(chunk)),
        memoryview(bytearray(compressed_room(len(chunk)))),
        memoryview(bytearray(encrypted_room(len(chunk)))),
    )


def restored(transform: ChunkTransform, data: memoryview, size: int) -> bytes:
    return bytes(
        transform.restore(data, memoryview(bytearray(len(data))), memoryview(bytearray(size)))
    )


CHUNKS = st.binary(max_size=2000) | st.binary(max_size=50).map(lambda piece: piece * 200)


@pytest.mark.parametrize("transform", TRANSFORMS)
@given(chunk=CHUNKS)
def test_a_chunk_comes_back(transform: ChunkTransform, chunk: bytes) -> None:
    """Whether it compresses or not; the rooms are always large enough."""
    data = stored(transform, chunk)
    assert restored(transform, data, len(chunk)) == chunk
    assert transform.fixed_size(len(chunk)) in (None, len(data))


def test_a_compressed_chunk_is_a_plain_zstd_frame() -> None:
    """With its content size, which Aiven's reader allocates by."""
    chunk = b"again and again " * 500
    data = bytes(stored(ChunkTransform(compression=True), chunk))
    assert len(data) < len(chunk) // 10
    assert bytes(cramjam.zstd.decompress(data)) == chunk
    assert data[:4] == b"\x28\xb5\x2f\xfd"
    # RFC 8878, 3.1.1.1.1: bits 7-6 tell the size of the content size; 5: it is a single segment.
    assert data[4] >> 6 or data[4] & 0x20


def test_a_plain_chunk_is_not_copied() -> None:
    """From the network to the file in the same memory."""
    chunk = memoryview(bytearray(b"x"))
    none = memoryview(b"")
    assert TRANSFORMS[0].is_plain
    assert TRANSFORMS[0].store(chunk, none, none) is chunk
    assert TRANSFORMS[0].restore(chunk, none, none) is chunk


def test_a_bomb_stays_within_its_room() -> None:
    """A frame of a few bytes may claim gigabytes."""
    bomb = bytes(cramjam.zstd.compress(bytes(1 << 24)))
    assert len(bomb) < 2000
    with pytest.raises(ValueError, match="at most 1000 bytes"):
        restored(ChunkTransform(compression=True), memoryview(bomb), 1000)


@pytest.mark.parametrize("transform", TRANSFORMS[1:])
@given(junk=st.binary(max_size=100))
def test_junk_is_refused_or_too_short(transform: ChunkTransform, junk: bytes) -> None:
    """And never anything but ValueError."""
    with contextlib.suppress(ValueError):
        assert len(restored(transform, memoryview(junk), 50)) <= 50


def test_the_level_counts() -> None:
    """Of zstd."""
    chunk = b"".join(b"%d," % (number * number % 9973) for number in range(20_000))
    sizes = [len(stored(ChunkTransform(compression=True, level=at), chunk)) for at in (1, 19)]
    assert sizes[1] < sizes[0]
