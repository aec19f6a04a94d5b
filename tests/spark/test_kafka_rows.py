"""The contract: same options, same rows as Spark's own Kafka connector."""

import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from pipeline.source.options.offsets import format_offsets
from pipeline.source.options.options import parse_options
from pipeline.source.planner import Planner
from storage.types.topic_partition import TopicPartition
from tests.spark.comparison import assert_same, fingerprint, kafka, varve
from tests.spark.tiered_topic import TieredBroker

LEVELS = ("read_uncommitted", "read_committed")


def bucket_ends(broker: TieredBroker, topic: str, level: str) -> str:
    """Where the bucket's rows end, for `endingOffsets`."""
    return format_offsets(broker.bucket_ends(topic, level))


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
    """By leaders of several epochs, and some of it can be read with a key only."""
    options = parse_options({**tiered.options, "subscribe": "orders"})
    with Planner(options) as planner:
        log = planner.view()[TopicPartition("orders", 0)].log
    assert log is not None
    assert len(log.leader_epochs) > 1
    assert len(log.segments) > 5


S3 = {
    "rsm.config.storage.backend.class": "io.aiven.kafka.tieredstorage.storage.s3.S3Storage",
    "rsm.config.storage.s3.bucket.name": "tiered-rows",
    "rsm.config.storage.s3.region": "us-east-1",
    "rsm.config.storage.s3.path.style.access.enabled": "true",
    "rsm.config.storage.aws.access.key.id": "AKIDEXAMPLE",
    "rsm.config.storage.aws.secret.access.key": "secret-of-the-test",
}


@pytest.mark.parametrize("level", LEVELS)
def test_rows_from_s3_are_those_of_the_connector(
    spark: Any, s3_broker: TieredBroker, level: str
) -> None:
    ends = bucket_ends(s3_broker, "orders", level)
    options = {"subscribe": "orders", "kafka.isolation.level": level}
    ours = varve(spark, s3_broker, **options)
    theirs = kafka(spark, s3_broker, **options, endingOffsets=ends)
    assert assert_same(ours, theirs) > 500


@pytest.fixture(scope="module")
def s3_broker(moto_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TieredBroker]:
    """A broker whose bucket is on an S3 server."""
    settings = {**S3, "rsm.config.storage.s3.endpoint.url": moto_url}
    request = urllib.request.Request(
        f"{moto_url}/{S3['rsm.config.storage.s3.bucket.name']}", method="PUT"
    )
    with urllib.request.urlopen(request, timeout=10):
        pass
    broker = TieredBroker(tmp_path_factory.mktemp("s3"), settings)
    broker.start()
    try:
        broker.create("orders", 2)
        broker.fill("orders", 2)
        broker.restart(compressed=True, encrypted=True)
        broker.fill("orders", 2, size=300)
        broker.wait_until_tiered("orders", 2)
        yield broker
    finally:
        broker.stop()
