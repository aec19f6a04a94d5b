"""The limit of hot consumers: a C program that answers their fetches and does nothing else.

`limit.c` is compiled by the compiler that `native` finds and sends the slices that a broker would
send, of the broker's own segment files, to the same consumers. A broker's rate as a share of its
rate says how much is the broker's; what is missing is the kernel's and the consumers', and no
broker's. Without a compiler there is no share, and one sentence that says so.
"""

import contextlib
import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.generator import LoadResult
from bench.node import Node, OwnedNode
from native.build import find_compiler

SOURCE = Path(__file__).with_name("limit.c")
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-pthread")


class LimitError(RuntimeError):
    """There is no limit to be measured; the sentence says why, and what helps."""


@dataclass(frozen=True, slots=True)
class LimitLog:
    """What the program sends: segments in order, of batches of one size."""

    topic: str
    batch_bytes: int
    batch_records: int
    segments: Sequence[Path]


def compile_program(source: Path, directory: Path, environment: Mapping[str, str]) -> Path:
    """Compile a program of one file into `directory`.

    Raises:
        LimitError: No compiler, or it failed.
    """
    compiler = find_compiler(environment)
    if compiler is None:
        raise LimitError(
            "no C compiler was found (CC, cc, gcc, clang): rows have no share of their limit "
            "(Debian: apt-get install gcc libc6-dev)"
        )
    program = directory / source.stem
    command = [*compiler, *FLAGS, "-o", str(program), str(source)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=dict(environment)
    )
    if done.returncode:
        raise LimitError(f"{shlex.join(command)} failed:\n{done.stderr.strip()}")
    return program


def segments_of(node: Node, topic: str, partition: int) -> list[Path]:
    """The log files of a partition, in order.

    Raises:
        LimitError: The broker was started elsewhere, so where its files are is not known.
    """
    if not isinstance(node, OwnedNode):
        raise LimitError(f"{node.name} runs already: its segment files are not known here")
    # With several brokers each has a directory of its own in there.
    segments = sorted(node.data_directory.rglob(f"{topic}-{partition}/*.log"))
    if not segments:
        raise LimitError(f"{node.name}: no segments of {topic}-{partition} are where they belong")
    return segments


@contextlib.contextmanager
def serving(log: LimitLog) -> Iterator[tuple[int, int]]:
    """The program, serving `log`: its port and its process id.

    Raises:
        LimitError: It cannot be compiled, or it did not start.
    """
    with TemporaryDirectory(prefix="varve-limit-") as directory:
        program = compile_program(SOURCE, Path(directory), os.environ)
        process = subprocess.Popen(
            [
                str(program),
                *(log.topic, str(log.batch_bytes), str(log.batch_records)),
                *map(str, log.segments),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = process.stdout.readline()
            if not port:
                raise LimitError(f"{program.name} ended with {process.wait()}")
            yield int(port), process.pid
        finally:
            # It watches its input, and ends with it.
            process.stdin.close()
            process.wait(10.0)
            process.stdout.close()


def beside_limit(ours: LoadResult, before: LoadResult, after: LoadResult) -> dict[str, float]:
    """A broker's rate and CPU beside those of the limit, just before it and just after it."""
    size, seconds = before.size_bytes + after.size_bytes, before.seconds + after.seconds
    limit_cpu_s = before.broker_cpu_s + after.broker_cpu_s
    limit_rate = size / seconds
    return {
        "limit_mb_per_s": limit_rate / 1e6,
        "share_of_limit": ours.size_bytes / ours.seconds / limit_rate,
        "cpu_x_limit": (ours.broker_cpu_s / ours.size_bytes) / (limit_cpu_s / size),
    }
