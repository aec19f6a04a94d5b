"""Jobs that keep a table by key and are killed, again and again: it is always a fold of its log.

All the time somebody looks at the table, its offsets and rows in one state: the rows are those that
a plain fold of the log gives up to just these offsets, each key once.
"""

import multiprocessing
import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
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
from tests.fakes.lake.tables import KINDS, open_catalog, open_sink, read_table
from tests.system.lake.test_lake_kills import faults, killed, until_asleep

PER_ROUND = 30
"""Records that the log grows by between two kills."""

STEPS_MAX = 160
"""Of a round without a kill there are about so many."""

MANY = 25

SCHEMA = Converter(UPSERT).row_schema


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def context() -> multiprocessing.context.ForkServerContext:
    """Processes fork from one that has imported everything and has no thread."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(
        ["tests.fakes.lake.keyed_log", "deltalake", "pyiceberg.catalog.sql"]
    )
    return found


def check(kind: str, root: Path, count: int) -> None:
    expected = oracle(numbered_log(count))
    assert expected
    assert rows_of_table(read_table(kind, root)) == expected


class Watcher:
    """Looks at the table all the time; `problems` are states that are no fold."""

    def __init__(self, kind: str, root: Path, count: int) -> None:
        self.kind, self.root = kind, root
        self.log = numbered_log(count)
        self.problems: list[str] = []
        self.looks = 0
        self.stopped = threading.Event()

    def look(self) -> None:
        sink = open_sink(self.kind, self.root)
        view = sink.view()
        if view.progress is None or not view.progress.offsets:
            return
        batches: list[pa.RecordBatch] = []
        for key in sink.keys(view):
            data = sink.store.get(key)
            assert data is not None, key
            file = pq.ParquetFile(pa.BufferReader(data))
            batches += [shaped(batch, SCHEMA, {}) for batch in file.iter_batches()]
        found = rows_of_table(pa.Table.from_batches(batches, SCHEMA))
        self.looks += 1
        expected = oracle(self.log, view.progress.offsets)
        if found != expected:
            self.problems.append(f"{view.progress.offsets}: {sorted(found)} {sorted(expected)}")

    def run(self) -> None:
        while not self.stopped.wait(0.02):
            try:
                self.look()
            except TableUnavailableError:
                continue  # SQLite's lock is with a writer
            except Exception as error:  # noqa: BLE001 -- whatever was met, the test tells
                self.problems.append(repr(error))
                return


@contextmanager
def watched(kind: str, root: Path, count: int) -> Iterator[None]:
    watcher = Watcher(kind, root, count)
    thread = threading.Thread(target=watcher.run)
    thread.start()
    try:
        yield
    finally:
        watcher.stopped.set()
        thread.join()
    assert watcher.problems == []
    assert watcher.looks > 0


def kill_at_steps(
    context: multiprocessing.context.ForkServerContext, kind: str, root: Path, kills: int
) -> None:
    """Each process dies at a random step of its work, or is done before it gets there."""
    chance = random.Random(f"keyed {kind} {kills}")
    # Two that make the catalog's own tables at once, the watcher and a job, are SQLite's affair.
    open_catalog(root)
    done = rounds = 0
    with watched(kind, root, PER_ROUND * 10 * kills):
        while done < kills:
            rounds += 1
            assert rounds < 10 * kills
            steps = chance.randrange(1, STEPS_MAX)
            process = start(context, kind, root, PER_ROUND * rounds, steps)
            done += killed(process)
    keep_keyed(kind, str(root), PER_ROUND * rounds, 0)
    check(kind, root, PER_ROUND * rounds)


def start(
    context: multiprocessing.context.ForkServerContext,
    kind: str,
    root: Path,
    count: int,
    steps: int,
    number: int = signal.SIGKILL,
) -> BaseProcess:
    process = context.Process(target=keep_keyed, args=(kind, str(root), count, steps, number))
    process.start()
    return process


def test_killed_at_some_steps(
    context: multiprocessing.context.ForkServerContext, kind: str, tmp_path: Path
) -> None:
    kill_at_steps(context, kind, tmp_path, 4)


@pytest.mark.slow
def test_killed_at_many_steps(
    context: multiprocessing.context.ForkServerContext, kind: str, tmp_path: Path
) -> None:
    kill_at_steps(context, kind, tmp_path, MANY)


def zombies(
    context: multiprocessing.context.ForkServerContext, kind: str, root: Path, rounds: int
) -> None:
    """One sleeps at a random step; others make its batches; it wakes up and goes on."""
    chance = random.Random(f"keyed zombies {kind}")
    open_catalog(root)
    with watched(kind, root, PER_ROUND * rounds):
        for number in range(1, rounds + 1):
            count = PER_ROUND * number
            steps = chance.randrange(1, STEPS_MAX // 3)
            sleeper = start(context, kind, root, count, steps, signal.SIGSTOP)
            assert sleeper.pid is not None
            until_asleep(sleeper)
            other = start(context, kind, root, count, 0)
            other.join(10)
            os.kill(sleeper.pid, signal.SIGCONT)
            assert not killed(other)
            assert not killed(sleeper)
    check(kind, root, PER_ROUND * rounds)


def test_a_zombie_changes_nothing(
    context: multiprocessing.context.ForkServerContext, kind: str, tmp_path: Path
) -> None:
    zombies(context, kind, tmp_path, 2)


@pytest.mark.slow
def test_many_zombies_change_nothing(
    context: multiprocessing.context.ForkServerContext, kind: str, tmp_path: Path
) -> None:
    zombies(context, kind, tmp_path, 12)


@pytest.mark.slow
def test_two_jobs_at_once_are_killed_in_turn(
    context: multiprocessing.context.ForkServerContext, kind: str, tmp_path: Path
) -> None:
    chance = random.Random(f"keyed two {kind}")
    open_catalog(tmp_path)
    count = 0
    with watched(kind, tmp_path, PER_ROUND * MANY):
        for number in range(1, 13):
            count = PER_ROUND * number
            both = [
                start(context, kind, tmp_path, count, chance.randrange(1, 2 * STEPS_MAX))
                for _ in range(2)
            ]
            for process in both:
                killed(process)
    keep_keyed(kind, str(tmp_path), count, 0)
    check(kind, tmp_path, count)


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
