"""Which partition of `__consumer_offsets` a group lives in."""

from functools import lru_cache


@lru_cache(maxsize=16_384)
def java_string_hash(text: str) -> int:
    """`String.hashCode()` of Java: 31-polynomial over UTF-16 units, signed 32 bits."""
    value = 0
    octets = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(octets[::2], octets[1::2], strict=True):
        value = (value * 31 + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def partition_for_group(group_id: str, partition_count: int) -> int:
    """Kafka's `Utils.abs(groupId.hashCode()) % partitions`; its `abs` turns -2**31 into 0."""
    value = java_string_hash(group_id)
    return (0 if value == -(1 << 31) else abs(value)) % partition_count
