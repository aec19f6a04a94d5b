"""Parsers of options' texts: switches, numbers, sizes, durations, lists, identifiers.

Sizes and durations are written as in Spark's own settings (JavaUtils.java: `128m`, `15min`), and
also with a space and in full (`128 MiB`, `15 min`). Every reader raises ValueError with the rest of
a sentence that begins with the option's name.
"""

import re
from collections.abc import Callable, Sequence
from uuid import UUID

from pipeline.read.broker.cluster import parse_address
from storage.types.uuid_text import parse_uuid

KIB = 1024
MIB = 1024 * KIB
LONG_MAX = (1 << 63) - 1

_BYTES = {"": 1, "b": 1, "k": KIB, "m": MIB, "g": 1024 * MIB, "t": 1024 * 1024 * MIB}
_SIZE = re.compile(r"([0-9]+)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)

_UNITS_MS = {
    "": 1.0,
    "us": 0.001,
    "ms": 1.0,
    "s": 1000.0,
    "m": 60_000.0,
    "min": 60_000.0,
    "h": 3_600_000.0,
    "d": 86_400_000.0,
}
_DURATION = re.compile(r"([0-9]+)\s*([a-z]*)", re.IGNORECASE)
_KEY_PAIR_ID = re.compile(r"[^=,\s]+")


def text(value: str) -> str:
    """Any text but an empty one."""
    stripped = value.strip()
    if not stripped:
        raise ValueError("is empty")
    return stripped


def switch(value: str) -> bool:
    """`true` or `false`."""
    known = {"true": True, "false": False}
    chosen = known.get(value.strip().lower())
    if chosen is None:
        raise ValueError(f"is {value!r}, which is neither true nor false")
    return chosen


def positive(value: str) -> int:
    """A whole number from 1."""
    number = whole(value)
    if number < 1:
        raise ValueError(f"is {number} and must be positive")
    return number


def whole(value: str) -> int:
    """A whole number that Java's `long` can hold."""
    stripped = value.strip()
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", stripped) or abs(int(stripped)) > LONG_MAX:
        raise ValueError(f"is {value!r}, which is no whole number of 64 bits")
    return int(stripped)


def timestamp(value: str) -> int:
    """Milliseconds since 1970."""
    number = whole(value)
    if number < 0:
        raise ValueError(f"is {number}; a time is milliseconds since 1970, from 0")
    return number


def size(value: str) -> int:
    """A number of bytes from 1."""
    match = _SIZE.fullmatch(value.strip())
    number = int(match[1]) * _BYTES[match[2].lower()] if match else 0
    if match is None or not 0 < number <= LONG_MAX:
        raise ValueError(f"is {value!r}, which is no size such as 134217728, 128m or 128 MiB")
    return number


def duration_ms(value: str) -> int:
    """Milliseconds; a number without a unit is that."""
    match = _DURATION.fullmatch(value.strip())
    unit = _UNITS_MS.get(match[2].lower()) if match else None
    if match is None or unit is None or int(match[1]) * unit > LONG_MAX:
        raise ValueError(f"is {value!r}, which is no duration such as 500ms, 30s, 15m or 1h")
    return int(int(match[1]) * unit)


def one_of(*names: str) -> Callable[[str], str]:
    """Reads one of some names, without regard to case."""

    def parse(value: str) -> str:
        chosen = value.strip().lower()
        if chosen not in names:
            raise ValueError(f"is {value!r} and must be one of {', '.join(names)}")
        return chosen

    return parse


def words(value: str) -> Sequence[str]:
    """Words between commas, at least one, none of them twice."""
    found = [word.strip() for word in value.split(",") if word.strip()]
    if not found:
        raise ValueError(f"is {value!r}, which names nothing")
    twice = sorted({word for word in found if found.count(word) > 1})
    if twice:
        raise ValueError(f"names {', '.join(twice)} twice")
    return tuple(found)


def servers(value: str) -> Sequence[str]:
    """Addresses of brokers, `host:port` between commas; nothing is asked of them."""
    found = words(value)
    strange = [repr(word) for word in found if parse_address(word) is None]
    if strange:
        raise ValueError(f"has {', '.join(strange)}, where host:port is expected")
    return found


def identifier(value: str) -> UUID:
    """An identifier as Kafka writes it, or in hexadecimal digits with hyphens."""
    stripped = value.strip()
    try:
        return UUID(stripped) if len(stripped) == 36 else parse_uuid(stripped)
    except ValueError as error:
        raise ValueError(f"is {value!r}, which is no topic's identifier") from error


def key_pairs(value: str) -> dict[str, str]:
    """`id=private.pem,...`: where the private keys lie; the keys themselves are never read here."""
    pairs: dict[str, str] = {}
    for word in words(value):
        name, separator, path = word.partition("=")
        name, path = name.strip(), path.strip()
        if not separator or not _KEY_PAIR_ID.fullmatch(name) or not path:
            raise ValueError(f"has {word!r}, where id=path of a private key is expected")
        if name in pairs:
            raise ValueError(f"has two files for the key pair {name}")
        pairs[name] = path
    return pairs
