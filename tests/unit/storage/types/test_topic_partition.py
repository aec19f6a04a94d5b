"""Names of logs, grouped as requests name them."""

from storage.types.topic_partition import TopicPartition, indexes_by_topic


def test_indexes_keep_their_order_within_topics_and_topics_theirs() -> None:
    named = [TopicPartition(*one) for one in (("b", 2), ("a", 0), ("b", 1))]
    assert list(indexes_by_topic(named).items()) == [("b", [2, 1]), ("a", [0])]
    assert indexes_by_topic([]) == {}
