"""`native/records.c` under AddressSanitizer and UndefinedBehaviorSanitizer, with hostile bytes."""

from collections.abc import Iterator

import pytest

from tests.effort import drawn
from tests.unit.native.sanitizers import run_sanitized, sanitized_source

SCRIPT = """
import ctypes, random, sys
import numpy as np
from pipeline.read.decode.compiled_kernel import CompiledKernel
from pipeline.read.decode.record_table import Blocks, RecordTable
from protocol.records.builder import append_record, build_batch

kernel = CompiledKernel(ctypes.CDLL(sys.argv[1]))
noise = random.Random(int(sys.argv[2]))
walked = refused = 0
for attempt in range(int(sys.argv[3])):
    block = bytearray()
    count = noise.randrange(1, 8)
    for index in range(count):
        append_record(
            block, index, noise.choice((0, -5, 2**40)),
            noise.choice((None, b"", bytes(noise.randrange(200)))),
            noise.choice((None, b"", bytes(noise.randrange(200)))),
            [("h" * noise.randrange(3), noise.choice((None, b"v")))] * noise.randrange(3),
        )
    for _ in range(noise.randrange(4)):
        block[noise.randrange(len(block))] = noise.choice((0, 1, 0x7F, 0x80, 0xFF, 2, 0x0F))
    if attempt % 5 == 0:
        del block[noise.randrange(len(block)):]
    # An array that ends where the block does: what is read behind it is somebody else's.
    data = np.array(block, np.uint8)
    limits = (0, len(data), count, 2**62, 2**62 + count - 1, 2**63 - 1, attempt % 2, 5)
    blocks = Blocks(*(np.array([limit], np.int64) for limit in limits))
    table = RecordTable(count)
    whole = kernel.walk(data, blocks, table)
    walked += whole
    refused += not whole
    found = kernel.walk_window(data, blocks, 2**62 - 1, RecordTable(noise.randrange(1, 9)))
    assert 0 <= found.rows <= count
    if whole:
        kernel.find_headers(data, table.headers_start, table.header_count)
        kernel.gather(data, table.key_start, table.key_size)
        kernel.gather(data, table.value_start, table.value_size)
    lies = np.array([noise.randrange(-3, 300) for _ in range(4)], np.int32)
    sizes = np.array([noise.randrange(-3, 300) for _ in range(4)], np.int32)
    for lie in (lambda: kernel.gather(data, lies, sizes),
                lambda: kernel.find_headers(data, lies, np.abs(sizes) % 4)):
        try:
            lie()
        except ValueError:
            pass
    batches = bytearray(build_batch([(b"k", b"v", (), 1)]) * 2)
    batches[noise.randrange(len(batches))] = noise.randrange(256)
    del batches[noise.randrange(len(batches)):]
    kernel.find_batches(memoryview(batches), 0, noise.randrange(4))
print(walked, refused)
"""


@pytest.fixture(scope="module")
def sanitized() -> Iterator[tuple[str, str]]:
    """The source with sanitizers, and what has to be loaded before Python."""
    with sanitized_source("records") as found:
        yield found


@pytest.mark.parametrize("seed", [1, 2])
def test_hostile_bytes_touch_no_other_memory(sanitized: tuple[str, str], seed: int) -> None:
    """Every array ends where what is in it ends."""
    attempts = drawn(4000, 5)
    done = run_sanitized(SCRIPT, sanitized, seed, attempts)
    assert done.returncode == 0, done.stderr[-3000:]
    walked, refused = map(int, done.stdout.split())
    assert walked > attempts // 8
    assert refused > attempts // 8
