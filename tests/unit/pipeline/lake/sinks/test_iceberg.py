"""Iceberg tables: offsets through rollback, expiry and other writers' snapshots."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from pipeline.lake.batch.progress import KEY, Progress
from pipeline.lake.errors import ForeignTableError
from pipeline.lake.sinks.iceberg import PROPERTIES, SEQUENCE
from tests.fakes.lake.tables import open_catalog, open_sink

BEGUN = Progress("orders-lake", "orders", UUID(int=7), 0, {})
SCHEMA = pa.schema(
    [
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
    ]
)


def with_commits(root: Path, count: int) -> Progress:
    sink = open_sink("iceberg", root)
    sink.create(SCHEMA, BEGUN)
    progress = BEGUN
    for number in range(count):
        progress = progress.advanced({0: number + 1})
        sink.commit(sink.view(), SCHEMA, (), progress)
    return progress


def table(root: Path) -> Any:
    return open_catalog(root).load_table("lake.orders")


def rows(offset: int) -> pa.Table:
    return pa.table(
        [pa.array([0], pa.int32()), pa.array([offset]), pa.array([0], SCHEMA.types[2])],
        schema=SCHEMA,
    )


def test_another_writers_snapshot_changes_no_offsets(tmp_path: Path) -> None:
    """Compaction of somebody else, say."""
    progress = with_commits(tmp_path, 2)
    table(tmp_path).append(rows(77))
    assert open_sink("iceberg", tmp_path).view().progress == progress


def test_a_table_that_was_rolled_back_has_the_offsets_it_has(tmp_path: Path) -> None:
    """Those of the newest commit would leave a hole."""
    with_commits(tmp_path, 3)
    found = table(tmp_path)
    second = found.metadata.snapshots[2]
    with found.manage_snapshots() as manage:
        manage.rollback_to_snapshot(second.snapshot_id)
    progress = open_sink("iceberg", tmp_path).view().progress
    assert progress is not None
    assert progress.offsets == {0: 2}


def expire_ours(root: Path) -> None:
    found = table(root)
    current = found.current_snapshot().snapshot_id
    found.maintenance.expire_snapshots().by_ids(
        [s.snapshot_id for s in found.metadata.snapshots if s.snapshot_id != current]
    ).commit()


def test_offsets_outlive_the_snapshots_that_had_them(tmp_path: Path) -> None:
    """Somebody compacts, and expires all that was before."""
    progress = with_commits(tmp_path, 3)
    table(tmp_path).append(rows(77))
    expire_ours(tmp_path)
    assert open_sink("iceberg", tmp_path).view().progress == progress


def test_after_both_nobody_knows_the_offsets(tmp_path: Path) -> None:
    """Rolled back behind a commit, and the snapshots that told are gone: a person decides."""
    with_commits(tmp_path, 1)
    table(tmp_path).append(rows(77))
    foreign = table(tmp_path).current_snapshot().snapshot_id
    sink = open_sink("iceberg", tmp_path)
    sink.commit(sink.view(), SCHEMA, (), BEGUN.advanced({0: 1}).advanced({0: 2}))
    found = table(tmp_path)
    with found.manage_snapshots() as manage:
        manage.rollback_to_snapshot(foreign)
    expire_ours(tmp_path)
    with pytest.raises(ForeignTableError, match="rolled back"):
        open_sink("iceberg", tmp_path).view()


def test_the_library_does_not_retry_commits(tmp_path: Path) -> None:
    """It would put a second job's batch behind the first one's."""
    with_commits(tmp_path, 1)
    properties = table(tmp_path).properties
    assert properties["commit.retry.num-retries"] == PROPERTIES["commit.retry.num-retries"] == "0"
    assert "schema.name-mapping.default" in properties
    assert KEY in properties
    assert int(properties[SEQUENCE]) == table(tmp_path).current_snapshot().sequence_number


def test_a_table_that_nobody_keeps_is_taken_on(tmp_path: Path) -> None:
    catalog = open_catalog(tmp_path)
    catalog.create_namespace("lake")
    catalog.create_table("lake.orders", SCHEMA).append(rows(5))
    sink = open_sink("iceberg", tmp_path)
    assert sink.view().progress is None
    sink.create(SCHEMA, BEGUN)
    assert sink.view().progress == BEGUN
    assert len(table(tmp_path).scan().to_arrow()) == 1


def test_another_parting_is_refused(tmp_path: Path) -> None:
    with_commits(tmp_path, 1)
    other = open_sink("iceberg", tmp_path, partition_by=["day(timestamp)"])
    with pytest.raises(ForeignTableError, match="is partitioned by"):
        other.create(SCHEMA, BEGUN._replace(topic_id=UUID(int=8)))
