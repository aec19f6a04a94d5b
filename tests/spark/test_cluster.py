"""A standalone cluster of pip's PySpark: master, two workers, and a job that brings us in a zip."""

import json
import os
import subprocess
import sys
import time
import zipfile
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
PACKAGES = ("config", "protocol", "storage", "tiered", "pipeline", "pyspark_varve")
SPARK_HOME = Path(pyspark.__file__).parent

JOB = """
import json, sys
from pyspark.sql import SparkSession

session = SparkSession.builder.getOrCreate()
options = json.loads(sys.argv[1])
rows = session.read.format("varve").options(**options).load()
columns = ", ".join(f"`{name}`" for name in rows.columns)
[answer] = rows.selectExpr(
    "count(*) AS rows", f"sum(cast(xxhash64({columns}) AS decimal(38, 0))) AS hashes"
).collect()

def origin(batches):
    import os
    import pipeline
    import pyarrow as pa
    for _ in batches:
        pass
    yield pa.RecordBatch.from_pydict({"file": [pipeline.__file__], "worker": [os.getcwd()]})

seen = session.range(0, 8, 1, 8).mapInArrow(origin, "file string, worker string").collect()
print("ANSWER " + json.dumps([
    answer["rows"], str(answer["hashes"]), sorted({one["file"] for one in seen}),
    len({one["worker"] for one in seen}),
]))
session.stop()
"""


class Cluster:
    """A master and workers, each a process with a folder of its own."""

    def __init__(self, directory: Path, workers: int) -> None:
        self._directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []
        self.port, web = free_ports(2)
        self.environment = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_HOME": str(SPARK_HOME),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOG_DIR": str(directory),
        }
        self._launch(
            "master.Master",
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--webui-port",
            str(web),
        )
        self._wait_for("master.Master-0.log", "I have been elected leader")
        for number in range(workers):
            folder = directory / f"worker-{number}"
            folder.mkdir()
            arguments = ("--host", "127.0.0.1", "--cores", "1", "--memory", "1g")
            self._launch(
                "worker.Worker", *arguments, "--webui-port", "0", "-d", str(folder), self.address
            )
        for number in range(1, workers + 1):
            self._wait_for(f"worker.Worker-{number}.log", "Successfully registered with master")

    @property
    def address(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def _launch(self, role: str, *arguments: str) -> None:
        log = self._directory / f"{role}-{len(self._processes)}.log"
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{role}"]
        with log.open("wb") as output:
            self._processes.append(
                subprocess.Popen(
                    [*command, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**self.environment, "SPARK_DAEMON_MEMORY": "256m"},
                )
            )

    def _wait_for(self, name: str, text: str, timeout_s: float = 300.0) -> None:
        deadline = time.monotonic() + timeout_s
        path = self._directory / name
        while text not in (path.read_text() if path.exists() else ""):
            assert time.monotonic() < deadline, path.read_text()
            time.sleep(0.2)

    def close(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait(60)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path, workers=2)
    yield made
    made.close()


def packed(path: Path) -> Path:
    """Our packages in one file; what they need is on the workers already."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for module in sorted((REPOSITORY / package).rglob("*.py")):
                archive.write(module, str(module.relative_to(REPOSITORY)))
    return path


def test_a_job_with_a_zip_reads_the_topic_on_two_workers(
    spark: Any, tiered: TieredBroker, cluster: Cluster, tmp_path: Path
) -> None:
    ours = fingerprint(varve(spark, tiered, subscribe="orders"))
    options = {
        **tiered.options,
        "subscribe": "orders",
        "tier": "bucket",
        "includeHeaders": "true",
    }
    job = tmp_path / "job.py"
    job.write_text(JOB)
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", cluster.address]
    for setting in (
        "spark.ui.enabled=false",
        "spark.executor.memory=512m",
        "spark.driver.memory=512m",
        "spark.driver.host=127.0.0.1",
        "spark.sql.session.timeZone=UTC",
        "spark.sql.shuffle.partitions=1",
    ):
        command += ["--conf", setting]
    command += ["--py-files", str(packed(tmp_path / "varve.zip")), str(job), json.dumps(options)]
    result = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env=cluster.environment,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    [line] = [line for line in result.stdout.splitlines() if line.startswith("ANSWER ")]
    rows, hashes, files, workers = json.loads(line.removeprefix("ANSWER "))
    assert (rows, int(hashes)) == ours
    assert all("varve.zip" in file for file in files), files
    assert workers == 2
