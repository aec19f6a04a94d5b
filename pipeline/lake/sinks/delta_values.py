"""Values of Delta's log: bounds and times as it writes them, and files whose bytes are not all."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

_TIMES: Final = (-30_610_224_000_000, 253_402_300_799_000)
"""Milliseconds of the years 1000 to 9999, whose text has one form."""


def sealed_files(table: Any) -> Mapping[str, str]:
    """Files, by path, whose bytes alone do not give their rows, and why; "": all of them."""
    if table.metadata().configuration.get("delta.columnMapping.mode", "none") != "none":
        return {"": "the table maps its columns to other names"}
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return {}
    found = pa.table(table.deletion_vectors()).column("filepath").to_pylist()
    # These are whole addresses.
    return {
        str(add): "rows of it are deleted by a deletion vector"
        for add in pa.table(table.get_add_actions()).column("path").to_pylist()
        if any(str(path).endswith(str(add)) for path in found)
    }


def stats_times(least_us: int, most_us: int) -> tuple[str, str] | None:
    """Bounds of times as Delta writes them, in milliseconds; None where a year has more digits."""
    least_ms, most_ms = least_us // 1000, -(-most_us // 1000)
    if not _TIMES[0] <= least_ms <= most_ms <= _TIMES[1]:
        return None
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    statistics = [
        (epoch + timedelta(milliseconds=ms)).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"
        for ms in (least_ms, most_ms)
    ]
    return statistics[0], statistics[1]


def micros_of(moment: datetime | None) -> int | None:
    """Microseconds since 1970 UTC; a time without a zone is of UTC."""
    if moment is None:
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def text_of(value: object) -> str | None:
    """A partition value as Delta's log has it."""
    return None if value is None else str(value)
