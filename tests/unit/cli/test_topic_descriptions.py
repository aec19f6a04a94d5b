"""Descriptions of topics are put together from several answers."""

from cli.topic_descriptions import PartitionDescription, describe_topics, existing_topics
from tests.fakes.kafka.library_clients import FakeCluster


def test_topics_come_in_the_order_they_were_named() -> None:
    """Once each; the missing ones are told apart."""
    cluster = FakeCluster()
    for name in "abc":
        cluster.add_topic(name)
    found, missing = describe_topics(cluster.admin(), ["c", "x", "a", "c"], internal=False)
    assert ([topic.name for topic in found], missing) == (["c", "a"], ["x"])


def test_partitions_come_in_order() -> None:
    """Whatever the order of the answer; the size is the leader's."""
    cluster = FakeCluster()
    cluster.add_topic("t", 1, 2)
    ((topic,), _) = describe_topics(cluster.admin(), ["t"], internal=False)
    assert topic.partitions == (
        PartitionDescription(0, 1, (1,), (1,), 0, 1, 100),
        PartitionDescription(1, 1, (1,), (1,), 0, 2, 200),
    )


def test_nothing_is_asked_about_no_topics() -> None:
    """An empty list of names would mean all of them to some APIs."""
    cluster = FakeCluster()
    cluster.add_topic("__own", internal=True)
    assert describe_topics(cluster.admin(), [], internal=False) == ([], [])
    assert describe_topics(cluster.admin(), ["x"], internal=False) == ([], ["x"])
    assert [t["name"] for t in existing_topics(cluster.admin(), internal=True)] == ["__own"]
