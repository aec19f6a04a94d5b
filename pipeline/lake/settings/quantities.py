"""Numbers with units in a job's settings: `128 MiB`, `60 s`."""

import re
from typing import Final

_NUMBER: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")

BYTE_UNITS: Final = {
    "": 1,
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "tb": 1000**4,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
    "tib": 1024**4,
}

MILLISECOND_UNITS: Final = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}


def parse_bytes(given: object) -> int:
    """`4 GiB`, `500 MB`, `1048576`; ValueError with what is expected."""
    return _parse(given, BYTE_UNITS, "a size such as 128 MiB")


def parse_ms(given: object) -> int:
    """`60 s`, `5 min`, `250 ms`; a unit is needed. ValueError with what is expected."""
    return _parse(given, MILLISECOND_UNITS, "a duration such as 60 s")


def _parse(given: object, units: dict[str, int], expected: str) -> int:
    match = _NUMBER.fullmatch(str(given)) if isinstance(given, str | int) else None
    unit = None if match is None else units.get(match[2].lower())
    if match is None or unit is None or isinstance(given, bool):
        raise ValueError(f"{expected} is expected")
    return round(float(match[1]) * unit) if "." in match[1] else int(match[1]) * unit
