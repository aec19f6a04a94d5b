"""States of Iceberg tables: snapshots that end, tags that do not, manifests put together."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.lake.maintain import iceberg_history
from pipeline.lake.maintain.left_over import Ages
from pipeline.lake.work.local_runner import LocalRunner
from tests.fakes.lake.jobs import lake_job, run
from tests.fakes.lake.numbers_log import FakeLog, is_bad, read_rows, rows_of
from tests.fakes.lake.tables import coordinates, open_catalog, open_sink, read_table
from tests.fakes.lake.upkeep import HOUR_MS, lake_upkeep

LOG = {0: (0, 120)}
GOOD = [one for one in rows_of(LOG) if not is_bad(one[1])]


def load(root: Path) -> Any:
    return open_catalog(root).load_table("lake.orders")


def test_many_manifests_become_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(lake_job("iceberg", tmp_path, FakeLog(LOG)))
    before = load(tmp_path)
    progress = open_sink("iceberg", tmp_path).view().progress
    manifests = len(before.current_snapshot().manifests(before.io))
    assert manifests >= 4
    monkeypatch.setattr(iceberg_history, "MANIFESTS_MAX", 4)
    lake_upkeep("iceberg", tmp_path).run([], None)
    table = load(tmp_path)
    snapshot = table.current_snapshot()
    assert snapshot.summary["operation"].value == "replace"
    assert len(snapshot.manifests(table.io)) == 1
    assert snapshot.summary["total-records"] == str(len(GOOD))
    assert coordinates(read_table("iceberg", tmp_path)) == GOOD
    assert open_sink("iceberg", tmp_path).view().progress == progress
    assert table.properties["write.metadata.delete-after-commit.enabled"] == "true"
    run(lake_job("iceberg", tmp_path, FakeLog({0: (0, 140)})))
    assert len(coordinates(read_table("iceberg", tmp_path))) > len(GOOD)


def test_older_snapshots_are_read_until_they_end_and_tags_for_ever(tmp_path: Path) -> None:
    run(lake_job("iceberg", tmp_path, FakeLog({0: (0, 30)})))
    tagged = load(tmp_path).current_snapshot()
    load(tmp_path).manage_snapshots().create_tag(tagged.snapshot_id, "audit").commit()
    run(lake_job("iceberg", tmp_path, FakeLog(LOG)))
    old = load(tmp_path).current_snapshot()
    upkeep = lake_upkeep("iceberg", tmp_path)
    upkeep.run(upkeep.groups(), LocalRunner(read_rows))
    rows = load(tmp_path).scan(snapshot_id=old.snapshot_id).to_arrow()
    assert coordinates(rows) == GOOD
    lake_upkeep("iceberg", tmp_path, ages=Ages(-1000, HOUR_MS)).run([], None)
    table = load(tmp_path)
    assert {one.snapshot_id for one in table.snapshots()} == {
        tagged.snapshot_id,
        table.current_snapshot().snapshot_id,
    }
    first = [one for one in rows_of({0: (0, 30)}) if not is_bad(one[1])]
    assert coordinates(table.scan(snapshot_id=tagged.snapshot_id).to_arrow()) == first
    assert coordinates(table.scan().to_arrow()) == GOOD
    paths = {
        Path(str(entry.data_file.file_path)).name
        for snapshot in table.snapshots()
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io)
    }
    assert {path.name for path in tmp_path.rglob("orders/data/*.parquet")} == paths
