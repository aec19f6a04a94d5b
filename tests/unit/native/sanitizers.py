"""Shared objects with sanitizers of addresses and behaviour, and scripts that use them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from native.build import BuildError, build, find_compiler

ROOT = Path(__file__).parents[3]


@contextmanager
def sanitized_source(name: str, *others: str) -> Iterator[tuple[str, str]]:
    """The source with sanitizers and other flags, and what has to be loaded before Python."""
    compiler = find_compiler(os.environ)
    if compiler is None:
        pytest.skip("there is no C compiler")
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g", "-O1")
    try:
        path, _ = build(name, os.environ, extra_flags=(*flags, *others))
    except BuildError:
        pytest.skip("the compiler has no sanitizers")
    runtime = subprocess.run(
        [*compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(runtime).is_absolute():
        pytest.skip("the compiler's sanitizer is no library of its own")
    yield str(path), runtime
    path.unlink()


def run_sanitized(
    script: str, sanitized: tuple[str, str], seed: int, attempts: int
) -> subprocess.CompletedProcess[str]:
    """Run a script whose arguments are the shared object, a seed and how often it tries."""
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
        [sys.executable, "-c", script, path, str(seed), str(attempts)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=300,
    )
