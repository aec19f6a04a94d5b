"""Delta tables that were restored: they have the offsets of the rows they have."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

from pipeline.lake.errors import ForeignTableError
from pipeline.lake.sinks.delta_history import recorded_offsets
from tests.fakes.lake.jobs import lake_job, run
from tests.fakes.lake.numbers_log import FakeLog, is_bad, rows_of
from tests.fakes.lake.tables import coordinates, open_directory, open_sink, read_table

LOG = {0: (0, 60), 1: (5, 33)}
GOOD = [one for one in rows_of(LOG) if not is_bad(one[1])]
COMMITS = 4
"""That a job makes of the log; version 0 is the table's creation."""


def filled(root: Path) -> DeltaTable:
    assert run(lake_job("delta", root, FakeLog(LOG))) == COMMITS
    return DeltaTable(str(root / "orders"))


def offsets(root: Path) -> tuple[int, dict[int, int]]:
    progress = open_sink("delta", root).view().progress
    assert progress is not None
    return progress.batch, dict(progress.offsets)


@pytest.mark.parametrize("version", range(COMMITS))
def test_a_restored_table_is_filled_again(tmp_path: Path, version: int) -> None:
    """Its transactions say that it has all."""
    table = filled(tmp_path)
    before = sorted(DeltaTable(table.table_uri, version).file_uris())
    table.restore(version)
    assert offsets(tmp_path)[0] == version
    assert run(lake_job("delta", tmp_path, FakeLog(LOG))) == COMMITS - version
    assert coordinates(read_table("delta", tmp_path)) == GOOD
    assert set(before) <= set(DeltaTable(table.table_uri).file_uris())


def test_restored_to_a_time_it_is_filled_again(tmp_path: Path) -> None:
    table = filled(tmp_path)
    (entry,) = (one for one in table.history() if one["version"] == 2)
    table.restore(datetime.fromtimestamp((entry["timestamp"] + 0.5) / 1000, UTC))
    batch, reached = offsets(tmp_path)
    # Which version is of a time is the library's to say.
    assert 0 < batch < COMMITS
    assert coordinates(read_table("delta", tmp_path)) == [
        (partition, offset) for partition, offset in GOOD if offset < reached.get(partition, 0)
    ]
    run(lake_job("delta", tmp_path, FakeLog(LOG)))
    assert coordinates(read_table("delta", tmp_path)) == GOOD


def test_restored_again_and_again_it_is_what_it_went_back_to(tmp_path: Path) -> None:
    """Also forwards: to a version from before the first restore."""
    table = filled(tmp_path)
    table.restore(1)
    run(lake_job("delta", tmp_path, FakeLog(LOG), max_bytes=1500))
    table = DeltaTable(table.table_uri)
    table.restore(3)
    assert offsets(tmp_path)[0] == 3
    table = DeltaTable(table.table_uri)
    table.restore(2)
    table = DeltaTable(table.table_uri)
    table.restore(table.version() - 1)
    assert offsets(tmp_path)[0] == 3
    run(lake_job("delta", tmp_path, FakeLog(LOG)))
    assert coordinates(read_table("delta", tmp_path)) == GOOD


def test_commits_of_others_tell_nothing(tmp_path: Path) -> None:
    table = filled(tmp_path)
    known = offsets(tmp_path)
    for _ in range(25):
        table.alter.set_table_properties({"somebody": "else"}, raise_if_not_exists=False)
    assert offsets(tmp_path) == known
    table.restore(2)
    for _ in range(25):
        table.alter.set_table_properties({"somebody": "else"}, raise_if_not_exists=False)
    assert offsets(tmp_path)[0] == 2


def test_what_went_on_behind_a_restore_counts(tmp_path: Path) -> None:
    table = filled(tmp_path)
    table.restore(2)
    job = lake_job("delta", tmp_path, FakeLog(LOG))
    assert job.step() is not None
    assert offsets(tmp_path)[0] == 3
    table = DeltaTable(table.table_uri)
    store = open_directory(table.table_uri)
    told = recorded_offsets(table, store, lambda version: DeltaTable(table.table_uri, version))
    assert told.restored_to == -1


def test_a_partition_that_came_behind_the_restored_version_begins_anew(tmp_path: Path) -> None:
    run(lake_job("delta", tmp_path, FakeLog({0: (0, 20)})))
    table = DeltaTable(str(tmp_path / "orders"))
    version = table.version()
    run(lake_job("delta", tmp_path, FakeLog(LOG)))
    DeltaTable(table.table_uri).restore(version)
    assert offsets(tmp_path)[1] == {0: 20}
    run(lake_job("delta", tmp_path, FakeLog(LOG)))
    assert coordinates(read_table("delta", tmp_path)) == GOOD


def test_restored_where_no_commit_is_left_that_tells_nobody_goes_on(tmp_path: Path) -> None:
    """Its transactions would skip rows."""
    table = filled(tmp_path)
    table.restore(2)
    table = DeltaTable(table.table_uri)
    table.create_checkpoint()
    log = tmp_path / "orders" / "_delta_log"
    for version in range(table.version()):
        (log / f"{version:020d}.json").unlink()
    with pytest.raises(ForeignTableError, match="RESTORE it to one of the versions"):
        open_sink("delta", tmp_path).view()


def test_a_schema_that_was_restored_is_what_the_table_has(tmp_path: Path) -> None:
    table = filled(tmp_path)
    table.alter.add_columns([Field("extra", PrimitiveType("long"))])
    DeltaTable(table.table_uri).restore(2)
    run(lake_job("delta", tmp_path, FakeLog(LOG)))
    assert coordinates(read_table("delta", tmp_path)) == GOOD
