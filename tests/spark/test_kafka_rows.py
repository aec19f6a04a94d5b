"""The contract: same options, same rows as Spark's own Kafka connector."""

from typing import Any

import pytest

from pipeline.source.offsets import format_offsets
from pipeline.source.options import parse_options
from pipeline.source.planner import Planner
from storage.topic_partition import TopicPartition
from tests.spark.comparison import assert_same, fingerprint, kafka, varve
from tests.spark.tiered_topic import TieredBroker

LEVELS = ("read_uncommitted", "read_committed")


def bucket_ends(broker: TieredBroker, topic: str, level: str) -> str:
    """Where the bucket's rows end, for `endingOffsets`."""
    options = parse_options(
        {
            "path": broker.location,
            "subscribe": topic,
            "isolationLevel": level,
            "keyPairs": broker.key_pairs,
        }
    )
    with Planner(options) as planner:
        views = planner.look()
        return format_offsets({partition: view.end for partition, view in views.items()})


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("topic", ["orders", "stamped"])
def test_rows_of_the_bucket_are_those_of_the_connector(
    spark: Any, tiered: TieredBroker, topic: str, level: str
) -> None:
    """All columns: nulls, odd headers and times, every codec, every way to store a segment."""
    ends = bucket_ends(tiered, topic, level)
    options = {"subscribe": topic, "kafka.isolation.level": level}
    ours = varve(spark, tiered, **options)
    theirs = kafka(spark, tiered, **options, endingOffsets=ends)
    count = assert_same(ours, theirs)
    assert count > 1000
    assert fingerprint(ours) == fingerprint(theirs)


def test_levels_differ(spark: Any, tiered: TieredBroker) -> None:
    """There are aborted rows to be left out: otherwise the comparison above says little."""
    ends = bucket_ends(tiered, "orders", "read_committed")
    all_rows, committed = (
        varve(spark, tiered, subscribe="orders", isolationLevel=level, endingOffsets=ends).count()
        for level in LEVELS
    )
    assert 0 < committed < all_rows


def test_the_topic_is_stored_in_every_way(tiered: TieredBroker) -> None:
    """As it is, compressed, and compressed and encrypted, by leaders of several epochs."""
    options = parse_options(
        {"path": tiered.location, "subscribe": "orders", "keyPairs": tiered.key_pairs}
    )
    with Planner(options) as planner:
        log = planner.look()[TopicPartition("orders", 0)].log
    assert log is not None
    assert len(log.leader_epochs) == 3
    assert len(log.segments) > 5
