"""Bucket and broker together: who is asked for what, and the same rows from each."""

import re
from typing import Any

import pytest

from pipeline.read.broker.client import NO_OFFSET, BrokerClient
from pipeline.read.broker.options import BrokerOptions
from pipeline.source.options.options import parse_options
from pipeline.source.planner import Planner
from tests.spark.comparison import assert_same, fingerprint, kafka, varve
from tests.spark.test_kafka_rows import LEVELS, bucket_ends
from tests.spark.tiered_topic import TieredBroker

pytestmark = pytest.mark.spark

TIMES_MAX = 40
"""That are asked for, of those around borders."""


def fetches(broker: TieredBroker, topic: str) -> float:
    """Fetches of a topic that the broker has answered since its start."""
    name = "kafka_server_brokertopicmetrics_totalfetchrequests_total"
    found = re.search(rf'{name}{{topic="{topic}"}} ([0-9.]+)', broker.metrics())
    return float(found[1]) if found else 0.0


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("tier", ["auto", "broker"])
def test_a_whole_topic_is_read(spark: Any, tiered: TieredBroker, tier: str, level: str) -> None:
    """Its end is the broker's: nothing is missing where bucket and broker meet."""
    options = {
        "subscribe": "orders,stamped",
        "kafka.isolation.level": level,
        "kafka.bootstrap.servers": tiered.node.address,
    }
    ours = varve(spark, tiered, **options, tier=tier)
    theirs = kafka(spark, tiered, **options)
    assert fingerprint(ours) == fingerprint(theirs)
    assert_same(ours.filter("topic = 'stamped'"), theirs.filter("topic = 'stamped'"))


def test_tiered_offsets_cause_no_fetch(spark: Any, tiered: TieredBroker) -> None:
    """Counted at the broker."""
    before = fetches(tiered, "orders")
    rows = varve(
        spark,
        tiered,
        subscribe="orders",
        tier="auto",
        endingOffsets=bucket_ends(tiered, "orders", "read_uncommitted"),
        **{"kafka.bootstrap.servers": tiered.node.address},
    )
    assert rows.count() > 1000
    assert fetches(tiered, "orders") == before


def test_what_is_behind_the_handover_is_fetched(spark: Any, tiered: TieredBroker) -> None:
    """And says so in the column `tier`."""
    before = fetches(tiered, "orders")
    rows = varve(
        spark,
        tiered,
        subscribe="orders",
        tier="auto",
        columns="partition,offset,tier",
        includeHeaders="false",
        **{"kafka.bootstrap.servers": tiered.node.address},
    )
    counts = {row["tier"]: row["count"] for row in rows.groupBy("tier").count().collect()}
    assert counts.keys() == {"bucket", "broker"}
    assert fetches(tiered, "orders") > before
    border = rows.groupBy("partition", "tier").agg({"offset": "max"}).collect()
    ends = {(row["partition"], row["tier"]): row["max(offset)"] for row in border}
    assert all(ends[number, "bucket"] < ends[number, "broker"] for number in range(3))


def test_times_are_those_of_the_connector(spark: Any, tiered: TieredBroker) -> None:
    """By bucket, by broker, and by the connector: the same offsets."""
    given = {
        "subscribe": "orders",
        "startingTimestamp": "1700000005000",
        "endingTimestamp": "1700000011000",
    }
    theirs = fingerprint(kafka(spark, tiered, **given))
    servers = {"kafka.bootstrap.servers": tiered.node.address}
    assert fingerprint(varve(spark, tiered, **given)) == theirs
    assert fingerprint(varve(spark, tiered, **given, **servers, tier="auto")) == theirs
    assert theirs[0] > 0


@pytest.mark.parametrize("topic", ["orders", "stamped"])
def test_times_at_every_border_are_the_brokers(tiered: TieredBroker, topic: str) -> None:
    """Around the greatest time of every segment; Spark's Kafka source asks the broker."""
    given = {**tiered.options, "subscribe": topic, "tier": "bucket"}
    with Planner(parse_options(given)) as planner:
        views = planner.view()
    logs = [view.log for view in views.values()]
    greatest = {one.metadata.max_timestamp_ms for log in logs if log for one in log.segments}
    times = sorted({stamp + step for stamp in greatest for step in (-1, 0, 1)} | {0, 1 << 42})
    with BrokerClient(BrokerOptions(tiered.node.address)) as client:
        for time_ms in times[:: max(1, len(times) // TIMES_MAX)]:
            options = parse_options(
                {
                    **given,
                    "startingTimestamp": str(time_ms),
                    "startingOffsetsByTimestampStrategy": "latest",
                }
            )
            with Planner(options) as planner:
                ours = planner.starting(planner.view())
            theirs = client.list_offsets(dict.fromkeys(ours, time_ms), read_committed=False)
            for partition, offset in ours.items():
                told = theirs[partition].offset
                end = views[partition].end
                expected = end if told == NO_OFFSET else min(told, end)
                assert offset == expected, (partition, time_ms)
