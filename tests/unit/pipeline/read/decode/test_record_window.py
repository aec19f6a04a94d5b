"""Large batches through windows: all rows, bounded memory, damage named."""

import random
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, repeat
from typing import Any

import pyarrow as pa
import pytest

from pipeline.read.decode.block_groups import ROWS_MAX
from pipeline.read.decode.plain_kernel import BatchFacts
from pipeline.read.decode.record_table import RecordTable
from pipeline.read.decode.record_window import RECORD_MAX, RecordWindows
from pipeline.read.decode.row_decoder import RowDecoder
from protocol.errors import DecodeError
from protocol.records.builder import append_record
from protocol.records.compression import Codec, compress
from protocol.records.varint import encode_varint
from tests.effort import swept
from tests.unit.pipeline.read.batches import (
    KERNEL_NAMES,
    KERNELS,
    NAME,
    batch_around,
    decode,
    expected,
    kernel_of,
)

MIB = 1 << 20
LARGE = bytes(60 * MIB)
kernels = pytest.mark.parametrize("kernel", KERNELS)
DEFAULT = KERNEL_NAMES[0]
"""The one that workers take."""


@lru_cache(maxsize=1)
def block_of(count: int, value_size: int) -> bytes:
    """Records one after the other, which take longer to make than to decode."""
    noise = random.Random(count)
    block = bytearray()
    for index in range(count):
        value = None if index % 7 == 0 else noise.randbytes(noise.randrange(value_size + 1))
        headers = [("h", b"x" * (index % 50))] if index % 5 == 0 else []
        append_record(block, index, index, b"%d" % index, value, headers)
    return bytes(block)


@lru_cache(maxsize=1)
def large_batch(codec: Codec) -> tuple[bytes, dict[str, list[Any]]]:
    """A batch, and its rows: for all kernels, of which each takes less time than to make it."""
    count = 12_000
    block = block_of(count, 2000)
    assert len(block) > 8 * MIB
    log = batch_around(compress(codec, block), count, attributes=codec, base_offset=5)
    rows, problem = expected(log)
    assert problem is None
    return log, rows


@kernels
@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_of_many_mebibytes(kernel: str, codec: Codec) -> None:
    """More than are walked at once: all rows, and those of a range."""
    log, rows = large_batch(codec)
    assert decode(log, kernel) == (rows, None)
    got = decode(log, kernel, start=9000, end=9003)
    assert got.rows["offset"] == [9000, 9001, 9002]


@lru_cache(maxsize=1)
def batch_of_nulls(count: int) -> bytes:
    block = bytearray()
    for index in range(count):
        append_record(block, index, 0, None, None, ())
    return batch_around(compress(Codec.ZSTD, block), count, attributes=4)


@kernels
def test_a_batch_of_very_many_records(kernel: str) -> None:
    """More than the table of records has room for."""
    count = ROWS_MAX * 2 + 5
    log = batch_of_nulls(count)
    got = decode(log, kernel, columns=["offset"])
    assert got.rows["offset"] == list(range(count))
    assert got.error is None


@kernels
def test_a_record_larger_than_a_window(kernel: str) -> None:
    """Between small ones."""
    block = bytearray()
    append_record(block, 0, 0, b"a", b"small", ())
    append_record(block, 1, 0, b"b", bytes(20 * MIB), (("h", bytes(2 * MIB)),))
    append_record(block, 2, 0, b"c", b"small", ())
    log = batch_around(compress(Codec.LZ4, block), 3, attributes=3)
    rows, _ = expected(log)
    assert decode(log, kernel) == (rows, None)


@lru_cache(maxsize=1)
def batch_with(key: bytes, value: bytes, header: bytes | None) -> bytes:
    """A record between small ones."""
    block = bytearray()
    append_record(block, 0, 0, b"a", b"small", ())
    append_record(block, 1, 0, key, value, () if header is None else (("h", header),))
    append_record(block, 2, 0, b"c", b"small", ())
    return batch_around(compress(Codec.ZSTD, block), 3, attributes=4)


@kernels
@pytest.mark.parametrize("part", ["key", "value", "headers"])
def test_a_record_larger_than_all_else_a_worker_holds(kernel: str, part: str) -> None:
    """It comes out, alone: 60 MiB of a few kilobytes."""
    large = LARGE
    key, value = (large, b"v") if part == "key" else (b"k", large if part == "value" else b"v")
    log = memoryview(batch_with(key, value, large if part == "headers" else None))
    decoder = RowDecoder(("key", "value", "headers", "offset"), NAME, kernel_of(kernel))
    batches = [*decoder.decode(log, 0, 3, (), read_committed=True)]
    assert [batch.column(3).to_pylist() for batch in batches] == [[0], [1], [2]]
    found = batches[1]
    assert found.column(0)[0].as_buffer().equals(pa.py_buffer(key))
    assert found.column(1)[0].as_buffer().equals(pa.py_buffer(value))
    if part == "headers":
        assert found.column(2)[0][0]["value"].as_buffer().equals(pa.py_buffer(large))


