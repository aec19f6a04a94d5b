"""Decompression piece by piece: what `protocol.records.compression` gives and refuses."""

import random
import tracemalloc
import zlib

import lz4.frame
import pytest

from pipeline.read.decode.inflate import STEP_BYTES, inflate
from protocol.errors import DecodeError
from protocol.records.compression import Codec, compress, decompress

MIB = 1 << 20
codecs = pytest.mark.parametrize("codec", list(Codec))


def whole(codec: int, data: bytes) -> bytes:
    return b"".join(bytes(piece) for piece in inflate(codec, memoryview(data)))


@codecs
@pytest.mark.parametrize("size", [1, 1000, STEP_BYTES, 3 * MIB + 17])
def test_pieces_are_the_whole(codec: Codec, size: int) -> None:
    """Of bytes that pack well and of bytes that do not."""
    noise = random.Random(size)
    for data in (bytes(size), noise.randbytes(size), b"record" * (size // 6)):
        packed = compress(codec, data)
        if packed:
            assert whole(codec, packed) == data
            pieces = inflate(codec, memoryview(packed))
            assert max((len(piece) for piece in pieces), default=0) <= 2 * STEP_BYTES


@codecs
def test_damage_is_found(codec: Codec) -> None:
    """Cut off or changed: refused wherever the other decompressor refuses it, else the same."""
    noise = random.Random(codec)
    packed = compress(codec, noise.randbytes(500) + bytes(40_000) + noise.randbytes(500))
    for attempt in range(300):
        data = bytearray(packed)
        if attempt % 3 == 0:
            del data[noise.randrange(1, len(data)) :]
        else:
            data[noise.randrange(len(data))] ^= 1 << noise.randrange(8)
        try:
            expected = decompress(codec, bytes(data), max_size=64 * MIB)
        except DecodeError:
            with pytest.raises(DecodeError):
                whole(codec, bytes(data))
        else:
            assert whole(codec, bytes(data)) == expected


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD, Codec.SNAPPY])
def test_frames_follow_each_other(codec: Codec) -> None:
    """As writers that flush make them."""
    packed = b"".join(compress(codec, bytes([n]) * 1000) for n in range(5))
    assert whole(codec, packed) == decompress(codec, packed, max_size=MIB)
    assert len(whole(codec, packed)) == 5000


def test_what_follows_a_gzip_member_is_ignored() -> None:
    """As Java does."""
    assert whole(Codec.GZIP, zlib.compress(b"records", wbits=31) + b"anything") == b"records"


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4])
def test_frames_without_end_are_refused(codec: Codec) -> None:
    """Each costs a call, however little it holds."""
    packed = compress(codec, b"x") * 200
    with pytest.raises(DecodeError, match="more than 128"):
        whole(codec, packed)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_codecs_that_do_not_exist(codec: int) -> None:
    """Said before anything is given."""
    with pytest.raises(DecodeError, match=f"unknown compression codec {codec}"):
        inflate(codec, memoryview(b"x"))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD, Codec.SNAPPY])
def test_nothing_cannot_be_decompressed(codec: Codec) -> None:
    """Not even to nothing."""
    with pytest.raises(DecodeError, match="empty"):
        inflate(codec, memoryview(b""))


def test_a_bomb_is_never_held() -> None:
    """256 MiB out of 1 MiB, and little more than a piece in memory."""
    packed = lz4.frame.compress(bytes(256 * MIB), block_size=lz4.frame.BLOCKSIZE_MAX64KB)
    tracemalloc.start()
    try:
        size = sum(len(piece) for piece in inflate(Codec.LZ4, memoryview(packed)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size == 256 * MIB
    assert peak < 4 * MIB
