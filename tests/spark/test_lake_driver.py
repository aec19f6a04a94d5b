"""A driver that is killed in the middle of a batch: its JVM goes, its plan is followed."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.process import tree
from pipeline.lake.app.assembly import run_job
from pipeline.lake.batch.batch_plan import FOLDER
from pipeline.lake.settings.config import parse_job
from tests.fakes.lake.tables import coordinates, read_table
from tests.fakes.lake.topic_bucket import orders_bucket

TIMEOUT_S = 180.0


def until(what: str, is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_killed_driver_doubles_nothing(spark: Any, tmp_path: Path) -> None:
    bucket = asyncio.run(orders_bucket(tmp_path / "bucket"))
    conf = {
        "spark.master": "local[1]",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    text = (
        f"source: {{location: '{tmp_path}/bucket', topic: t}}\n"
        f"value: {{format: json}}\nsink: {{type: delta, table: {tmp_path}/orders}}\n"
        f"batch: {{max_bytes: 3 KiB}}\nrunner: {{type: spark, conf: {json.dumps(conf)}}}\n"
    )
    job = tmp_path / "job.yaml"
    job.write_text(text)
    with (tmp_path / "driver.log").open("wb") as log:
        driver = subprocess.Popen(
            [sys.executable, "-m", "cli.main", "pipeline", "run", str(job)], stdout=log, stderr=log
        )
    plans = tmp_path / "orders" / FOLDER
    until("a plan is stored", lambda: any(plans.glob("*.json")) or driver.poll() is not None)
    assert driver.poll() is None, (tmp_path / "driver.log").read_text()
    family = [pid for pid in tree(driver.pid) if pid != driver.pid]
    driver.send_signal(signal.SIGKILL)
    driver.wait(30)
    until("what the driver has started ends", lambda: not any(map(is_alive, family)))
    assert run_job(parse_job(text), spark) >= 1
    rows = [(0, o) for o, value in bucket.values.items() if value.startswith(b'{"')]
    assert coordinates(read_table("delta", tmp_path)) == rows
    assert not any(plans.glob("*.json"))
