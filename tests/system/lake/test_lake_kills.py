"""Lake jobs that are killed, again and again, anywhere: the table is its topic's, each row once.

All the time a watcher reads the table: no row is there twice at any moment, and what is there of a
partition has no holes.
"""

import random
import time
from pathlib import Path

import pytest

from pipeline.lake.errors import TableUnavailableError
from tests.fakes.lake.jobs import keep, lake_job, ranges
from tests.fakes.lake.numbers_log import FakeLog, is_bad, rows_of
from tests.fakes.lake.tables import coordinates, read_table
from tests.system.lake.kills import MANY, Context, KilledJob, Watcher, faults, killed, watched

PER_ROUND = 40


def good(end: int) -> list[tuple[int, int]]:
    return [one for one in rows_of(ranges(end)) if not is_bad(one[1])]


def bad(end: int) -> list[tuple[int, int]]:
    return [one for one in rows_of(ranges(end)) if is_bad(one[1])]


def check(kind: str, root: Path, end: int) -> None:
    assert coordinates(read_table(kind, root)) == good(end)
    assert coordinates(read_table(kind, root, "orders_quarantine")) == bad(end)


class TableWatcher(Watcher):
    """Of each partition there is a beginning of its rows."""

    def __init__(self, kind: str, root: Path, end: int) -> None:
        super().__init__()
        self.kind, self.root = kind, root
        self.rows = {p: [o for q, o in good(end) if q == p] for p in (0, 1)}

    def look(self) -> bool:
        try:
            found = coordinates(read_table(self.kind, self.root))
        except Exception as error:
            if any(word in str(error).lower() for word in ("not exist", "no files", "locked")):
                return False  # there is no table yet, or SQLite's lock is with a writer
            raise
        for partition, rows in self.rows.items():
            mine = [offset for p, offset in found if p == partition]
            if mine != rows[: len(mine)]:
                self.problems.append(f"partition {partition} had {mine}")
        return True


JOB = KilledJob(
    name="",
    keep=keep,
    per_round=PER_ROUND,
    steps_max=70,
    zombie_steps_max=35,
    zombie_sleeps_s=5,
    watcher=TableWatcher,
    check=check,
)


def test_killed_at_some_steps(context: Context, kind: str, tmp_path: Path) -> None:
    JOB.kill_at_steps(context, kind, tmp_path, 4)


@pytest.mark.slow
def test_killed_at_many_steps(context: Context, kind: str, tmp_path: Path) -> None:
    JOB.kill_at_steps(context, kind, tmp_path, MANY)


@pytest.mark.slow
def test_killed_at_any_moment(context: Context, kind: str, tmp_path: Path) -> None:
    """Also inside of what the libraries do: their files, their catalogs."""
    chance = random.Random(kind)
    began = time.monotonic()
    assert not killed(JOB.start(context, kind, tmp_path, PER_ROUND, 0, pause_ms=1))
    whole_s = time.monotonic() - began
    done, rounds = 0, 1
    with watched(TableWatcher(kind, tmp_path, PER_ROUND * 10 * MANY)):
        while done < MANY:
            rounds += 1
            process = JOB.start(context, kind, tmp_path, PER_ROUND * rounds, 0, pause_ms=1)
            time.sleep(chance.uniform(0.2, 1.2) * whole_s)
            process.kill()
            done += killed(process)
            assert rounds < 10 * MANY
    keep(kind, str(tmp_path), PER_ROUND * rounds, 0)
    check(kind, tmp_path, PER_ROUND * rounds)


def test_a_zombie_doubles_nothing(context: Context, kind: str, tmp_path: Path) -> None:
    JOB.zombies(context, kind, tmp_path, 2)


@pytest.mark.slow
def test_many_zombies_double_nothing(context: Context, kind: str, tmp_path: Path) -> None:
    JOB.zombies(context, kind, tmp_path, 12)


@pytest.mark.slow
def test_two_jobs_at_once_are_killed_in_turn(context: Context, kind: str, tmp_path: Path) -> None:
    JOB.two_at_once(context, kind, tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_a_store_that_comes_and_goes_loses_and_doubles_nothing(
    kind: str, tmp_path: Path, seed: int
) -> None:
    """Whether something was done when the answer got lost is looked up, not guessed."""
    end = 60
    job = lake_job(kind, tmp_path, FakeLog(ranges(end)), hook=faults(random.Random(seed), 0.04))
    failures = 0
    while True:
        try:
            if job.step() is None:
                break
        except TableUnavailableError:
            failures += 1
            assert failures < 500
    assert failures
    check(kind, tmp_path, end)
