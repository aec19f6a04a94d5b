"""Tasks in processes of this machine."""

import multiprocessing
from pathlib import Path

import pytest

from pipeline.lake.errors import TaskFailedError
from pipeline.lake.local_runner import LocalRunner
from tests.fakes.lake_jobs import lake_job, run
from tests.fakes.lake_log import FakeLog, is_bad, read_rows, rows_of
from tests.fakes.lake_tables import coordinates, read_table

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
