"""Versions of Delta tables: read until they end, and a look that stays short."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from pipeline.lake.maintain.delta_history import DeltaHistory
from pipeline.lake.maintain.history import Times
from pipeline.lake.maintain.left_over import Ages
from pipeline.lake.sinks.base import TableView
from pipeline.lake.sinks.delta import DeltaSink
from tests.fakes.lake.jobs import lake_job, run
from tests.fakes.lake.numbers_log import FakeLog, is_bad, rows_of
from tests.fakes.lake.tables import coordinates, open_sink, read_table
from tests.fakes.lake.upkeep import HOUR_MS, lake_upkeep, maintain

LOG = {0: (0, 120)}
GOOD = [one for one in rows_of(LOG) if not is_bad(one[1])]


def test_an_older_version_is_read_until_it_ends(tmp_path: Path) -> None:
    run(lake_job("delta", tmp_path, FakeLog(LOG)))
    table = str(tmp_path / "orders")
    version = DeltaTable(table).version()
    maintain(lake_upkeep("delta", tmp_path))
    assert DeltaTable(table).version() > version
    assert coordinates(DeltaTable(table, version=version).to_pyarrow_table()) == GOOD
    rows, _ = maintain(lake_upkeep("delta", tmp_path, ages=Ages(-HOUR_MS, HOUR_MS)))
    assert rows.expired > 0
    assert coordinates(read_table("delta", tmp_path)) == GOOD


def test_what_removed_a_file_is_kept_as_long_as_the_file(tmp_path: Path) -> None:
    """Else a checkpoint forgets it, and the file looks like one that nobody ever had."""
    run(lake_job("delta", tmp_path, FakeLog({0: (0, 60)})))
    maintain(lake_upkeep("delta", tmp_path, ages=Ages(30 * 24 * HOUR_MS, HOUR_MS)))
    known = DeltaTable(str(tmp_path / "orders")).metadata().configuration
    assert known["delta.deletedFileRetentionDuration"] == "interval 720 hours"
    assert known["delta.logRetentionDuration"] == "interval 720 hours"
    version = DeltaTable(str(tmp_path / "orders")).version()
    maintain(lake_upkeep("delta", tmp_path, ages=Ages(30 * 24 * HOUR_MS, HOUR_MS)))
    assert DeltaTable(str(tmp_path / "orders")).version() == version


def test_a_look_begins_at_a_checkpoint_that_has_the_offsets(tmp_path: Path) -> None:
    run(lake_job("delta", tmp_path, FakeLog(LOG)))
    before = open_sink("delta", tmp_path).view().progress
    maintain(lake_upkeep("delta", tmp_path))
    log = tmp_path / "orders" / "_delta_log"
    (checkpoint,) = log.glob("*.checkpoint.parquet")
    for old in log.glob("*.json"):
        if old.name[:20] <= checkpoint.name[:20]:
            old.unlink()
    assert open_sink("delta", tmp_path).view().progress == before
    assert coordinates(read_table("delta", tmp_path)) == GOOD


def test_a_job_that_commits_at_the_same_time_stops_no_upkeep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commit comes between what was read of the table and what is committed."""
    run(lake_job("delta", tmp_path, FakeLog(LOG)))
    table = str(tmp_path / "orders")
    commits: list[str] = []

    def view(sink: DeltaSink) -> TableView:
        found = look(sink)
        if len(commits) < 3:
            commits.append(str(len(commits)))
            DeltaTable(table).alter.set_table_properties(
                {"somebody": commits[-1]}, raise_if_not_exists=False
            )
        return found

    look = DeltaSink.view
    monkeypatch.setattr(DeltaSink, "view", view)
    sink = open_sink("delta", tmp_path)
    assert isinstance(sink, DeltaSink)
    DeltaHistory(sink).trim(Times(0, 0), 5 * HOUR_MS, dry_run=False)
    known = DeltaTable(table).metadata().configuration
    assert known["delta.logRetentionDuration"] == "interval 5 hours"
    assert (len(commits), known["somebody"]) == (3, "2")
