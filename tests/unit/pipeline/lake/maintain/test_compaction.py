"""Compaction yields: to jobs, to other compactions, to whoever changes the table meanwhile."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from pipeline.lake.errors import CommitConflictError
from pipeline.lake.work.local_runner import LocalRunner
from tests.fakes.lake.jobs import lake_job, run
from tests.fakes.lake.numbers_log import FakeLog, is_bad, read_rows, rows_of
from tests.fakes.lake.tables import KINDS, coordinates, open_sink, read_table
from tests.fakes.lake.upkeep import lake_upkeep, maintain

T = TypeVar("T")
R = TypeVar("R")

LOG = {0: (0, 80), 1: (5, 33)}
MORE = {0: (0, 120), 1: (5, 33)}


def good(log: dict[int, tuple[int, int]]) -> list[tuple[int, int]]:
    return [one for one in rows_of(log) if not is_bad(one[1])]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


class Overtaken(LocalRunner):
    """While it works, somebody else does something with the table."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__(read_rows)
        self.meanwhile: Callable[[], object] | None = meanwhile

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> Sequence[R]:
        found = super().map(work, items)
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return found


def test_a_job_that_commits_meanwhile_keeps_its_rows_and_offsets(kind: str, tmp_path: Path) -> None:
    run(lake_job(kind, tmp_path, FakeLog(LOG)))
    upkeep = lake_upkeep(kind, tmp_path)
    runner = Overtaken(lambda: run(lake_job(kind, tmp_path, FakeLog(MORE))))
    rows, _ = upkeep.run(upkeep.groups(), runner)
    assert coordinates(read_table(kind, tmp_path)) == good(MORE)
    assert rows.compacted.made >= 1
    assert rows.compacted.dropped == 0
    progress = open_sink(kind, tmp_path).view().progress
    assert progress is not None
    assert progress.offsets == {0: 120, 1: 33}
    assert run(lake_job(kind, tmp_path, FakeLog(MORE))) == 0


def test_of_two_at_once_one_is_dropped_and_leaves_nothing(kind: str, tmp_path: Path) -> None:
    run(lake_job(kind, tmp_path, FakeLog(LOG)))
    upkeep = lake_upkeep(kind, tmp_path)
    groups = upkeep.groups()
    runner = Overtaken(lambda: maintain(lake_upkeep(kind, tmp_path)))
    rows, _ = upkeep.run(groups, runner)
    assert (rows.compacted.made, rows.compacted.dropped) == (0, len(groups))
    assert coordinates(read_table(kind, tmp_path)) == good(LOG)
    sink = open_sink(kind, tmp_path)
    keys = set(sink.keys(sink.view()))
    made = {file.key for file in sink.store.list("") if "compact-" in file.key}
    assert made == keys


def test_groups_are_committed_in_waves(kind: str, tmp_path: Path) -> None:
    """Who is killed has lost one wave's work at most."""
    run(lake_job(kind, tmp_path, FakeLog(LOG), partition_by=["day(timestamp)"]))
    upkeep = lake_upkeep(kind, tmp_path, partition_by=["day(timestamp)"], max_bytes=1)
    groups = upkeep.groups()
    assert len(groups) > 1
    waves = []

    class Counting(LocalRunner):
        def map(self, work: Callable[[T], R], items: Sequence[T]) -> Sequence[R]:
            waves.append(len(items))
            return super().map(work, items)

    upkeep.run(groups, Counting(read_rows))
    assert waves == [1] * len(groups)
    if kind != "parquet":
        assert coordinates(read_table(kind, tmp_path)) == good(LOG)


def test_a_table_that_always_changes_is_left_and_so_is_nothing_else(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(lake_job(kind, tmp_path, FakeLog(LOG)))
    upkeep = lake_upkeep(kind, tmp_path)

    def never(*_: object) -> None:
        raise CommitConflictError("never")

    sink = upkeep._rows.sink
    monkeypatch.setattr(sink, "replace", never)
    with pytest.raises(CommitConflictError, match="changed all the time"):
        maintain(upkeep)
    assert coordinates(read_table(kind, tmp_path)) == good(LOG)
    assert not [file for file in sink.store.list("") if "compact-" in file.key]


def test_a_commit_whose_answer_got_lost_is_found(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that tries again finds its own commit, and says that somebody was there first."""
    run(lake_job(kind, tmp_path, FakeLog(LOG)))
    upkeep = lake_upkeep(kind, tmp_path)
    sink = upkeep._rows.sink
    replace = sink.replace

    def done(*arguments: object) -> None:
        replace(*arguments)  # type: ignore[arg-type]  # as they came
        raise CommitConflictError("version exists")

    monkeypatch.setattr(sink, "replace", done)
    rows, _ = maintain(upkeep)
    assert rows.compacted.made >= 1
    assert coordinates(read_table(kind, tmp_path)) == good(LOG)
