import cramjam
import pytest

from pipeline.read.bytes.stored_chunk import slices_of_stored
from protocol.records.batch import crc32c
from storage.environment.randomness import SeededRandomness
from tiered.errors import ObjectNotFoundError
from tiered.format.chunk_index import Chunk
from tiered.format.encryption import ChunkCipher, new_data_key
from tiered.format.transform import ChunkTransform

ORIGINAL = b"what was stored, " * 3000


class Bytes:
    """An object in memory."""

    is_local = True

    def __init__(self, data: bytes) -> None:
        self._data = data

    def begin(self, position: int, into: memoryview) -> "_Read":
        return _Read(self._data[position : position + len(into)], into)


class _Read:
    def __init__(self, data: bytes, into: memoryview) -> None:
        self._data = data
        self._into = into

    def wait(self) -> None:
        self._into[:] = self._data

    def cancel(self) -> None: ...


def read(
    stored: bytes, transform: ChunkTransform, size: int = len(ORIGINAL), crc: int | None = None
) -> bytes:
    chunk = Chunk(0, 0, size, 0, len(stored))
    into = memoryview(bytearray(1000))
    slices = slices_of_stored(Bytes(stored), chunk, transform, crc, into)
    return b"".join(bytes(into[:count]) for count in slices)


ZSTD = ChunkTransform(compression=True)
PACKED = bytes(cramjam.zstd.compress(ORIGINAL))


def cipher() -> ChunkCipher:
    randomness = SeededRandomness(1)
    return ChunkCipher(new_data_key(randomness), randomness)


def test_a_frame_is_decompressed() -> None:
    assert read(PACKED, ZSTD) == ORIGINAL
    assert read(PACKED, ZSTD, crc=crc32c(PACKED)) == ORIGINAL


@pytest.mark.parametrize("compression", [False, True])
def test_what_was_encrypted_is_decrypted(compression: bool) -> None:
    transform = ChunkTransform(compression=compression, cipher=cipher())
    room = memoryview(bytearray(2 * len(ORIGINAL)))
    other = memoryview(bytearray(2 * len(ORIGINAL)))
    stored = bytes(transform.store(memoryview(ORIGINAL), room, other))
    assert read(stored, transform) == ORIGINAL
    spoilt = bytearray(stored)
    spoilt[-1] ^= 1
    with pytest.raises(ValueError, match="does not decrypt"):
        read(bytes(spoilt), transform)


def test_a_sum_of_what_is_stored_is_compared() -> None:
    with pytest.raises(ValueError, match="it fails its CRC"):
        read(PACKED, ZSTD, crc=1)


def test_a_frame_that_is_none_is_told() -> None:
    with pytest.raises(ValueError, match="not a zstd frame"):
        read(b"this is no frame" * 10, ZSTD)


def test_a_frame_that_is_cut_off_is_told() -> None:
    with pytest.raises(ValueError, match=r"zstd frame|bytes, not"):
        read(PACKED[:-20], ZSTD)


@pytest.mark.parametrize("size", [len(ORIGINAL) - 1, len(ORIGINAL) + 1])
def test_a_frame_of_another_size_is_told(size: int) -> None:
    with pytest.raises(ValueError, match="it has"):
        read(PACKED, ZSTD, size)


def test_a_bomb_takes_no_memory() -> None:
    bomb = bytes(cramjam.zstd.compress(bytes(1 << 26)))
    with pytest.raises(ValueError, match="more than 10 bytes"):
        read(bomb, ZSTD, 10)


@pytest.mark.parametrize("stored", [b"", b"short", bytes(20)])
def test_an_encrypted_piece_that_is_too_short_is_told(stored: bytes) -> None:
    with pytest.raises(ValueError, match=r"cannot have|does not decrypt|not \d+"):
        read(stored, ChunkTransform(cipher=cipher()))


def test_what_the_store_says_comes_through_the_decompressor() -> None:
    class Gone(Bytes):
        def begin(self, position: int, into: memoryview) -> "_Read":
            raise ObjectNotFoundError("a.log")

    chunk = Chunk(0, 0, len(ORIGINAL), 0, len(PACKED))
    slices = slices_of_stored(Gone(PACKED), chunk, ZSTD, None, memoryview(bytearray(1000)))
    with pytest.raises(ObjectNotFoundError, match=r"a\.log"):
        next(slices)