@kernels
@pytest.mark.parametrize(
    "fields",
    [
        b"\0\0\0\0\0\0",  # an empty key, an empty value, no headers
        b"\0\0\0\1\1\0",  # neither
        b"\0\0\0\1" + encode_varint(1 << 30),  # a value that is longer than its record
    ],
)
def test_a_length_that_is_a_lie_takes_no_memory(kernel: str, fields: bytes) -> None:
    """Zeros compress well: gigabytes of them would be read before the lie was found."""
    claimed = 700 * MIB
    pieces = chain([encode_varint(claimed) + fields], repeat(bytes(MIB), 700))
    with pytest.raises(DecodeError, match=f"it has {claimed} bytes, and its fields have fewer"):
        windows(pieces, 1, kernel, RECORD_MAX)
    assert len([*pieces]) > 600


def cut(block: bytes, size: int) -> Iterator[bytes]:
    return (block[start : start + size] for start in range(0, len(block), size))


def windows(pieces: Iterator[bytes], records: int, kernel: str, record_max: int) -> list[int]:
    facts = BatchFacts(0, records - 1, 0, None)
    table = RecordTable(1000)
    found = []
    walk = RecordWindows(pieces, facts, records, kernel_of(kernel), table, record_max=record_max)
    for _, rows in walk:
        found += table.offset[:rows].tolist()
    return found


@kernels
@pytest.mark.parametrize("size", [1, 2, 7, 100, 10_000])
def test_pieces_of_any_size(kernel: str, size: int) -> None:
    """Records and varints are cut wherever it happens."""
    block = block_of(300, 90)
    assert windows(cut(block, size), 300, kernel, MIB) == list(range(300))


@kernels
def test_a_record_that_nobody_can_hold_is_named(kernel: str) -> None:
    """By the offset before it, before memory is taken for it."""
    block = bytearray()
    append_record(block, 0, 0, b"a", b"small", ())
    append_record(block, 1, 0, b"b", bytes(8 * MIB), ())
    with pytest.raises(DecodeError, match="after offset 0 says that it has 8388618 bytes; 1048576"):
        windows(cut(bytes(block), MIB), 2, kernel, MIB)


@pytest.mark.parametrize("seed", swept(range(12), 4))
def test_damage_in_a_large_batch_has_one_outcome(seed: int) -> None:
    """The same rows before it and the same words, by every kernel."""
    noise = random.Random(seed)
    count = 20_000
    block = bytearray(block_of(count, 1200))
    block[noise.randrange(len(block))] ^= 1 << noise.randrange(8)
    log = batch_around(block, count)
    assert len(block) > 8 * MIB
    outcomes = [decode(log, kernel, columns=["key", "value", "offset"]) for kernel in KERNELS]
    assert outcomes.count(outcomes[0]) == len(outcomes)


@kernels
@pytest.mark.parametrize(
    ("count", "tail", "problem"),
    [
        (12_001, b"", "record is cut off"),
        (11_999, b"", "bytes after the last record"),
        (12_000, b"\0", "1 bytes after the last record"),
        (12_001, b"\x7f\x00", "record of -64 bytes"),
        (12_001, b"\x7e\x00", "record of 63 bytes, 1 are left"),
        (12_001, b"\xff\xff\xff\xff\xff\x01", "longer than 5 bytes"),
    ],
)
def test_counts_and_ends_that_lie(kernel: str, count: int, tail: bytes, problem: str) -> None:
    """Found at the end of a large batch, when the rows before were given."""
    log = batch_around(block_of(12_000, 2000) + tail, count)
    got = decode(log, kernel, columns=["offset"])
    assert len(got.rows["offset"]) == min(count, 12_000)
    assert got.error is not None
    assert problem in got.error


MEMORY = """
import resource, sys
import cramjam
from pipeline.read.decode.row_decoder import RowDecoder
from pipeline.read.decode.row_schema import COLUMNS
from tests.unit.pipeline.read.batches import NAME, batch_around, kernel_of
from protocol.records.builder import append_record

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

packer = cramjam.zstd.Compressor(level=1)
packed = bytearray()
count = 0
for _ in range(64):
    part = bytearray()
    for _ in range(8):
        append_record(part, count, 0, None, bytes(1 << 20), ())
        count += 1
    packer.compress(bytes(part))
    packed += bytes(packer.flush())
packed += bytes(packer.finish())
log = memoryview(batch_around(packed, count, attributes=4))
decoder = RowDecoder(COLUMNS, NAME, kernel_of(sys.argv[1]), tier="bucket")
before = peak()
rows = size = 0
for piece in decoder.decode(log, 0, 2**60, (), read_committed=True):
    rows += piece.num_rows
    size += piece.nbytes
print(rows, size >> 20, peak() - before)
"""


@pytest.mark.parametrize(
    "kernel",
    [name if name == DEFAULT else pytest.param(name, marks=pytest.mark.merge) for name in KERNELS],
)
def test_half_a_gibibyte_out_of_one_batch(kernel: str) -> None:
    """A few windows of memory, whatever comes out: measured from outside of Python's books."""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, kernel], capture_output=True, text=True, check=True
    )
    rows, mebibytes, grown = map(int, done.stdout.split())
    assert (rows, mebibytes) == (512, 512)
    assert grown < 96
