"""Which partitions a read is about."""

import pytest

from pipeline.source.options.topics import Assigned, parse_assign, parse_pattern, parse_subscribe
from storage.types.topic_partition import TopicPartition


def test_topics_are_named_once() -> None:
    """As in Spark, where they are a set."""
    assert parse_subscribe(" a, b,,a ").topics == ("a", "b")
    with pytest.raises(ValueError, match="names no topic"):
        parse_subscribe(" , ")


def test_a_pattern_is_found_anywhere_in_a_name() -> None:
    """ConsumerStrategy.scala: `findFirstIn`. Whoever means whole names says so."""
    pattern = parse_pattern("orders-[0-9]+")
    assert pattern.matches("orders-12")
    assert pattern.matches("orders-12-dead")
    assert pattern.matches("my-orders-12")
    assert not pattern.matches("orders-")
    assert not parse_pattern("^orders-[0-9]+$").matches("my-orders-12")


def test_no_pattern_matches_internal_topics() -> None:
    """Kafka's client does not list them either."""
    assert not parse_pattern(".*").matches("__consumer_offsets")
    assert parse_pattern(".*").matches("__mine")


@pytest.mark.parametrize("text", ["a(", "[a", "a{2}{3}", "[[a]", r"\p{Lu}"])
def test_what_is_no_pattern_is_refused(text: str) -> None:
    """Also what Java reads in another way than Python."""
    with pytest.raises(ValueError, match="no pattern"):
        parse_pattern(text)


def test_an_empty_pattern_is_refused() -> None:
    with pytest.raises(ValueError, match="is empty"):
        parse_pattern("  ")


def test_assigned_partitions_have_topics() -> None:
    choice = parse_assign('{"b":[1,0],"a":[2]}')
    assert choice == Assigned(
        (TopicPartition("b", 1), TopicPartition("b", 0), TopicPartition("a", 2))
    )
    assert choice.topics == ("b", "a")
    assert str(choice) == "assign b-1, b-0, a-2"
