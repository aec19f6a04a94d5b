"""Upkeep of a job's tables: the same rows and offsets, fewer files, and nothing left behind."""

from pathlib import Path

import pytest

from pipeline.lake.maintain.left_over import Ages
from tests.fakes.lake.jobs import lake_job, run
from tests.fakes.lake.numbers_log import FakeLog, is_bad, rows_of
from tests.fakes.lake.tables import KINDS, coordinates, open_sink, read_table
from tests.fakes.lake.upkeep import lake_upkeep, maintain

LOG = {0: (0, 200), 1: (5, 133)}

GOOD = [one for one in rows_of(LOG) if not is_bad(one[1])]
BAD = [one for one in rows_of(LOG) if is_bad(one[1])]

NOW = Ages(-1000, -1000)
"""Everything is old."""


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def check(kind: str, root: Path) -> None:
    assert coordinates(read_table(kind, root)) == GOOD
    assert coordinates(read_table(kind, root, "orders_quarantine")) == BAD


def test_small_files_become_few_and_rows_and_offsets_stay(kind: str, tmp_path: Path) -> None:
    run(lake_job(kind, tmp_path, FakeLog(LOG)))
    before = open_sink(kind, tmp_path).view()
    many = len(open_sink(kind, tmp_path).keys(before))
    rows, quarantine = maintain(lake_upkeep(kind, tmp_path))
    check(kind, tmp_path)
    sink = open_sink(kind, tmp_path)
    assert sink.view().progress == before.progress
    assert len(sink.keys(sink.view())) == rows.compacted.made < many / 5
    assert rows.compacted.replaced == many
    assert quarantine.groups == 0
    assert run(lake_job(kind, tmp_path, FakeLog(LOG))) == 0
    more = FakeLog({0: (0, 260), 1: (5, 133)})
    assert run(lake_job(kind, tmp_path, more)) > 0
    assert len(coordinates(read_table(kind, tmp_path))) > len(GOOD)


def test_what_only_old_states_had_is_removed(kind: str, tmp_path: Path) -> None:
    run(lake_job(kind, tmp_path, FakeLog(LOG)))
    for _ in range(3):
        rows, _ = maintain(lake_upkeep(kind, tmp_path, ages=NOW))
        check(kind, tmp_path)
    sink = open_sink(kind, tmp_path)
    keys = set(sink.keys(sink.view()))
    found = {file.key for file in sink.store.list("") if file.key.endswith(".parquet")}
    assert {key for key in found if not key.startswith("_")} == keys
    assert (rows.groups, rows.expired, rows.orphans) == (0, 0, 0)
    run(lake_job(kind, tmp_path, FakeLog({0: (0, 260), 1: (5, 133)})))
