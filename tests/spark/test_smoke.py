"""That a topic is read in Spark at all: part of `make test-interop`, within a minute."""

from typing import Any

import pytest

from tests.spark.comparison import fingerprint, kafka, varve
from tests.spark.tiered_topic import TieredBroker

pytestmark = pytest.mark.interop


@pytest.fixture
def small(tmp_path_factory: pytest.TempPathFactory) -> Any:
    broker = TieredBroker(tmp_path_factory.mktemp("smoke"))
    broker.start()
    try:
        broker.create("orders", 2)
        broker.fill("orders", 2, records=200, size=200)
        broker.wait_until_tiered("orders", 2)
        yield broker
    finally:
        broker.stop()


def test_a_topic_is_read_as_by_sparks_kafka_connector(spark: Any, small: TieredBroker) -> None:
    """From the bucket, and what is not there yet from the broker; nothing was registered."""
    options = {
        "subscribe": "orders",
        "kafka.bootstrap.servers": small.node.address,
        "kafka.isolation.level": "read_committed",
    }
    ours = fingerprint(varve(spark, small, **options, tier="auto"))
    theirs = fingerprint(kafka(spark, small, **options))
    assert ours == theirs
    assert ours[0] > 1000
