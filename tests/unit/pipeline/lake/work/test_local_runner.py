"""Tasks in processes of this machine."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.lake.errors import TaskFailedError
from pipeline.lake.work.local_runner import LocalRunner
from tests.fakes.lake.jobs import lake_job, run
from tests.fakes.lake.numbers_log import FakeLog, is_bad, read_rows, rows_of
from tests.fakes.lake.tables import coordinates, read_table
from tests.fakes.lake.world import is_alive

LOG = {0: (0, 30), 1: (5, 12)}
GOOD = [one for one in rows_of(LOG) if not is_bad(one[1])]


def test_processes_make_the_same_table(tmp_path: Path) -> None:
    runner = LocalRunner(read_rows, workers=2)
    run(lake_job("parquet", tmp_path, FakeLog(LOG), runner=runner))
    runner.close()
    assert coordinates(read_table("parquet", tmp_path)) == GOOD


def test_a_killed_worker_fails_the_batch_and_the_next_one_has_another(tmp_path: Path) -> None:
    runner = LocalRunner(read_rows, workers=1)
    job = lake_job("parquet", tmp_path, FakeLog(LOG), runner=runner)
    assert job.step() is not None
    (child,) = multiprocessing.active_children()
    child.kill()
    child.join()
    with pytest.raises(TaskFailedError):
        job.step()
    run(job)
    runner.close()
    assert coordinates(read_table("parquet", tmp_path)) == GOOD
    assert not multiprocessing.active_children()


KILLED_DRIVER = """
import os, signal, sys
from pathlib import Path
from tests.unit.pipeline.lake.work.test_local_runner import LOG
from pipeline.lake.work.local_runner import LocalRunner
from tests.fakes.lake.jobs import lake_job
from tests.fakes.lake.numbers_log import FakeLog, read_rows

if __name__ == "__main__":
    runner = LocalRunner(read_rows, workers=2)
    lake_job("parquet", Path(sys.argv[1]), FakeLog(LOG), runner=runner).step()
    print(*runner._pool._processes, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_workers_end_with_a_killed_driver(tmp_path: Path) -> None:
    """They would wait for its next task for ever, each with its memory."""
    program = tmp_path / "driver.py"
    program.write_text(KILLED_DRIVER)
    done = subprocess.run(
        [sys.executable, str(program), str(tmp_path / "table")],
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        stdout=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    workers = [int(pid) for pid in done.stdout.split()]
    assert len(workers) == 2
    deadline = time.monotonic() + 30
    while any(is_alive(pid) for pid in workers):
        assert time.monotonic() < deadline
        time.sleep(0.02)
