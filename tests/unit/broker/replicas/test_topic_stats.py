"""Counters of a topic begin at nothing."""

from broker.replicas.topic_stats import TopicStats


def test_all_counters_begin_at_zero() -> None:
    stats = TopicStats()
    assert {name: getattr(stats, name) for name in stats.__slots__} == dict.fromkeys(
        stats.__slots__, 0
    )
