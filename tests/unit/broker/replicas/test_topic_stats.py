"""Counters of a topic begin at nothing."""

from broker.replicas.topic_stats import TopicStats


def test_all_counters_begin_at_zero() -> None:
    stats = TopicStats()
    names = [name for name in dir(stats) if not name.startswith("_")]
    assert "bytes_in" in names
    assert {name: getattr(stats, name) for name in names} == dict.fromkeys(names, 0)
