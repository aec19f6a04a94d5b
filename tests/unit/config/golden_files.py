"""Reader of what released Kafka printed; Ask.java beside the files made it."""

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "golden"

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "\\": "\\"}


def rows(name: str) -> list[list[str]]:
    """Cells of every line of a golden table."""
    lines = (FOLDER / name).read_text(encoding="utf-8").split("\n")
    return [[_unescape(cell) for cell in line.split("\t")] for line in lines if line]


def _unescape(cell: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPES[match[1]], cell)
