"""The five codecs of a record batch, decompressing never beyond a given size.

    number  codec   what is on the wire
         0  none
         1  gzip    RFC 1952, one or more members
         2  snappy  xerial stream (Java, and what we write) or one raw block (librdkafka, Go)
         3  lz4     one or more frames, independent blocks: Java cannot read linked ones
         4  zstd    RFC 8878, one or more frames

Xerial stream, big-endian, may be repeated:

    byte  size  field
       0     8  magic 0x82 "SNAPPY" 0x00
       8     4  version                 1
      12     4  oldest compatible       1
      16     .  blocks: int32 length, raw snappy block

A few bytes can claim to become gigabytes. Nothing here takes memory for a claim: an announced size
is compared with `max_size` first, and a codec that announces nothing writes into a buffer that
ends there.

The codecs' libraries are imported with the first batch that needs them: 2 MB of a broker's memory.

Source: Kafka, {Gzip,Snappy,Lz4,Zstd}Compression.java, Lz4BlockOutputStream.java; KIP-110, KIP-390.
"""

import zlib
from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from struct import error as struct_error
from typing import Final

from protocol.errors import DecodeError, DecompressedSizeError

Buffer = bytes | bytearray | memoryview


class Codec(IntEnum):
    """Compression codec: bits 0-2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


LEVELS: Final = {
    Codec.GZIP: (-1, 9, -1),
    Codec.LZ4: (1, 17, 9),
    Codec.ZSTD: (-131072, 22, 3),
}
"""(lowest, highest, default) as in `compression.gzip.level` and so on (KIP-390); else no levels."""

FRAMES_MAX: Final = 128
"""Most members or frames in one batch. Producers write one; each costs us a call and a copy."""

XERIAL_MAGIC: Final = b"\x82SNAPPY\0"
_XERIAL_HEADER: Final = XERIAL_MAGIC + b"\0\0\0\x01\0\0\0\x01"
_XERIAL_BLOCK_SIZE: Final = 32 * 1024
_INT32: Final = Struct(">i")

STEP_SIZE: Final = 64 * 1024
"""Bytes taken out of a stream at a time; the output is never held twice."""

_SNAPPY_RATIO_MAX: Final = 32
"""Above the format's best, 64 bytes out of a 3-byte copy."""

