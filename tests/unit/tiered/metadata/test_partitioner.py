"""The same numbers as Kafka's own class; the vectors were printed by Kafka 4.2.0's.

`tests/interop/dumps/test_remote_metadata_dump.py` asks the released class again, about random ids.
"""

from uuid import UUID

import pytest

from tiered.metadata.partitioner import metadata_partition
from tiered.segment_metadata import TopicIdPartition

VECTORS = [
    # Topic id, partition, its metadata partition of 50, and of 2**31 - 1.
    ("00000000000000000000000000000000", 130, 31, 1077805631),
    ("ffffffffffffffffffffffffffffffff", 763, 28, 341114978),
    ("aee7bbe10c45c0284f083ce3f12bbb4b", 2147483647, 30, 1874540980),
    ("46ee9d82b52c856daa616abe17610c9a", 182, 3, 2123280553),
    ("738597dc5e688e9961b35c8846976cf8", 32, 39, 14049039),
    ("76b20010c3185754c86c400eff88a1e3", 400, 9, 600877159),
    ("26e6bc6f6fbddf557096b882bff9d9d6", 241, 33, 1046215033),
    ("62f60bdbcc5c83052d68ad16268a478c", 730, 18, 2147000768),
]


@pytest.mark.parametrize(("topic_id", "partition", "of_50", "of_many"), VECTORS)
def test_kafka_agrees(topic_id: str, partition: int, of_50: int, of_many: int) -> None:
    found = TopicIdPartition(UUID(hex=topic_id), "any", partition)
    assert metadata_partition(found, 50) == of_50
    assert metadata_partition(found, (1 << 31) - 1) == of_many


def test_the_name_does_not_matter() -> None:
    topic_id = UUID(int=7)
    assert metadata_partition(TopicIdPartition(topic_id, "a", 1), 50) == metadata_partition(
        TopicIdPartition(topic_id, "b", 1), 50
    )


def test_partitions_of_a_topic_spread() -> None:
    found = {metadata_partition(TopicIdPartition(UUID(int=7), "a", n), 50) for n in range(500)}
    assert found == set(range(50))
