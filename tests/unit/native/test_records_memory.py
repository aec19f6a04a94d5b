"""`native/records.c` under AddressSanitizer and UndefinedBehaviorSanitizer, with hostile bytes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from native.build import BuildError, build, find_compiler

ROOT = Path(__file__).parents[3]

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
    compiler = find_compiler(os.environ)
    if compiler is None:
        pytest.skip("there is no C compiler")
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g", "-O1")
    try:
        path, _ = build("records", os.environ, extra_flags=flags)
    except BuildError:
        pytest.skip("the compiler has no sanitizers")
    runtime = subprocess.run(
        [*compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(runtime).is_absolute():
        pytest.skip("the compiler's sanitizer is no library of its own")
    yield str(path), runtime
    path.unlink()


def run(sanitized: tuple[str, str], seed: int, attempts: int) -> subprocess.CompletedProcess[str]:
    path, runtime = sanitized
    environment = {
        **os.environ,
        "LD_PRELOAD": runtime,
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0",
        # Small objects from malloc, too, where the sanitizer sees their ends.
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(ROOT),
    }
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, path, str(seed), str(attempts)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=300,
    )


@pytest.mark.parametrize("seed", [1, 2])
def test_hostile_bytes_touch_no_other_memory(sanitized: tuple[str, str], seed: int) -> None:
    """Every array ends where what is in it ends."""
    done = run(sanitized, seed, 4000)
    assert done.returncode == 0, done.stderr[-3000:]
    walked, refused = map(int, done.stdout.split())
    assert walked > 500
    assert refused > 500
