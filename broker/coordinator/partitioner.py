"""Partitioner of `__consumer_offsets`: group id to partition."""

from functools import lru_cache
from typing import Final

REMEMBERED_MAX: Final = 16_384
"""Names whose hash is cached: those of active groups."""

REMEMBERED_LENGTH_MAX: Final = 256
"""Longest name that is cached, in characters: clients may send any number of 32,767 each."""


def java_string_hash(text: str) -> int:
    """`String.hashCode()` of Java: 31-polynomial over UTF-16 units, signed 32 bits."""
    return remembered_hash(text) if len(text) <= REMEMBERED_LENGTH_MAX else _hash(text)


def _hash(text: str) -> int:
    value = 0
    octets = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(octets[::2], octets[1::2], strict=True):
        value = (value * 31 + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


remembered_hash = lru_cache(maxsize=REMEMBERED_MAX)(_hash)


def partition_for_group(group_id: str, partition_count: int) -> int:
    """Kafka's `Utils.abs(groupId.hashCode()) % partitions`; its `abs` turns -2**31 into 0."""
    value = java_string_hash(group_id)
    return (0 if value == -(1 << 31) else abs(value)) % partition_count
