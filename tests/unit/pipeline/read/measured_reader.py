"""A process of its own that reads pieces and prints its peak memory.

    python -m tests.unit.pipeline.read.measured_reader < pickled (pieces, options)

It prints JSON: rows, the sum of their values' lengths, and the peak resident size in bytes.
"""

import json
import pickle
import sys
from pathlib import Path

import pyarrow.compute as pc

from pipeline.read.piece.piece_rows import read_piece


def peak_bytes() -> int:
    """Of this process, by Linux."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM in /proc/self/status")


def main() -> None:
    """Read all that came in."""
    pieces, options = pickle.load(sys.stdin.buffer)
    rows = size = 0
    for piece in pieces:
        for batch in read_piece(piece, options):
            rows += batch.num_rows
            size += pc.sum(pc.binary_length(batch.column("value"))).as_py() or 0
    sys.stdout.write(json.dumps({"rows": rows, "bytes": size, "peak": peak_bytes()}))


if __name__ == "__main__":
    main()
