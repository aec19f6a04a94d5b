"""Moments and durations as a user types them (ISO 8601), in milliseconds."""

import argparse
import re
from datetime import UTC, datetime
from typing import Final

_DURATION: Final = re.compile(
    r"P(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,3})?)S)?)?",
    re.IGNORECASE,
)
_UNIT_MS: Final = {
    "weeks": 7 * 86_400_000,
    "days": 86_400_000,
    "hours": 3_600_000,
    "minutes": 60_000,
    "seconds": 1000,
}


def datetime_ms(text: str) -> int:
    """Milliseconds since 1970 UTC of `2026-01-31T12:00:00.000+01:00`; without a zone it is UTC.

    For use as the type of a command-line option.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time like 2026-01-31T12:00:00 or 2026-01-31T12:00:00+01:00"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def duration_ms(text: str) -> int:
    """Milliseconds of `P1DT2H30M`, `PT15M`, `PT0.5S`, `P2W`.

    Months and years are refused, as they have no fixed length. For use as the type of an option.
    """
    match = _DURATION.fullmatch(text)
    parts = {} if match is None else {k: v for k, v in match.groupdict().items() if v is not None}
    if not parts or text[-1] in "Tt":
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration like P1D, PT2H30M or PT15S")
    return round(sum(float(value) * _UNIT_MS[unit] for unit, value in parts.items()))
