"""The metadata hash: one number that changes with the topics a group subscribed to (KIP-1101).

A topic's hash is that of its id, name, number of partitions, and where their replicas are; a
group's is that of its topics' hashes in the order of their names. The number is kept with the
group's epoch in the log: when it is another one than that of the topics of today, the group must be
assigned again, also after a restart or in another broker. Kafka computes the same number.

    topic     1 zero byte, 16 topic id as two int64, string name, int32 partitions, then of each
              partition: int32 partition, and of each rack in order: int32 length, string
    group     int64 of each topic
    string    UTF-16, then int32 count of its units

Little-endian, but for the topic id, whose halves are numbers of their own.

Source: Kafka, Utils.java (computeTopicHash, computeGroupHash), ModernGroup.computeMetadataHash.
"""

from collections.abc import Collection, Mapping
from struct import Struct
from struct import pack as pack_fields
from uuid import UUID

from broker.groups.modern.xxh3 import xxh3_64

NO_TOPICS = 0
"""Hash of a group none of whose topics exists."""

_INT32 = Struct("<i")
_HEAD = Struct("<bQQ")
_MAGIC = 0


def topic_hash(
    topic_id: UUID, name: str, partition_count: int, racks: Mapping[int, Collection[str]]
) -> int:
    """Hash of one topic, a signed number; it changes only when the topic does: keep it.

    Args:
        topic_id: Of the topic.
        name: Of the topic.
        partition_count: Partitions are numbered from 0.
        racks: Of the replicas of each partition; absent where no rack is known.
    """
    number = topic_id.int
    pieces = [
        _HEAD.pack(_MAGIC, number >> 64, number & 0xFFFF_FFFF_FFFF_FFFF),
        _string(name),
        _INT32.pack(partition_count),
    ]
    if not racks:
        pieces.append(pack_fields(f"<{partition_count}i", *range(partition_count)))
    else:
        for partition in range(partition_count):
            pieces.append(_INT32.pack(partition))
            for rack in sorted(racks.get(partition, ())):
                text = _string(rack)
                pieces += (text[-4:], text)
    return _signed(xxh3_64(b"".join(pieces)))


def group_hash(topic_hashes: Mapping[str, int]) -> int:
    """Hash of a group's topics, by name, of those that exist; `NO_TOPICS` without any."""
    if not topic_hashes:
        return NO_TOPICS
    hashes = [topic_hashes[name] for name in sorted(topic_hashes)]
    return _signed(xxh3_64(pack_fields(f"<{len(hashes)}q", *hashes)))


def _string(text: str) -> bytes:
    units = text.encode("utf-16-le")
    return units + _INT32.pack(len(units) // 2)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number
