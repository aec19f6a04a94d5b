"""Five codecs: we read what others write and they what we write; bombs are refused."""

import contextlib
import gzip
import random
import subprocess
import sys
import zlib
from pathlib import Path

import cramjam
import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError, DecompressedSizeError
from protocol.records.batch import HEADER_SIZE
from protocol.records.compression import FRAMES_MAX, LEVELS, Codec, compress, decompress
from tests.effort import examples
from tests.unit.protocol import kafka_python_oracle

GOLDEN = Path(__file__).parents[2] / "golden" / "records"
COMPRESSED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
MIB = 1024 * 1024

TEXT = b"".join(b'{"id": %d, "name": "varve"}\n' % (n * n % 977) for n in range(5000))


@pytest.mark.parametrize("codec", Codec)
@examples(40)
@given(st.binary(max_size=500) | st.binary(max_size=20).map(lambda raw: raw * 5000))
def test_round_trip(codec: Codec, data: bytes) -> None:
    """Any bytes come back, when exactly their size is allowed."""
    assert decompress(codec, compress(codec, data), max_size=len(data)) == data


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize(
    "wrapper", [bytes, bytearray, memoryview, lambda d: memoryview(bytearray(d))]
)
def test_any_buffer_is_taken(codec: Codec, wrapper: type) -> None:
    """Slices of a frame go in as they are."""
    packed = compress(codec, wrapper(TEXT))
    assert decompress(codec, wrapper(packed), max_size=MIB) == TEXT


@pytest.mark.parametrize("codec", COMPRESSED)
def test_what_kafka_compressed(codec: Codec) -> None:
    """Blocks that released Kafka wrote give the uncompressed block it wrote."""
    name = codec.name.lower()
    packed = (GOLDEN / f"{name}.batch").read_bytes()[HEADER_SIZE:]
    plain = (GOLDEN / "none.batch").read_bytes()[HEADER_SIZE:]
    assert decompress(codec, packed, max_size=len(plain)) == plain
    if codec in (Codec.SNAPPY, Codec.LZ4):
        assert compress(codec, plain) == packed


def test_kafka_python_reads_ours() -> None:
    """An independent reader for each codec it has a library for."""
    assert kafka_python_oracle.gzip_decode(compress(Codec.GZIP, TEXT)) == TEXT
    assert kafka_python_oracle.lz4_decode(compress(Codec.LZ4, TEXT)) == TEXT


def test_several_members_and_frames() -> None:
    """Concatenated gzip members, lz4 and zstd frames and xerial streams count as one block."""
    halves = TEXT[:70_000], TEXT[70_000:]
    for codec in COMPRESSED:
        packed = b"".join(compress(codec, half) for half in halves)
        assert decompress(codec, packed, max_size=len(TEXT)) == TEXT
        with pytest.raises(DecompressedSizeError):
            decompress(codec, packed, max_size=len(TEXT) - 1)


def test_zstd_of_a_stream_that_announces_no_size() -> None:
    """Java's: that there is too much of it shows when the buffer is full."""
    stream = cramjam.zstd.Compressor()
    stream.compress(TEXT)
    packed = bytes(stream.finish())
    assert decompress(Codec.ZSTD, packed, max_size=len(TEXT)) == TEXT
    with pytest.raises(DecompressedSizeError):
        decompress(Codec.ZSTD, packed, max_size=len(TEXT) - 1)
    damaged = bytearray(packed)
    damaged[len(packed) // 2] ^= 0xFF
    with pytest.raises(DecodeError, match="zstd, with at most"):
        decompress(Codec.ZSTD, bytes(damaged), max_size=len(TEXT))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4])
def test_countless_frames_are_refused(codec: Codec) -> None:
    """Each frame costs a copy of the rest: their number is bounded."""
    with pytest.raises(DecodeError, match="more than"):
        decompress(codec, compress(codec, b"") * (FRAMES_MAX + 1), max_size=MIB)


