"""Spark Connect: a client without Java; the source is on the server, where nobody registered it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from bench.node import free_ports
from tests.spark.comparison import fingerprint, varve
from tests.spark.tiered_topic import TieredBroker

pytestmark = pytest.mark.spark

REPOSITORY = Path(__file__).resolve().parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
LISTENS = "start GRPC service at"

# In a process of its own: one that has a session of Spark itself can have none of Connect.
CLIENT = """
import json, sys
from pyspark.sql import SparkSession

session = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
options, folder = json.loads(sys.argv[2]), sys.argv[3]

def fingerprint(rows):
    columns = ", ".join(f"`{name}`" for name in rows.columns)
    [answer] = rows.selectExpr(
        "count(*) AS rows", f"sum(cast(xxhash64({columns}) AS decimal(38, 0))) AS hashes"
    ).collect()
    return [answer["rows"], int(answer["hashes"])]

answers = {"batch": fingerprint(session.read.format("varve").options(**options).load())}

given = ", ".join(f"`{name}` '{text}'" for name, text in options.items())
session.sql(f"CREATE TEMPORARY VIEW orders USING varve OPTIONS ({given})")
answers["view"] = fingerprint(session.sql("SELECT * FROM orders"))

try:
    session.read.format("varve").options(**options, startingOfsets="earliest").load().count()
except Exception as error:
    answers["mistake"] = str(error)

rows = (
    session.readStream.format("varve").options(**options)
    .option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", "2000").load()
)
query = (
    rows.writeStream.format("parquet").option("checkpointLocation", f"{folder}/checkpoint")
    .option("path", f"{folder}/rows").trigger(availableNow=True).start()
)
query.awaitTermination()
answers["stream"] = fingerprint(session.read.parquet(f"{folder}/rows"))
print("ANSWERS " + json.dumps(answers))
session.stop()
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A Connect server with our packages on its path; its address."""
    [port] = free_ports(1)
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[1]"]
    for setting in (
        "spark.driver.memory=1g",
        "spark.ui.enabled=false",
        "spark.sql.session.timeZone=UTC",
        "spark.sql.shuffle.partitions=1",
        "spark.connect.grpc.binding.address=127.0.0.1",
        f"spark.connect.grpc.binding.port={port}",
        f"spark.sql.warehouse.dir={tmp_path}/warehouse",
    ):
        command += ["--conf", setting]
    environment = {
        **os.environ,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(REPOSITORY),
    }
    log = tmp_path / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--class", SERVER, "spark-internal"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=tmp_path,
        )
    try:
        deadline = time.monotonic() + 180
        while LISTENS not in log.read_text():
            assert process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def test_a_client_reads_through_a_server(
    spark: Any, tiered: TieredBroker, server: str, tmp_path: Path
) -> None:
    """In batch, by SQL and as a stream; a mistake in the options is told to the client."""
    expected = list(fingerprint(varve(spark, tiered, subscribe="orders")))
    options = {
        **tiered.options,
        "subscribe": "orders",
        "tier": "bucket",
        "includeHeaders": "true",
    }
    program = tmp_path / "client.py"
    program.write_text(CLIENT)
    # From elsewhere and without a path to us: only PySpark is needed there.
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(
        [sys.executable, str(program), server, json.dumps(options), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env=environment,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    [line] = [line for line in result.stdout.splitlines() if line.startswith("ANSWERS ")]
    answers = json.loads(line.removeprefix("ANSWERS "))
    assert answers["batch"] == expected
    assert answers["view"] == expected
    assert answers["stream"] == expected
    assert "is startingOffsets meant?" in answers["mistake"]
