"""Partitioner of `__remote_log_metadata`: the metadata partition of a user partition.

    murmur2(big-endian int32 of Objects.hash(id's low half, id's high half, partition))
        without its sign bit, modulo the number of metadata partitions

Kafka's and ours agree, so a topic written by one can be read by the other.

Source: Kafka, RemoteLogMetadataTopicPartitioner.java, Utils.murmur2; Java, Objects.hash,
Long.hashCode.
"""

from functools import lru_cache
from uuid import UUID

from tiered.segment_metadata import TopicIdPartition

_MASK = 0xFFFFFFFF
_SEED = 0x9747B28C
_M = 0x5BD1E995


def metadata_partition(partition: TopicIdPartition, partition_count: int) -> int:
    """The metadata partition, 0 .. `partition_count` - 1; the topic's name does not matter."""
    return _hash(partition.topic_id, partition.partition) % partition_count


@lru_cache(maxsize=16_384)
def _hash(topic_id: UUID, partition: int) -> int:
    value = topic_id.int
    combined = 1
    for element in (
        _long_hash(value & 0xFFFFFFFFFFFFFFFF),
        _long_hash(value >> 64),
        partition,
    ):
        combined = (31 * combined + element) & _MASK
    return _murmur2(combined.to_bytes(4, "big")) & 0x7FFFFFFF


def _long_hash(value: int) -> int:
    """`Long.hashCode`, of an unsigned 64-bit number; unsigned."""
    return (value ^ (value >> 32)) & _MASK


def _murmur2(data: bytes) -> int:
    """Kafka's murmur2 of exactly four bytes, unsigned: one round and the finish."""
    k = int.from_bytes(data, "little") * _M & _MASK
    k ^= k >> 24
    k = k * _M & _MASK
    h = ((_SEED ^ 4) * _M & _MASK) ^ k
    h ^= h >> 13
    h = h * _M & _MASK
    return h ^ (h >> 15)