def test_gzip_ignores_what_is_no_further_member() -> None:
    """As Java does; also padding."""
    assert decompress(Codec.GZIP, gzip.compress(TEXT) + bytes(20), max_size=MIB) == TEXT


def test_snappy_raw_block() -> None:
    """The form of librdkafka and Go clients."""
    raw = bytes(cramjam.snappy.compress_raw(TEXT))
    assert decompress(Codec.SNAPPY, raw, max_size=len(TEXT)) == TEXT


def test_lz4_linked_blocks_and_checksums() -> None:
    """Frames with every option; ours have independent blocks, as Java demands."""
    for linked in (True, False):
        packed = lz4.frame.compress(
            TEXT,
            block_linked=linked,
            content_checksum=True,
            block_checksum=True,
            store_size=True,
            block_size=lz4.frame.BLOCKSIZE_MAX4MB,
        )
        assert decompress(Codec.LZ4, packed, max_size=len(TEXT)) == TEXT
    assert not lz4.frame.get_frame_info(compress(Codec.LZ4, TEXT))["block_linked"]


def zstd_stream(data: bytes) -> bytes:
    """A frame that does not announce its size, as Java's streams write it."""
    compressor = cramjam.zstd.Compressor()
    compressor.compress(data)
    return bytes(compressor.finish())


def test_zstd_without_announced_size() -> None:
    """The blocks bound the output where the frame header does not."""
    packed = zstd_stream(TEXT * 5)
    assert packed[4] & 0xC0 == 0
    assert packed[4] & 0x20 == 0
    assert decompress(Codec.ZSTD, packed, max_size=len(TEXT) * 5) == TEXT * 5
    with pytest.raises(DecodeError):
        decompress(Codec.ZSTD, packed, max_size=len(TEXT) * 5 - 1)


def test_zstd_skippable_frame() -> None:
    """A frame without content before ours."""
    skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
    packed = skippable + compress(Codec.ZSTD, TEXT)
    assert decompress(Codec.ZSTD, packed, max_size=len(TEXT)) == TEXT


@pytest.mark.parametrize("codec", COMPRESSED)
def test_truncated_at_every_byte(codec: Codec) -> None:
    """A part of a block is never taken for the whole."""
    packed = compress(codec, TEXT[:3000])
    for size in range(len(packed)):
        # The header of a xerial stream alone is an empty stream, to Java too.
        if codec is not Codec.SNAPPY or size != 16:
            with pytest.raises(DecodeError):
                decompress(codec, packed[:size], max_size=MIB)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_flipped_bits(codec: Codec) -> None:
    """Damage is a DecodeError or other bytes (the batch's CRC tells), never more than allowed."""
    packed = bytearray(compress(codec, TEXT[:400]))
    for bit in range(len(packed) * 8):
        packed[bit >> 3] ^= 1 << (bit & 7)
        with contextlib.suppress(DecodeError):
            assert len(decompress(codec, packed, max_size=500)) <= 500
        packed[bit >> 3] ^= 1 << (bit & 7)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_noise(codec: Codec) -> None:
    """Random bytes, with and without a valid beginning."""
    noise = random.Random(int(codec))
    valid = compress(codec, TEXT[:300])
    for _ in range(1000):
        data = valid[: noise.randrange(20)] + noise.randbytes(noise.randrange(1, 80))
        with contextlib.suppress(DecodeError):
            assert len(decompress(codec, data, max_size=10_000)) <= 10_000


@pytest.mark.parametrize(
    "data",
    [
        b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\0",
        b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\0\0\0\0",
        b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\xff\xff\xff\xff",
        b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\x7f\xff\xff\xffabc",
        b"\x82SNAPPY\0\0\0",
        b"\xff\xff\xff\xff\x0f\x00",
    ],
)
def test_snappy_lies_are_refused(data: bytes) -> None:
    """Block lengths of the xerial stream, and sizes raw blocks announce."""
    with pytest.raises(DecodeError):
        decompress(Codec.SNAPPY, data, max_size=2**40)


