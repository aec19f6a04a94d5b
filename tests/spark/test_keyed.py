"""Tables by key on Spark: tasks and merges in Python workers, and readers that others wrote."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.lake.work.spark_runner import SparkRunner
from tests.fakes.lake.jobs import lake_job, run
from tests.fakes.lake.keyed_log import (
    UPSERT,
    KeyedLog,
    Record,
    numbered_log,
    oracle,
    rows_of_table,
    value,
)
from tests.fakes.lake.tables import KINDS, open_sink, read_table


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_by_key_is_the_fold_of_its_log(spark: Any, kind: str, tmp_path: Path) -> None:
    """As the libraries of Delta and Iceberg read it, and Spark its files."""
    log = numbered_log(150)
    job = lake_job(
        kind, tmp_path, log, spec=UPSERT, runner=SparkRunner(spark, log.read), max_bytes=8000
    )
    assert run(job) == 2
    expected = oracle(log)
    assert rows_of_table(read_table(kind, tmp_path)) == expected
    sink = open_sink(kind, tmp_path)
    base = sink.store.uri.removeprefix("file://")
    files = [f"{base}/{key}" for key in sink.keys(sink.view())]
    rows = spark.read.parquet(*files).collect()
    found = {bytes(row["key"]): (row["partition"], row["offset"]) for row in rows}
    assert len(rows) == len(found)
    assert found == {key: place for key, (place, _) in expected.items()}


def test_a_worker_writes_what_a_job_without_spark_goes_on_with(spark: Any, tmp_path: Path) -> None:
    log = KeyedLog([Record(0, b"a", value(1), 1), Record(0, b"b", value(2), 2)])
    run(lake_job("delta", tmp_path, log, spec=UPSERT, runner=SparkRunner(spark, log.read)))
    log.write([Record(0, b"a", None, 3)])
    run(lake_job("delta", tmp_path, log, spec=UPSERT, read_piece=log.read))
    assert list(rows_of_table(read_table("delta", tmp_path))) == [b"b"]
