"""Commits of Parquet tables, folded: whoever slept meanwhile finds its way, and doubles nothing."""

from pathlib import Path

import pytest

from pipeline.lake.errors import CommitConflictError
from pipeline.lake.maintain.left_over import Ages
from pipeline.lake.sinks.parquet import COMMITS
from tests.fakes.lake.jobs import lake_job, run
from tests.fakes.lake.numbers_log import FakeLog, is_bad, rows_of
from tests.fakes.lake.tables import coordinates, open_directory, open_sink, read_table
from tests.fakes.lake.upkeep import lake_upkeep, maintain

LOG = {0: (0, 120)}
GOOD = [one for one in rows_of(LOG) if not is_bad(one[1])]
ALL = Ages(-1000, -1000)


def commits(root: Path) -> list[str]:
    return [file.key for file in open_directory(f"{root}/orders").list(COMMITS)]


def test_commits_are_folded_and_a_look_reads_few_objects(tmp_path: Path) -> None:
    run(lake_job("parquet", tmp_path, FakeLog(LOG)))
    assert len(commits(tmp_path)) > 4
    maintain(lake_upkeep("parquet", tmp_path, ages=ALL))
    assert commits(tmp_path) == []
    assert coordinates(read_table("parquet", tmp_path)) == GOOD
    run(lake_job("parquet", tmp_path, FakeLog({0: (0, 140)})))
    assert len(commits(tmp_path)) == 1


def test_who_slept_while_commits_were_folded_looks_again(tmp_path: Path) -> None:
    log = FakeLog({0: (0, 30)})
    sleeper = lake_job("parquet", tmp_path, log)
    run(sleeper)
    log.partitions = dict(LOG)
    run(lake_job("parquet", tmp_path, log))
    maintain(lake_upkeep("parquet", tmp_path, ages=ALL))
    assert sleeper.step() is None
    log.partitions = {0: (0, 140)}
    assert sleeper.step() is not None
    rows = [one for one in rows_of({0: (0, 140)}) if not is_bad(one[1])]
    assert coordinates(read_table("parquet", tmp_path)) == rows


def test_a_number_that_was_folded_is_not_free(tmp_path: Path) -> None:
    """It would be a commit that nobody reads, and its job would take it for done."""
    run(lake_job("parquet", tmp_path, FakeLog({0: (0, 30)})))
    zombie = open_sink("parquet", tmp_path)
    view = zombie.view()
    run(lake_job("parquet", tmp_path, FakeLog(LOG)))
    maintain(lake_upkeep("parquet", tmp_path, ages=ALL))
    assert view.progress is not None
    assert view.schema is not None
    with pytest.raises(CommitConflictError, match="below the checkpoint"):
        zombie.commit(view, view.schema, (), view.progress.advanced({0: 31}))
    progress = zombie.view().progress
    assert progress is not None
    assert progress.offsets == {0: 120}
    assert coordinates(read_table("parquet", tmp_path)) == GOOD
    # What it put is in nobody's way.
    run(lake_job("parquet", tmp_path, FakeLog({0: (0, 140)})))
    maintain(lake_upkeep("parquet", tmp_path, ages=ALL))
    rows = [one for one in rows_of({0: (0, 140)}) if not is_bad(one[1])]
    assert coordinates(read_table("parquet", tmp_path)) == rows


def test_files_that_were_replaced_stay_as_long_as_they_may_be_read(tmp_path: Path) -> None:
    run(lake_job("parquet", tmp_path, FakeLog(LOG)))
    sink = open_sink("parquet", tmp_path)
    before = sink.keys(sink.view())
    maintain(lake_upkeep("parquet", tmp_path))
    assert all(sink.store.size(key) is not None for key in before)
    maintain(lake_upkeep("parquet", tmp_path, ages=ALL))
    assert all(sink.store.size(key) is None for key in before)
