"""Lake jobs that are killed, again and again, anywhere: the table is its topic's, each row once.

The processes are real and the signals are SIGKILL (or SIGSTOP: who wakes up behind another one is a
zombie). All the time somebody reads the table: no row is there twice at any moment, and what is
there of a partition has no holes.
"""

import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from pipeline.lake.errors import TableUnavailableError
from tests.fakes.lake.hooks import Hook
from tests.fakes.lake.jobs import keep, lake_job, ranges
from tests.fakes.lake.numbers_log import FakeLog, is_bad, rows_of
from tests.fakes.lake.tables import KINDS, coordinates, open_catalog, read_table

PER_ROUND = 40
"""Offsets that the log grows by between two kills."""

STEPS_MAX = 70
"""Of a round without a kill there are about so many."""

MANY = 25


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def context() -> multiprocessing.context.ForkServerContext:
    """Processes fork from one that has imported everything and has no thread."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(["tests.fakes.lake.jobs", "deltalake", "pyiceberg.catalog.sql"])
    return found


def good(end: int) -> list[tuple[int, int]]:
    return [one for one in rows_of(ranges(end)) if not is_bad(one[1])]


def bad(end: int) -> list[tuple[int, int]]:
    return [one for one in rows_of(ranges(end)) if is_bad(one[1])]


def check(kind: str, root: Path, end: int) -> None:
    assert coordinates(read_table(kind, root)) == good(end)
    assert coordinates(read_table(kind, root, "orders_quarantine")) == bad(end)


class Watcher:
    """Reads the table all the time; `problems` are moments at which it was wrong."""

    def __init__(self, kind: str, root: Path, end: int) -> None:
        self.kind, self.root = kind, root
        self.rows = {p: [o for q, o in good(end) if q == p] for p in (0, 1)}
        self.problems: list[str] = []
        self.looks = 0
        self.stopped = threading.Event()

    def look(self) -> None:
        try:
            found = coordinates(read_table(self.kind, self.root))
        except Exception as error:
            if any(word in str(error).lower() for word in ("not exist", "no files", "locked")):
                return  # there is no table yet, or SQLite's lock is with a writer
            raise
        self.looks += 1
        for partition, rows in self.rows.items():
            mine = [offset for p, offset in found if p == partition]
            if mine != rows[: len(mine)]:
                self.problems.append(f"partition {partition} had {mine}")

    def run(self) -> None:
        try:
            while not self.stopped.wait(0.02):
                self.look()
        except Exception as error:  # noqa: BLE001 -- whatever a reader met, the test tells
            self.problems.append(repr(error))


@contextmanager
def watched(kind: str, root: Path, end: int) -> Iterator[None]:
    watcher = Watcher(kind, root, end)
    thread = threading.Thread(target=watcher.run)
    thread.start()
    try:
        yield
    finally:
        watcher.stopped.set()
        thread.join()
    assert watcher.problems == []
    assert watcher.looks > 0


def killed(process: BaseProcess) -> bool:
    process.join(60)
    assert process.exitcode in (0, -signal.SIGKILL), process.exitcode
    return process.exitcode != 0


def kill_at_steps(
    context: multiprocessing.context.ForkServerContext, kind: str, root: Path, kills: int
) -> None:
    """Each process dies at a random step of its work, or is done before it gets there."""
    chance = random.Random(f"{kind} {kills}")
    # Two that make the catalog's own tables at once, the watcher and a job, are SQLite's affair.
    open_catalog(root)
    done = rounds = 0
    with watched(kind, root, PER_ROUND * 10 * kills):
        while done < kills:
            rounds += 1
            assert rounds < 10 * kills
            steps = chance.randrange(1, STEPS_MAX)
            process = context.Process(
                target=keep, args=(kind, str(root), PER_ROUND * rounds, steps)
            )
            process.start()
            done += killed(process)
    keep(kind, str(root), PER_ROUND * rounds, 0)
    check(kind, root, PER_ROUND * rounds)


def test_killed_at_some_steps(
    context: multiprocessing.context.ForkServerContext, kind: str, tmp_path: Path
) -> None:
    kill_at_steps(context, kind, tmp_path, 4)


@pytest.mark.slow
def test_killed_at_many_steps(
    context: multiprocessing.context.ForkServerContext, kind: str, tmp_path: Path
) -> None:
    kill_at_steps(context, kind, tmp_path, MANY)


@pytest.mark.slow
def test_killed_at_any_moment(
    context: multiprocessing.context.ForkServerContext, kind: str, tmp_path: Path
) -> None:
    """Also inside of what the libraries do: their files, their catalogs."""
    chance = random.Random(kind)
    began = time.monotonic()
    process = context.Process(target=keep, args=(kind, str(tmp_path), PER_ROUND, 0, 1))
    process.start()
    assert not killed(process)
    whole_s = time.monotonic() - began
    done, rounds = 0, 1
    with watched(kind, tmp_path, PER_ROUND * 10 * MANY):
        while done < MANY:
            rounds += 1
            process = context.Process(
                target=keep, args=(kind, str(tmp_path), PER_ROUND * rounds, 0, 1)
            )
            process.start()
            time.sleep(chance.uniform(0.2, 1.2) * whole_s)
            process.kill()
            done += killed(process)
            assert rounds < 10 * MANY
    keep(kind, str(tmp_path), PER_ROUND * rounds, 0)
    check(kind, tmp_path, PER_ROUND * rounds)


def until_asleep(process: BaseProcess) -> None:
    """Until it has stopped itself; it may not end before."""
    deadline = time.monotonic() + 60
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < deadline
        time.sleep(0.01)


def zombies(
    context: multiprocessing.context.ForkServerContext, kind: str, root: Path, rounds: int
) -> None:
    """One sleeps at a random step; others make its batches; it wakes up and goes on."""
    chance = random.Random(f"zombies {kind}")
    # Two that make the catalog's own tables at once are SQLite's affair.
    open_catalog(root)
    with watched(kind, root, PER_ROUND * rounds):
        for number in range(1, rounds + 1):
            end = PER_ROUND * number
            steps = chance.randrange(1, STEPS_MAX // 2)
            sleeper = context.Process(
                target=keep, args=(kind, str(root), end, steps, 0, signal.SIGSTOP)
            )
            sleeper.start()
            assert sleeper.pid is not None
            until_asleep(sleeper)
            other = context.Process(target=keep, args=(kind, str(root), end, 0))
            other.start()
            other.join(5)
            os.kill(sleeper.pid, signal.SIGCONT)
            assert not killed(other)
            assert not killed(sleeper)
    check(kind, root, PER_ROUND * rounds)


def test_a_zombie_doubles_nothing(
    context: multiprocessing.context.ForkServerContext, kind: str, tmp_path: Path
) -> None:
    zombies(context, kind, tmp_path, 2)


@pytest.mark.slow
def test_many_zombies_double_nothing(
    context: multiprocessing.context.ForkServerContext, kind: str, tmp_path: Path
) -> None:
    zombies(context, kind, tmp_path, 12)


@pytest.mark.slow
def test_two_jobs_at_once_are_killed_in_turn(
    context: multiprocessing.context.ForkServerContext, kind: str, tmp_path: Path
) -> None:
    chance = random.Random(f"two {kind}")
    open_catalog(tmp_path)
    end = 0
    with watched(kind, tmp_path, PER_ROUND * MANY):
        for number in range(1, 13):
            end = PER_ROUND * number
            both = [
                context.Process(
                    target=keep,
                    args=(kind, str(tmp_path), end, chance.randrange(1, 2 * STEPS_MAX)),
                )
                for _ in range(2)
            ]
            for process in both:
                process.start()
            for process in both:
                killed(process)
    keep(kind, str(tmp_path), end, 0)
    check(kind, tmp_path, end)


def faults(chance: random.Random, share: float) -> Hook:
    """A store that is away now and then, before it does something, or behind that."""

    def hook(call: str, after: bool) -> None:
        if chance.random() < share:
            raise TableUnavailableError(f"{call} {'did not answer' if after else 'is away'}")

    return hook


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
