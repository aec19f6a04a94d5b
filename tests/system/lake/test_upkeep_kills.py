"""Upkeep beside a job, both killed anywhere: the same rows, and in the end nothing left behind."""

import random
from pathlib import Path

import pytest

from pipeline.lake.maintain.left_over import Ages
from tests.fakes.lake.jobs import keep
from tests.fakes.lake.tables import open_catalog, open_sink
from tests.fakes.lake.upkeep import keep_in_shape, lake_upkeep, maintain
from tests.system.lake.kills import Context, killed, watched
from tests.system.lake.test_lake_kills import JOB, PER_ROUND, TableWatcher, check

ROUNDS_MANY = 20

UPKEEP_STEPS = 45


def left_over(kind: str, root: Path) -> set[str]:
    """Parquet files below the table that are not of it."""
    sink = open_sink(kind, root)
    found = {
        file.key
        for file in (*sink.store.list(""), *sink.store.scratch_files())
        if ".parquet" in file.key and not file.key.startswith("_")
    }
    return found - set(sink.keys(sink.view()))


def killed_beside_each_other(context: Context, kind: str, root: Path, rounds: int) -> None:
    chance = random.Random(f"upkeep {kind} {rounds}")
    open_catalog(root)
    keep(kind, str(root), PER_ROUND, 0)
    with watched(TableWatcher(kind, root, PER_ROUND * (rounds + 1))):
        for number in range(2, rounds + 2):
            steps = chance.randrange(1, 2 * JOB.steps_max)
            job = JOB.start(context, kind, root, PER_ROUND * number, steps)
            both = [
                context.Process(
                    target=keep_in_shape, args=(kind, str(root), chance.randrange(1, UPKEEP_STEPS))
                )
                for _ in range(chance.randrange(1, 3))
            ]
            for process in both:
                process.start()
            for one in (job, *both):
                killed(one)
    keep(kind, str(root), PER_ROUND * (rounds + 1), 0)
    check(kind, root, PER_ROUND * (rounds + 1))
    # Nobody else is there: whatever was left behind is old.
    maintain(lake_upkeep(kind, root, ages=Ages(-1000, -1000)))
    check(kind, root, PER_ROUND * (rounds + 1))
    assert left_over(kind, root) == set()


def test_killed_beside_a_job_that_is_killed(context: Context, kind: str, tmp_path: Path) -> None:
    killed_beside_each_other(context, kind, tmp_path, 3)


@pytest.mark.slow
def test_killed_many_times_beside_a_job_that_is_killed(
    context: Context, kind: str, tmp_path: Path
) -> None:
    killed_beside_each_other(context, kind, tmp_path, ROUNDS_MANY)
