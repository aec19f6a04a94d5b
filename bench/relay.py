"""The limit of catching up from S3: a C program that puts objects into files and sends the files.

`relay.c` does with threads what a broker with a chunk cache on disk cannot do without, and nothing
else. What it reaches of a plain reader's rate is what two cores leave to any broker that downloads
to files; a broker's rate as a share of it says how much is the broker's.
"""

import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import urlsplit

from bench.limit import LimitError, compile_program
from bench.plain_reader import PlainLoad

SOURCE = Path(__file__).with_name("relay.c")


class RelayResult(NamedTuple):
    """Bytes a second, and CPU seconds a byte of the program and of its consumer."""

    bytes_per_s: float
    cpu_s_per_byte: float
    consumer_cpu_s_per_byte: float


def relay(load: PlainLoad, directory: Path, *, in_memory: bool = False) -> RelayResult:
    """Send every byte once, through files in `directory`.

    Args:
        load: What is read how.
        directory: Where there is room.
        in_memory: Without files, from memory that is used again: what a chunk costs that is not
            kept for a second reader.

    Raises:
        LimitError: It cannot be compiled, or a range did not come.
    """
    port = urlsplit(load.objects[0][0]).port
    ranges = [
        (urlsplit(url), position, min(load.range_bytes, size - position))
        for url, size in load.objects
        for position in range(0, size, load.range_bytes)
    ]
    with TemporaryDirectory(prefix="varve-relay-", dir=directory) as files:
        program = compile_program(SOURCE, Path(files), os.environ)
        done = subprocess.run(
            [str(program), str(port), str(load.in_flight), "-" if in_memory else files],
            input="".join(
                f"{where.path}?{where.query} {position} {length}\n"
                for where, position, length in ranges
            ),
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise LimitError(f"{SOURCE.name} ended with {done.returncode}: {done.stderr.strip()}")
    return RelayResult(*map(float, done.stdout.split()))