_ZSTD_MAGIC: Final = 0xFD2FB528
_ZSTD_BLOCK_SIZE_MAX: Final = 128 * 1024
_ZSTD_BLOCKS_MAX: Final = 4096
_ZSTD_OUTPUT_IS_FULL: Final = "failed to write whole buffer"
_UINT32_LITTLE: Final = Struct("<I")


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress `data`, so that every Kafka client can read it.

    Args:
        codec: A `Codec`.
        data: Any contiguous bytes.
        level: As in `LEVELS`; None is the default. Ignored by codecs without levels.

    Raises:
        ValueError: No such codec, or level out of range: our own mistake.
    """
    codec = Codec(codec)
    if level is not None and codec in LEVELS:
        low, high, _default = LEVELS[codec]
        if not low <= level <= high or (codec is Codec.GZIP and level == 0):
            raise ValueError(f"{codec.name.lower()} has no level {level}")
    if codec is Codec.NONE:
        return bytes(data)
    if codec is Codec.GZIP:
        return zlib.compress(data, -1 if level is None else level, wbits=31)
    if codec is Codec.SNAPPY:
        return _compress_snappy(data)
    if codec is Codec.LZ4:
        # Kafka's 9 means "fast", all others a high-compression level; the library's 0 is fast.
        # It has no high-compression level below 3.
        import lz4.frame

        return bytes(
            lz4.frame.compress(
                data,
                compression_level=0 if level is None or level == 9 else min(max(level, 3), 16),
                block_size=lz4.frame.BLOCKSIZE_MAX64KB,
                block_linked=False,
                store_size=False,
            )
        )
    import cramjam

    return bytes(cramjam.zstd.compress(data, 3 if level is None else level))


def decompress(codec: int, data: Buffer, *, max_size: int) -> bytes:
    """Decompress the records of a batch.

    Args:
        codec: A `Codec`.
        data: The records block; not kept.
        max_size: Most bytes that may come out.

    Raises:
        DecompressedSizeError: More than `max_size` bytes. Little more than `max_size` of memory was
            in use: output grows in one place, in steps, and is copied once it is whole.
        DecodeError: Unknown codec, damaged or cut-off data.
    """
    if max_size < 0:
        raise ValueError("max_size is negative")
    if codec == Codec.NONE:
        if len(data) > max_size:
            raise _beyond(max_size)
        return bytes(data)
    decompressor = _DECOMPRESSORS.get(codec)
    if decompressor is None:
        raise DecodeError(f"unknown compression codec {codec}")
    if not data:
        raise DecodeError("compressed records are empty")
    # As bytes only when it is known to be allowed: what is too large is never held twice.
    return bytes(decompressor(data, max_size))


def _beyond(max_size: int) -> DecompressedSizeError:
    return DecompressedSizeError(f"records decompress to more than {max_size} bytes")


def _decompress_gzip(data: Buffer, max_size: int) -> bytearray:
    output = bytearray()
    rest: Buffer = data
    for _ in range(FRAMES_MAX):
        member = zlib.decompressobj(wbits=31)
        try:
            while not member.eof:
                chunk = member.decompress(rest, STEP_SIZE)
                rest = member.unconsumed_tail
                output += chunk
                if len(output) > max_size:
                    raise _beyond(max_size)
                if not chunk and not rest and not member.eof:
                    raise DecodeError("gzip: data ends too early")
        except zlib.error as error:
            raise DecodeError(f"gzip: {error}") from None
        rest = member.unused_data
        # What follows and is no further member is ignored, as Java's GZIPInputStream does.
        if rest[:2] != b"\x1f\x8b":
            return output
    raise DecodeError(f"gzip: more than {FRAMES_MAX} members")


def _decompress_lz4(data: Buffer, max_size: int) -> bytearray:
    import lz4.frame

    output = bytearray()
    rest: Buffer | None = data
    for _ in range(FRAMES_MAX):
        if not rest:
            return output
        frame = lz4.frame.LZ4FrameDecompressor()
        try:
            while not frame.eof:
                chunk = frame.decompress(rest, max_length=STEP_SIZE)
                rest = b""
                output += chunk
                if len(output) > max_size:
                    raise _beyond(max_size)
                if not chunk and frame.needs_input and not frame.eof:
                    raise DecodeError("lz4: data ends too early")
        except (RuntimeError, MemoryError) as error:
            raise DecodeError(f"lz4: {error}") from None
        rest = frame.unused_data
    raise DecodeError(f"lz4: more than {FRAMES_MAX} frames")


def _compress_snappy(data: Buffer) -> bytes:
    import cramjam

    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for position in range(0, len(view), _XERIAL_BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(view[position : position + _XERIAL_BLOCK_SIZE]))
        parts.append(_INT32.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: Buffer, max_size: int) -> bytearray:
    view = memoryview(data)
    if bytes(view[:8]) != XERIAL_MAGIC:
        return _decompress_snappy_block(view, max_size, max_size)
    output = bytearray()
    position = 0
    size = len(view)
    while position < size:
        if bytes(view[position : position + 8]) == XERIAL_MAGIC:
            position += 16
            if position > size:
                raise DecodeError("snappy: xerial header is cut off")
            continue
        try:
            length: int = _INT32.unpack_from(view, position)[0]
        except struct_error:
            raise DecodeError("snappy: block length is cut off") from None
        position += 4
        if not 0 < length <= size - position:
            raise DecodeError(f"snappy: block of {length} bytes, {size - position} are left")
        left = max_size - len(output)
        output += _decompress_snappy_block(view[position : position + length], left, max_size)
        position += length
    return output


def _decompress_snappy_block(block: memoryview, left: int, max_size: int) -> bytearray:
    import cramjam

    try:
        size: int = cramjam.snappy.decompress_raw_len(block)
        if size > left:
            raise _beyond(max_size)
        if size > len(block) * _SNAPPY_RATIO_MAX:
            raise DecodeError(f"snappy: {len(block)} bytes cannot become {size}")
        output = bytearray(size)
        written = cramjam.snappy.decompress_raw_into(block, output) if size else 0
    except cramjam.DecompressionError as error:
        raise DecodeError(str(error)) from None
    if written != size:
        raise DecodeError(f"snappy: block has {written} bytes instead of {size}")
    return output


def _decompress_zstd(data: Buffer, max_size: int) -> bytearray:
    import cramjam

    output = bytearray(_zstd_output_bound(memoryview(data), max_size))
    try:
        size = cramjam.zstd.decompress_into(data, output)
    except cramjam.DecompressionError as error:
        if len(output) == max_size and str(error) == _ZSTD_OUTPUT_IS_FULL:
            raise _beyond(max_size) from None
        raise DecodeError(f"zstd, with at most {max_size} bytes of output: {error}") from None
    del output[size:]
    return output


def _zstd_output_bound(data: memoryview, max_size: int) -> int:
    """Upper bound of what the frames can become, at most `max_size`, from their headers alone.

    Java's streams do not announce a size; then the blocks tell: each gives at most 128 KiB. This
    keeps the buffer of an ordinary batch small. Damage inside a block the decompressor finds.

    Raises:
        DecodeError: A frame announces more than `max_size`, or is cut off.
    """
    bound = 0
    position = 0
    blocks = 0
    size = len(data)
    try:
        while position < size:
            magic: int = _UINT32_LITTLE.unpack_from(data, position)[0]
            if magic & 0xFFFF_FFF0 == 0x184D_2A50:  # a skippable frame
                position += 8 + _UINT32_LITTLE.unpack_from(data, position + 4)[0]
                blocks += 1
            elif magic == _ZSTD_MAGIC:
                announced, checksum, position = _read_zstd_frame_header(data, position + 4)
                if announced > max_size - bound:
                    raise _beyond(max_size)
                produced = 0
                last = False
                while not last:
                    header = data[position] | data[position + 1] << 8 | data[position + 2] << 16
                    position += 3
                    last = header & 1 != 0
                    kind = header >> 1 & 3
                    length = header >> 3
                    produced += length if kind < 2 else _ZSTD_BLOCK_SIZE_MAX
                    position += 1 if kind == 1 else length
                    blocks += 1
                    if blocks > _ZSTD_BLOCKS_MAX:
                        return max_size
                position += 4 if checksum else 0
                bound += produced if announced < 0 else min(produced, announced)
            else:
                break
            if bound >= max_size or blocks > _ZSTD_BLOCKS_MAX:
                return max_size
    except (IndexError, struct_error):
        raise DecodeError("zstd: data ends too early") from None
    return bound


def _read_zstd_frame_header(data: memoryview, position: int) -> tuple[int, bool, int]:
    """(announced content size or -1, has checksum, position of the first block)."""
    descriptor = data[position]
    single_segment = descriptor & 0x20 != 0
    position += 1 if single_segment else 2
    position += (0, 1, 2, 4)[descriptor & 3]
    size_bytes = (1 if single_segment else 0, 2, 4, 8)[descriptor >> 6]
    announced = -1
    if size_bytes:
        end = position + size_bytes
        if end > len(data):
            raise IndexError
        announced = int.from_bytes(data[position:end], "little") + (256 if size_bytes == 2 else 0)
        position = end
    return announced, descriptor & 4 != 0, position


_DECOMPRESSORS: Final[dict[int, Callable[[Buffer, int], bytearray]]] = {
    Codec.GZIP: _decompress_gzip,
    Codec.SNAPPY: _decompress_snappy,
    Codec.LZ4: _decompress_lz4,
    Codec.ZSTD: _decompress_zstd,
}
