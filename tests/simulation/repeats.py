"""Are runs of a seed the same in two interpreters that hash strings differently?"""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

TRACE: Final = re.compile(r"^seed (\d+): \w+ trace ([0-9a-f]+) handles (\d+)", re.MULTILINE)
HASH_SEEDS: Final = ("1", "2")


def traces(arguments: Sequence[str], hash_seed: str) -> dict[int, tuple[str, str]]:
    """By seed, the trace and the number of handles of its run in a process of its own."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments, "--go-on"],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return {int(seed): (trace, handles) for seed, trace, handles in TRACE.findall(ended.stdout)}


def compare(arguments: Sequence[str]) -> int:
    """Run all seeds twice, and print those that differ; 1 when some do, or none was run."""
    first, second = (traces(arguments, hash_seed) for hash_seed in HASH_SEEDS)
    other = [seed for seed in sorted({*first, *second}) if first.get(seed) != second.get(seed)]
    print(f"{len(first) - len(other)} of {len(first)} seeds have equal traces {other or ''}")
    return 1 if other or not first else 0
