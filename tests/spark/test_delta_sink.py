"""Behind our source Spark's own Delta sink keeps a table, by its jars and its checkpoint."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.fakes.kafka.maven_jars import maven_jars
from tests.fakes.lake.tables import coordinates
from tests.spark.comparison import sorted_rows, varve
from tests.spark.tiered_topic import TieredBroker

pytestmark = pytest.mark.spark

DELTA = "4.4.0"
ARTIFACTS = (
    ("io.delta", "delta-spark_4.2_2.13", DELTA),
    ("io.delta", "delta-storage", DELTA),
)

# A session of its own: Delta wants to be part of it from the start.
JOB = """
import json, sys
from pyspark.sql import SparkSession

jars, options, folder = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
session = (
    SparkSession.builder.master("local[1]")
    .config("spark.driver.memory", "1g").config("spark.ui.enabled", "false")
    .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "1").config("spark.jars", jars)
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .getOrCreate()
)
query = (
    session.readStream.format("varve").options(**options).load()
    .writeStream.format("delta").option("checkpointLocation", f"{folder}/checkpoint")
    .trigger(availableNow=True).start(f"{folder}/table")
)
query.awaitTermination()
session.stop()
"""


def keep(tiered: TieredBroker, folder: Path) -> None:
    """Until the table has all that the bucket has; a process of its own each time."""
    options = {
        **tiered.options,
        "subscribe": "orders",
        "tier": "bucket",
        "isolationLevel": "read_committed",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "8000",
    }
    jars = ",".join(map(str, sorted(maven_jars(f"delta-spark/{DELTA}", ARTIFACTS).glob("*.jar"))))
    program = folder / "job.py"
    program.write_text(JOB)
    result = subprocess.run(
        [sys.executable, str(program), jars, json.dumps(options), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )
    assert result.returncode == 0, result.stderr[-3000:]


def test_a_delta_table_of_sparks_has_every_row_once(
    spark: Any, tiered: TieredBroker, tmp_path: Path
) -> None:
    """Batch by batch; a second run, from the checkpoint, adds nothing."""
    rows = varve(spark, tiered, subscribe="orders", isolationLevel="read_committed")
    expected = sorted_rows(rows.select("topic", "partition", "offset"))
    for _ in range(2):
        keep(tiered, tmp_path)
        table = DeltaTable(str(tmp_path / "table")).to_pyarrow_table()
        assert coordinates(table) == [(partition, offset) for _, partition, offset in expected]
