"""Streaming queries: checkpoints that move between Spark's Kafka source and ours."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.spark.comparison import fingerprint, kafka
from tests.spark.tiered_topic import TieredBroker

pytestmark = pytest.mark.spark

LEVEL = "read_committed"


class Killed(Exception):
    """What ends a query inside a batch: as if its driver had died there."""


class Stream:
    """A query that writes every batch into a folder of its own, so that a repeated one counts once.

    Which source it reads is said at every start; the checkpoint stays.
    """

    def __init__(self, spark: Any, broker: TieredBroker, directory: Path, topic: str) -> None:
        self._spark = spark
        self._broker = broker
        self.rows = directory / "rows"
        self.checkpoint = directory / "checkpoint"
        self._topic = topic
        self.planned: list[int] = []

    def source(self, name: str, **options: str) -> Any:
        given = {
            "subscribe": self._topic,
            "kafka.bootstrap.servers": self._broker.node.address,
            "kafka.isolation.level": LEVEL,
            "startingOffsets": "earliest",
            "includeHeaders": "true",
            **(self._broker.options if name == "varve" else {}),
            **options,
        }
        return self._spark.readStream.format(name).options(**given).load()

    def run(self, name: str, options: Mapping[str, str], kill_in: int | None = None) -> Any:
        """Until everything there is now was read, or until it is killed inside a batch."""

        def write(batch: Any, number: int) -> None:
            self.planned.append(number)
            folder = self.rows / f"batch={number}"
            shutil.rmtree(folder, ignore_errors=True)
            batch.write.mode("overwrite").parquet(str(folder))
            if number == kill_in:
                shutil.rmtree(folder)  # what a killed job had written is worth nothing
                raise Killed

        query = (
            self.source(name, **options)
            .writeStream.foreachBatch(write)
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination(900)
        except Exception:
            if kill_in is None:
                raise
        finally:
            query.stop()
        return query

    def read(self) -> Any:
        return self._spark.read.parquet(str(self.rows)).drop("batch")

    def last_planned(self) -> tuple[int, str]:
        """The number and the offsets of the last batch in the write-ahead log."""
        numbers = [int(path.name) for path in (self.checkpoint / "offsets").glob("[0-9]*")]
        text = (self.checkpoint / "offsets" / str(max(numbers))).read_text()
        return max(numbers), text.splitlines()[-1]

    def committed(self) -> int:
        return max(
            (int(path.name) for path in (self.checkpoint / "commits").glob("[0-9]*")), default=-1
        )


@pytest.fixture
def stream(spark: Any, tiered: TieredBroker, tmp_path: Path) -> Callable[[str], Stream]:
    return lambda topic: Stream(spark, tiered, tmp_path, topic)


@pytest.mark.parametrize("tier", ["auto", "broker"])
def test_a_checkpoint_moves_there_and_back_with_a_batch_planned_and_not_finished(
    spark: Any, tiered: TieredBroker, stream: Callable[[str], Stream], tier: str
) -> None:
    """kafka, varve, kafka, varve: each killed inside a batch that the next one has to repeat."""
    query = stream("orders")
    limit = {"maxOffsetsPerTrigger": "2500"}
    for turn, (name, killed_in) in enumerate(
        [("kafka", 1), ("varve", 2), ("kafka", 3), ("varve", 4)]
    ):
        options = {**limit, "tier": tier} if name == "varve" else limit
        query.run(name, options, killed_in)
        number, offsets = query.last_planned()
        assert number == killed_in, f"turn {turn}"
        assert query.committed() == killed_in - 1
        # Of ours a topic's id is beside its offsets, which the Kafka source passes over.
        names = json.loads(offsets).keys()
        assert [key for key in names if "@" not in key] == ["orders"]
        assert len(names) == (2 if name == "varve" else 1)
    query.run("kafka", limit)
    theirs = kafka(spark, tiered, subscribe="orders", **{"kafka.isolation.level": LEVEL})
    assert fingerprint(query.read()) == fingerprint(theirs)
    assert query.planned.count(1) == query.planned.count(4) == 2


def test_a_query_of_the_bucket_alone_reads_all_of_it(
    spark: Any, tiered: TieredBroker, stream: Callable[[str], Stream]
) -> None:
    """Limited by bytes; and goes on where it ended without reading anything twice."""
    query = stream("orders")
    options = {"tier": "bucket", "maxBytesPerTrigger": "100k"}
    query.run("varve", options)
    batches = len(query.planned)
    assert batches > 2
    ends = {
        str(partition.partition): end
        for partition, end in tiered.bucket_ends("orders", LEVEL).items()
    }
    assert json.loads(query.last_planned()[1])["orders"] == ends
    theirs = kafka(
        spark,
        tiered,
        subscribe="orders",
        endingOffsets=json.dumps({"orders": ends}),
        **{"kafka.isolation.level": LEVEL},
    )
    assert fingerprint(query.read()) == fingerprint(theirs)
    query.run("varve", options)
    assert len(query.planned) == batches


def test_progress_tells_the_lag(tiered: TieredBroker, stream: Callable[[str], Stream]) -> None:
    """What is there beside what was read, in the Kafka source's form."""
    query = stream("stamped")
    progress = query.run("varve", {"maxOffsetsPerTrigger": "300"}).recentProgress
    first = progress[0]["sources"][0]
    ends = tiered.bucket_ends("stamped", "read_uncommitted")
    latest = first["latestOffset"]
    latest = json.loads(latest) if isinstance(latest, str) else latest
    assert latest["stamped"]["0"] >= next(iter(ends.values()))
    end = first["endOffset"]
    end = json.loads(end) if isinstance(end, str) else end
    assert end["stamped"]["0"] < latest["stamped"]["0"]
    assert "secret" not in json.dumps(progress, default=str).lower()


