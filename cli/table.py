"""Plain aligned tables and other small forms that commands print."""

import json
from collections.abc import Sequence
from typing import Final

_UNITS: Final = ("KiB", "MiB", "GiB", "TiB", "PiB")

Cell = str | int | None
"""None is shown as `-`."""


def format_table(headings: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Columns two spaces apart; a column that holds nothing but numbers stands to the right.

    Lines end without blanks, so that a last column may be as wide as it likes.
    """
    shown = [["-" if cell is None else str(cell) for cell in row] for row in rows]
    columns = list(zip(headings, *shown, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [
        any(isinstance(row[n], int) for row in rows)
        and all(isinstance(row[n], int | None) for row in rows)
        for n in range(len(headings))
    ]
    lines = []
    for line in (headings, *shown):
        cells = [
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(line, widths, right, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def format_size(size_bytes: int) -> str:
    """`812 B`, `4.0 KiB`, `1.3 GiB`: three digits."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    size = float(size_bytes)
    for unit in _UNITS:
        size /= 1024
        if size < 1024 or unit == _UNITS[-1]:
            break
    return f"{size:.1f} {unit}"


def format_json(document: object) -> str:
    """One JSON document, for a person and for `jq`."""
    return json.dumps(document, indent=2, ensure_ascii=False)


def counted(count: int, noun: str) -> str:
    """`1 record`, `2 records`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def ranges(numbers: Sequence[int]) -> str:
    """`0-3,7` for 0, 1, 2, 3, 7."""
    parts: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1] = (parts[-1][0], number)
        else:
            parts.append((number, number))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
