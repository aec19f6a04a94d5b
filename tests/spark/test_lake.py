"""Lake jobs on Spark: tasks in Python workers, three tables, and readers that others wrote."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.lake.app.assembly import run_job, start_session
from pipeline.lake.errors import TaskFailedError
from pipeline.lake.settings.config import JobConfig, parse_job
from pipeline.lake.work.spark_runner import SparkRunner
from pipeline.plan.piece import Piece
from tests.fakes.lake.jobs import lake_job, run
from tests.fakes.lake.numbers_log import FakeLog, is_bad, read_rows, rows_of
from tests.fakes.lake.tables import KINDS, coordinates, read_table
from tests.fakes.lake.topic_bucket import LakeBucket, orders_bucket

LOG = {0: (0, 60), 1: (5, 33)}
GOOD = [one for one in rows_of(LOG) if not is_bad(one[1])]


@pytest.fixture
async def bucket(tmp_path: Path) -> LakeBucket:
    return await orders_bucket(tmp_path / "bucket")


def job(root: Path, kind: str) -> JobConfig:
    sink = f"type: {kind}, table: {root}/orders"
    if kind == "iceberg":
        uri = f"name: tests, uri: 'sqlite:///{root}/catalog.db', warehouse: 'file://{root}/tables'"
        sink = f"type: iceberg, table: lake.orders, catalog: {{type: sql, {uri}}}"
    return parse_job(
        f"source: {{location: '{root}/bucket', topic: t}}\n"
        f"value: {{format: json}}\nsink: {{{sink}, partition_by: [day(timestamp)]}}\n"
        "batch: {max_bytes: 3 KiB}\n"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_by_spark_has_what_a_consumer_sees(
    spark: Any, bucket: LakeBucket, kind: str, tmp_path: Path
) -> None:
    assert run_job(job(tmp_path, kind), spark) >= 2
    found = read_table(kind, tmp_path).to_pydict()
    rows = dict(zip(found["offset"], found["id"], strict=True))
    expected = {
        offset: json.loads(value)["id"]
        for offset, value in bucket.values.items()
        if value.startswith(b'{"')
    }
    assert len(found["offset"]) == len(rows)
    assert rows == expected
    bad = [(0, o) for o, value in bucket.values.items() if not value.startswith(b'{"')]
    assert coordinates(read_table(kind, tmp_path, "orders_quarantine")) == bad


def test_spark_reads_the_files_of_a_parquet_table(
    spark: Any, bucket: LakeBucket, tmp_path: Path
) -> None:
    """As a folder, by Spark's own reader; what is Varve's own is hidden from it."""
    run_job(job(tmp_path, "parquet"), spark)
    frame = spark.read.parquet(str(tmp_path / "orders"))
    assert set(frame.columns) >= {"offset", "id", "name", "timestamp_day"}
    offsets = sorted(row["offset"] for row in frame.select("offset").collect())
    assert offsets == [o for o, value in bucket.values.items() if value.startswith(b'{"')]


class DiesOnce:
    """Kills the worker that reads a piece, once."""

    def __init__(self, flag: str) -> None:
        self.flag = flag

    def __call__(self, piece: Piece, /) -> Iterator[pa.RecordBatch]:
        for batch in read_rows(piece):
            yield batch
            try:
                os.close(os.open(self.flag, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_worker_doubles_nothing(spark: Any, kind: str, tmp_path: Path) -> None:
    """A local session gives up at the first failure; the job then repeats its plan."""
    runner = SparkRunner(spark, DiesOnce(str(tmp_path / "died")))
    keeper = lake_job(kind, tmp_path, FakeLog(LOG), runner=runner)
    with pytest.raises(TaskFailedError, match="Spark gave up on a task"):
        keeper.step()
    run(keeper)
    assert coordinates(read_table(kind, tmp_path)) == GOOD


def test_what_a_task_found_comes_back_as_itself(spark: Any, tmp_path: Path) -> None:
    """And is not tried again: the error names the record."""
    keeper = lake_job(
        "parquet", tmp_path, FakeLog(LOG), quarantine=False, runner=SparkRunner(spark, read_rows)
    )
    with pytest.raises(Exception, match="orders-0 at offset 3"):
        keeper.step()


def test_a_session_that_is_there_is_taken(spark: Any, tmp_path: Path) -> None:
    assert start_session(job(tmp_path, "delta")).sparkContext is spark.sparkContext
