"""One Spark session for the whole folder: starting one costs seconds, its first query more.

Everything here is marked `spark`, and so part of `make test-spark` alone; the smoke test, which
`make test-interop` runs, says so itself.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.spark_connector import SparkConnectorError, connector_jars
from pipeline.source.java import JavaMissingError, find_java
from tests.spark.tiered_topic import TieredBroker

SMOKE = "test_smoke.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.path.name != SMOKE:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session with Spark's own Kafka connector beside ours."""
    try:
        find_java(os.environ)
        jars = connector_jars()
    except (JavaMissingError, SparkConnectorError) as error:
        pytest.fail(str(error))
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    folder = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("varve-tests")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.jars", ",".join(map(str, jars)))
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.python.filterPushdown.enabled", "true")
        .config("spark.python.unix.domain.socket.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    gateway = SparkContext._gateway
    session.stop()
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(60)
        SparkContext._gateway = None
        SparkContext._jvm = None


@pytest.fixture(scope="session")
def tiered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TieredBroker]:
    """A broker with topics that are tiered; see `tiered_topic`.

    `orders` has three partitions, whose segments were stored as they are, compressed, and
    compressed and encrypted, by leaders of three epochs; the broker was killed once. `stamped` has
    the times at which records were appended.
    """
    broker = TieredBroker(tmp_path_factory.mktemp("tiered"))
    broker.start()
    try:
        broker.create("orders", 3)
        broker.create("stamped", 1, {"message.timestamp.type": "LogAppendTime"})
        broker.fill("orders", 3)
        broker.fill("stamped", 1)
        broker.restart(compressed=True)
        broker.fill("orders", 3)
        broker.restart(compressed=True, encrypted=True, killed=True)
        broker.fill("orders", 3, records=600, size=400)
        broker.wait_until_tiered("orders", 3)
        broker.wait_until_tiered("stamped", 1)
        yield broker
    finally:
        broker.stop()
