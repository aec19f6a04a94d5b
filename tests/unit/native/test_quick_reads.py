"""`native/quick_reads.c` under sanitizers: it reads, probes and refuses as Python's does."""

import sysconfig

import pytest

from storage.environment import quick_reads
from tests.unit.native.sanitizers import run_sanitized, sanitized_source

SCRIPT = """
import errno
import os
import random
import sys
import tempfile
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from storage.environment import quick_reads as python

loader = ExtensionFileLoader("storage.environment.quick_reads", sys.argv[1])
spec = spec_from_file_location(loader.name, loader.path, loader=loader)
c = module_from_spec(spec)
loader.exec_module(c)
assert {name for name in vars(c) if not name.startswith("_")} == set(python.__all__)
assert c.has_nowait is python.has_nowait


def answer(function, *arguments):
    try:
        return function(*arguments)
    except OSError as error:
        return error.errno


SIZE = 300_000
choose = random.Random(int(sys.argv[2]))
with tempfile.NamedTemporaryFile() as file:
    file.write(choose.randbytes(SIZE))
    file.flush()
    fd = file.fileno()
    for _ in range(int(sys.argv[3])):
        position = choose.choice([0, 1, 4095, SIZE - 1, SIZE, SIZE + 9, choose.randrange(SIZE)])
        size = choose.choice([0, 1, 61, 4096, choose.randrange(2 * SIZE)])
        stride = choose.choice([1 << 10, 1 << 18, 1 << 62])
        for descriptor in fd, 999:
            read = [answer(m.read_cached, descriptor, size, position) for m in (python, c)]
            assert read[0] == read[1] and type(read[0]) is type(read[1]), (size, position)
            probed = [answer(m.probe, descriptor, position, size, stride) for m in (python, c)]
            assert probed[0] is probed[1], (position, size, stride)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, SIZE, os.POSIX_FADV_DONTNEED)
    cold = [answer(m.probe, fd, 0, SIZE, 4096) for m in (python, c)]
    os.posix_fadvise(fd, 0, SIZE, os.POSIX_FADV_DONTNEED)
    cold.append(answer(c.read_cached, fd, SIZE, 0))
    print("cold" if cold == [False, False, None] else "kept")
for wrong in (0, 1), (0, 1, 2, 3), ("0", 1, 2), (1 << 40, 1, 2), (0, -1, 2), (0, 1 << 70, 2):
    try:
        c.read_cached(*wrong)
    except (TypeError, ValueError, OverflowError):
        print("refused")
for wrong in (0, 1, 2), (0, 1, 2, 0), (0, (1 << 63) - 1, 9, 1):
    try:
        c.probe(*wrong)
    except (TypeError, ValueError, OverflowError):
        print("refused")
"""


@pytest.mark.skipif(not quick_reads.has_nowait, reason="this system has no RWF_NOWAIT")
def test_both_read_what_is_in_memory() -> None:
    """Random ranges, also beyond the file and of a descriptor that is none; then a cold file."""
    with sanitized_source("quick_reads", f"-I{sysconfig.get_path('include')}") as sanitized:
        done = run_sanitized(SCRIPT, sanitized, 7, 300)
    kinds = done.stdout.split()
    assert (done.returncode, kinds[1:]) == (0, ["refused"] * 9), done.stderr[-3000:]
    assert kinds[0] in {"cold", "kept"}  # A file system may keep its pages.
