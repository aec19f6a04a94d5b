"""A batch's records, decompressed a piece at a time: for batches too large to be held whole.

A megabyte of compressed records may become gigabytes, and a broker takes it: `max.message.bytes`
bounds what is on the wire. What is refused here is what `protocol.records.compression` refuses,
but for size. Each codec has a stream of its own; snappy has blocks, of which one is held whole (at
most 32 times its compressed size).

    codec   held beside the piece
    none    nothing
    gzip    a window of 32 KiB
    snappy  a block, 32 KiB as clients write it
    lz4     a window of 64 KiB, a block of at most 4 MiB
    zstd    a window as the frame says, 2 MiB at the default level, at most 128 MiB
"""

import zlib
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final

import cramjam
import lz4.frame
import pyarrow as pa

from protocol.errors import DecodeError
from protocol.records.compression import FRAMES_MAX, XERIAL_MAGIC, Codec

STEP_BYTES: Final = 256 * 1024
"""Taken out of a stream at a time."""

_FEED_BYTES: Final = 16 * 1024
"""Given to a stream at a time: what it has not used is copied at every step."""

_INT32: Final = Struct(">i")
_SNAPPY_RATIO_MAX: Final = 32
"""Above the format's best, 64 bytes out of a 3-byte copy."""


def inflate(codec: int, payload: memoryview) -> Iterator[bytes | memoryview]:
    """Give the decompressed records in pieces of about `STEP_BYTES`, snappy in its blocks.

    Raises:
        DecodeError: Unknown codec, damaged or cut-off data; what came before it was given.
    """
    if codec == Codec.NONE:
        return _cut(payload)
    stream = _STREAMS.get(codec)
    if stream is None:
        raise DecodeError(f"unknown compression codec {codec}")
    if not payload:
        raise DecodeError("compressed records are empty")
    return stream(payload)


def _cut(payload: memoryview) -> Iterator[memoryview]:
    for start in range(0, len(payload), STEP_BYTES):
        yield payload[start : start + STEP_BYTES]


def _inflate_gzip(payload: memoryview) -> Iterator[bytes]:
    position = 0
    for _ in range(FRAMES_MAX):
        member = zlib.decompressobj(wbits=31)
        rest: bytes | memoryview = b""
        while not member.eof:
            if not rest:
                rest = payload[position : position + _FEED_BYTES]
                position += len(rest)
            fed = len(rest)
            try:
                piece = member.decompress(rest, STEP_BYTES)
            except zlib.error as error:
                raise DecodeError(f"gzip: {error}") from None
            rest = member.unconsumed_tail
            if piece:
                yield piece
            elif not fed and not member.eof:
                raise DecodeError("gzip: data ends too early")
        position -= len(member.unused_data)
        # What follows and is no further member is ignored, as Java's GZIPInputStream does.
        if bytes(payload[position : position + 2]) != b"\x1f\x8b":
            return
    raise DecodeError(f"gzip: more than {FRAMES_MAX} members")


def _inflate_lz4(payload: memoryview) -> Iterator[bytes]:
    position = 0
    for _ in range(FRAMES_MAX):
        if position >= len(payload):
            return
        frame = lz4.frame.LZ4FrameDecompressor()
        while not frame.eof:
            feed: bytes | memoryview = b""
            if frame.needs_input:
                feed = payload[position : position + _FEED_BYTES]
                position += len(feed)
            try:
                piece = frame.decompress(feed, max_length=STEP_BYTES)
            except (RuntimeError, MemoryError) as error:
                raise DecodeError(f"lz4: {error}") from None
            if piece:
                yield piece
            elif position >= len(payload) and frame.needs_input and not frame.eof:
                raise DecodeError("lz4: data ends too early")
        position -= len(frame.unused_data or b"")
    raise DecodeError(f"lz4: more than {FRAMES_MAX} frames")


def _inflate_snappy(payload: memoryview) -> Iterator[memoryview]:
    if bytes(payload[:8]) != XERIAL_MAGIC:
        yield from _snappy_block(payload)
        return
    position = 0
    size = len(payload)
    while position < size:
        if bytes(payload[position : position + 8]) == XERIAL_MAGIC:
            position += 16
            if position > size:
                raise DecodeError("snappy: xerial header is cut off")
            continue
        if size - position < _INT32.size:
            raise DecodeError("snappy: block length is cut off")
        length: int = _INT32.unpack_from(payload, position)[0]
        position += _INT32.size
        if not 0 < length <= size - position:
            raise DecodeError(f"snappy: block of {length} bytes, {size - position} are left")
        yield from _snappy_block(payload[position : position + length])
        position += length


def _snappy_block(block: memoryview) -> Iterator[memoryview]:
    try:
        size: int = cramjam.snappy.decompress_raw_len(block)
        if size > len(block) * _SNAPPY_RATIO_MAX:
            raise DecodeError(f"snappy: {len(block)} bytes cannot become {size}")
        output = bytearray(size)
        written = cramjam.snappy.decompress_raw_into(block, output) if size else 0
    except cramjam.DecompressionError as error:
        raise DecodeError(str(error)) from None
    if written != size:
        raise DecodeError(f"snappy: block has {written} bytes instead of {size}")
    yield from _cut(memoryview(output))


def _inflate_zstd(payload: memoryview) -> Iterator[bytes]:
    stream = pa.CompressedInputStream(pa.BufferReader(payload), "zstd")
    while True:
        try:
            piece = stream.read(STEP_BYTES)
        except OSError as error:
            raise DecodeError(f"zstd: {error}") from None
        if not piece:
            return
        yield piece


_STREAMS: Final[dict[int, Callable[[memoryview], Iterator[bytes | memoryview]]]] = {
    Codec.GZIP: _inflate_gzip,
    Codec.SNAPPY: _inflate_snappy,
    Codec.LZ4: _inflate_lz4,
    Codec.ZSTD: _inflate_zstd,
}

__all__ = ["STEP_BYTES", "inflate"]