def test_partitions_that_are_new_begin_at_their_earliest_offset(
    spark: Any, tiered: TieredBroker, stream: Callable[[str], Stream]
) -> None:
    tiered.create("growing", 1)
    tiered.fill("growing", 1, records=30)
    query = stream("growing")
    query.run("varve", {})
    tiered.add_partitions("growing", 2)
    tiered.fill("growing", 2, records=30)
    query.run("varve", {})
    theirs = kafka(spark, tiered, subscribe="growing", **{"kafka.isolation.level": LEVEL})
    assert fingerprint(query.read()) == fingerprint(theirs)
    assert {row["partition"] for row in query.read().select("partition").distinct().collect()} == {
        0,
        1,
    }


def test_a_running_query_follows_what_is_written(
    tiered: TieredBroker, stream: Callable[[str], Stream]
) -> None:
    """Micro-batches at their own pace, stopped by hand."""
    tiered.create("followed", 1)
    tiered.fill("followed", 1, records=30)
    query = stream("followed")
    counts: list[int] = []
    running = (
        query.source("varve")
        .writeStream.foreachBatch(lambda batch, _: counts.append(batch.count()))
        .option("checkpointLocation", str(query.checkpoint))
        .start()
    )
    try:
        running.processAllAvailable()
        first = sum(counts)
        tiered.fill("followed", 1, records=30)
        running.processAllAvailable()
    finally:
        running.stop()
    assert sum(counts) == 2 * first > 0


DRIVER = """
import json, pathlib, shutil, sys, threading
from pyspark.sql import SparkSession

given = json.loads(sys.argv[1])
builder = SparkSession.builder.master("local[2]").appName("killed")
for name, text in given["settings"].items():
    builder = builder.config(name, text)
session = builder.getOrCreate()
rows, kill_in = pathlib.Path(given["rows"]), given["kill_in"]

def write(batch, number):
    folder = rows / f"batch={number}"
    shutil.rmtree(folder, ignore_errors=True)
    batch.write.mode("overwrite").parquet(str(folder))
    if number == kill_in:
        pathlib.Path(given["marker"]).touch()
        threading.Event().wait()

(
    session.readStream.format(given["format"]).options(**given["options"]).load()
    .writeStream.foreachBatch(write)
    .option("checkpointLocation", given["checkpoint"])
    .trigger(availableNow=True).start().awaitTermination()
)
session.stop()
"""


def test_a_checkpoint_outlives_drivers_that_are_killed(
    spark: Any, tiered: TieredBroker, tmp_path: Path
) -> None:
    """SIGKILL while a batch is planned, its rows are written, and it is not committed."""
    script = tmp_path / "driver.py"
    script.write_text(DRIVER)
    settings = {
        "spark.driver.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.host": "127.0.0.1",
        "spark.jars": spark.conf.get("spark.jars"),
    }
    for number, name in enumerate(["kafka", "varve", "kafka", "varve", "kafka"]):
        last = number == 4
        marker = tmp_path / f"inside-{number}"
        options = {
            "subscribe": "orders",
            "kafka.bootstrap.servers": tiered.node.address,
            "kafka.isolation.level": LEVEL,
            "startingOffsets": "earliest",
            "includeHeaders": "true",
            "maxOffsetsPerTrigger": "2500",
            **(tiered.options if name == "varve" else {}),
        }
        given = {
            "settings": settings,
            "format": name,
            "options": options,
            "rows": str(tmp_path / "rows"),
            "checkpoint": str(tmp_path / "checkpoint"),
            "marker": str(marker),
            "kill_in": None if last else number,
        }
        command = [sys.executable, str(script), json.dumps(given)]
        with (tmp_path / f"driver-{number}.log").open("wb") as log:
            driver = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, cwd=tmp_path
            )
        try:
            deadline = time.monotonic() + 180
            while driver.poll() is None and not marker.exists():
                assert time.monotonic() < deadline
                time.sleep(0.1)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
            code = driver.wait()
        assert marker.exists() is not last, log_tail(tmp_path / f"driver-{number}.log")
        assert code == (0 if last else -signal.SIGKILL), log_tail(tmp_path / f"driver-{number}.log")
    theirs = kafka(spark, tiered, subscribe="orders", **{"kafka.isolation.level": LEVEL})
    ours = spark.read.parquet(str(tmp_path / "rows")).drop("batch")
    assert fingerprint(ours) == fingerprint(theirs)


def log_tail(path: Path) -> str:
    return path.read_text(errors="replace")[-2000:]
