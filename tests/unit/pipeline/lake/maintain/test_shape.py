"""How a table is cut, before and after upkeep."""

from pathlib import Path

import pytest

from pipeline.lake.maintain.histories import history_of
from pipeline.lake.maintain.shape import TableShape, shape_of
from tests.fakes.lake.jobs import lake_job, run
from tests.fakes.lake.numbers_log import FakeLog
from tests.fakes.lake.tables import KINDS, open_sink
from tests.fakes.lake.upkeep import lake_upkeep, maintain


def shape(kind: str, root: Path, small_bytes: int = 20_000) -> TableShape:
    sink = open_sink(kind, root)
    return shape_of(sink, history_of(sink), small_bytes)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tables_shape_is_told_and_follows_upkeep(kind: str, tmp_path: Path) -> None:
    run(lake_job(kind, tmp_path, FakeLog({0: (0, 60)})))
    before = shape(kind, tmp_path)
    assert before.files == before.small_files == 7
    assert before.states >= 3
    assert shape(kind, tmp_path, 1).small_files == 0
    maintain(lake_upkeep(kind, tmp_path))
    after = shape(kind, tmp_path)
    assert after.files == 1
    assert after.size < before.size
    assert after.states > before.states
