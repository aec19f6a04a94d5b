"""The hash of a group's topics."""

from uuid import UUID

from broker.groups.modern.metadata_hash import NO_TOPICS, group_hash, topic_hash

TOPIC_ID = UUID("f0e1d2c3-b4a5-9687-7869-5a4b3c2d1e0f")
RACKS = {0: ["r2", "r1"], 1: [], 2: ["räck", "r1"]}


def test_numbers_are_kafkas() -> None:
    """Written by Utils.computeTopicHash and computeGroupHash of Kafka 4.2.0."""
    with_racks = topic_hash(TOPIC_ID, "orders", 3, RACKS)
    without = topic_hash(TOPIC_ID, "grüße", 500, {})
    assert with_racks == -3529776104717438273
    assert without == -6255966083757493034
    assert group_hash({"orders": with_racks, "grüße": without}) == -1097260064368634253
    assert group_hash({}) == NO_TOPICS


def test_everything_counts() -> None:
    """Id, name, number of partitions, racks, and which partition they are of."""
    base = topic_hash(TOPIC_ID, "orders", 3, RACKS)
    others = {
        topic_hash(UUID(int=1), "orders", 3, RACKS),
        topic_hash(TOPIC_ID, "order", 3, RACKS),
        topic_hash(TOPIC_ID, "orders", 4, RACKS),
        topic_hash(TOPIC_ID, "orders", 3, {}),
        topic_hash(TOPIC_ID, "orders", 3, {**RACKS, 1: ["r1"]}),
        topic_hash(TOPIC_ID, "orders", 3, {0: [], 1: ["r2", "r1"], 2: ["räck", "r1"]}),
    }
    assert len(others | {base}) == 7
    assert group_hash({"a": base}) != group_hash({"a": base, "b": 0})


def test_order_does_not_count() -> None:
    """Of racks, and of topics."""
    sorted_racks = {partition: sorted(racks) for partition, racks in RACKS.items()}
    assert topic_hash(TOPIC_ID, "t", 3, RACKS) == topic_hash(TOPIC_ID, "t", 3, sorted_racks)
    assert group_hash({"a": 1, "b": 2}) == group_hash({"b": 2, "a": 1})
    assert group_hash({"a": 1, "b": 2}) != group_hash({"a": 2, "b": 1})