def test_unknown_codec_and_empty_block() -> None:
    """Codecs 5 to 7 do not exist; no codec writes zero bytes."""
    for codec in (5, 6, 7, -1):
        with pytest.raises(DecodeError, match="unknown"):
            decompress(codec, b"x", max_size=10)
    for codec in COMPRESSED:
        with pytest.raises(DecodeError, match="empty"):
            decompress(codec, b"", max_size=10)


def test_uncompressed_is_bounded_too() -> None:
    """The limit means the same whatever the codec."""
    assert decompress(0, b"abc", max_size=3) == b"abc"
    with pytest.raises(DecodeError):
        decompress(0, b"abc", max_size=2)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_levels(codec: Codec) -> None:
    """Kafka's lowest, highest and default levels are taken, others are our own mistake."""
    low, high, default = LEVELS[codec]
    for level in (low, high, default, None):
        assert decompress(codec, compress(codec, TEXT, level), max_size=MIB) == TEXT
    for level in (low - 1, high + 1):
        with pytest.raises(ValueError, match="no level"):
            compress(codec, TEXT, level)
    assert len(compress(codec, TEXT, high)) < len(compress(codec, TEXT, 1))
    assert compress(codec, TEXT, default) == compress(codec, TEXT)


def bomb(codec: Codec, size: int) -> bytes:
    """`size` zero bytes in as few bytes as the codec can."""
    if codec is Codec.GZIP:
        return zlib.compress(bytes(size), 9, wbits=31)
    if codec is Codec.LZ4:
        return bytes(lz4.frame.compress(bytes(size)))
    if codec is Codec.ZSTD:
        return bytes(cramjam.zstd.compress(bytes(size), 19))
    return compress(codec, bytes(size))


@pytest.mark.parametrize("codec", COMPRESSED)
def test_bombs_are_refused(codec: Codec) -> None:
    """64 MiB out of a small block, 1 MiB allowed; also where the limit is one byte short."""
    packed = bomb(codec, 64 * MIB)
    with pytest.raises(DecodeError):
        decompress(codec, packed, max_size=MIB)
    with pytest.raises(DecodeError):
        decompress(codec, bomb(codec, MIB), max_size=MIB - 1)


MEASURE = """
import re, sys
from pathlib import Path
from protocol.errors import DecodeError
from protocol.records.compression import compress, decompress

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])

codec, size = int(sys.argv[1]), int(sys.argv[2])
packed = sys.stdin.buffer.read()
for warm in range(3):
    decompress(codec, compress(codec, bytes(1000)), max_size=1000)
before = peak()
try:
    decompress(codec, packed, max_size=size)
    sys.exit("accepted")
except DecodeError:
    print(peak() - before)
ballast = b"x" * (128 << 20)
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    ("codec", "form"),
    [
        (Codec.GZIP, "plain"),
        (Codec.LZ4, "plain"),
        (Codec.SNAPPY, "plain"),
        (Codec.SNAPPY, "raw"),
        (Codec.ZSTD, "plain"),
        (Codec.ZSTD, "stream"),
        (Codec.ZSTD, "frames"),
    ],
)
def test_bombs_cost_at_most_twice_the_limit(codec: Codec, form: str) -> None:
    """Peak memory of a fresh process that meets 200 MiB in a block, 16 MiB allowed."""
    if form == "raw":
        packed = bytes(cramjam.snappy.compress_raw(bytes(200 * MIB)))
    elif form == "stream":
        packed = zstd_stream(bytes(200 * MIB))
    elif form == "frames":
        packed = bomb(codec, 2 * MIB) * 100
    else:
        packed = bomb(codec, 200 * MIB)
    result = subprocess.run(
        [sys.executable, "-c", MEASURE, str(int(codec)), str(16 * MIB)],
        input=packed,
        capture_output=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    grown_kib, with_ballast_kib = map(int, result.stdout.split())
    assert grown_kib * 1024 <= 2 * 16 * MIB + 4 * MIB
    assert with_ballast_kib * 1024 >= 100 * MIB, "the measure does not measure"
