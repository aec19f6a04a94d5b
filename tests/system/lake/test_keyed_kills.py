"""Jobs that keep a table by key and are killed, again and again: it is always a fold of its log.

All the time a watcher reads the table, its offsets and rows in one state: the rows are those that a
plain fold of the log gives up to just these offsets, each key once.
"""

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.lake.errors import TableUnavailableError
from pipeline.lake.files.table_rows import shaped
from pipeline.lake.values.converter import Converter
from tests.fakes.lake.jobs import lake_job
from tests.fakes.lake.keyed_log import (
    UPSERT,
    keep_keyed,
    numbered_log,
    oracle,
    rows_of_table,
)
from tests.fakes.lake.tables import open_sink, read_table
from tests.system.lake.kills import MANY, Context, KilledJob, Watcher, faults

SCHEMA = Converter(UPSERT).row_schema


def check(kind: str, root: Path, count: int) -> None:
    expected = oracle(numbered_log(count))
    assert expected
    assert rows_of_table(read_table(kind, root)) == expected


class FoldWatcher(Watcher):
    """The table is the fold of its log up to its offsets."""

    def __init__(self, kind: str, root: Path, count: int) -> None:
        super().__init__()
        self.kind, self.root = kind, root
        self.log = numbered_log(count)

    def look(self) -> bool:
        try:
            return self._compare()
        except TableUnavailableError:
            return False  # SQLite's lock is with a writer

    def _compare(self) -> bool:
        sink = open_sink(self.kind, self.root)
        view = sink.view()
        if view.progress is None or not view.progress.offsets:
            return False
        batches: list[pa.RecordBatch] = []
        for key in sink.keys(view):
            data = sink.store.get(key)
            assert data is not None, key
            file = pq.ParquetFile(pa.BufferReader(data))
            batches += [shaped(batch, SCHEMA, {}) for batch in file.iter_batches()]
        found = rows_of_table(pa.Table.from_batches(batches, SCHEMA))
        expected = oracle(self.log, view.progress.offsets)
        if found != expected:
            self.problems.append(f"{view.progress.offsets}: {sorted(found)} {sorted(expected)}")
        return True


JOB = KilledJob(
    name="keyed ",
    keep=keep_keyed,
    per_round=30,
    steps_max=160,
    zombie_steps_max=53,
    zombie_sleeps_s=10,
    watcher=FoldWatcher,
    check=check,
)


def test_killed_at_some_steps(context: Context, kind: str, tmp_path: Path) -> None:
    JOB.kill_at_steps(context, kind, tmp_path, 4)


@pytest.mark.slow
def test_killed_at_many_steps(context: Context, kind: str, tmp_path: Path) -> None:
    JOB.kill_at_steps(context, kind, tmp_path, MANY)


def test_a_zombie_changes_nothing(context: Context, kind: str, tmp_path: Path) -> None:
    JOB.zombies(context, kind, tmp_path, 2)


@pytest.mark.slow
def test_many_zombies_change_nothing(context: Context, kind: str, tmp_path: Path) -> None:
    JOB.zombies(context, kind, tmp_path, 12)


@pytest.mark.slow
def test_two_jobs_at_once_are_killed_in_turn(context: Context, kind: str, tmp_path: Path) -> None:
    JOB.two_at_once(context, kind, tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_a_store_that_comes_and_goes_loses_nothing(kind: str, tmp_path: Path, seed: int) -> None:
    """Whether something was done when the answer got lost is looked up, not guessed."""
    log = numbered_log(90)
    hook = faults(random.Random(seed), 0.03)
    job = lake_job(kind, tmp_path, log, spec=UPSERT, read_piece=log.read, hook=hook)
    failures = 0
    while True:
        try:
            if job.step() is None:
                break
        except TableUnavailableError:
            failures += 1
            assert failures < 500
    assert failures
    assert rows_of_table(read_table(kind, tmp_path)) == oracle(log)
