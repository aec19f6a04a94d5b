"""Upkeep on Spark: many small commits become few files, and readers that others wrote agree."""

from pathlib import Path
from typing import Any

import pytest

from pipeline.lake.app.maintenance import maintain_job
from pipeline.lake.settings.config import JobConfig, parse_job
from tests.fakes.lake.jobs import lake_job, run
from tests.fakes.lake.numbers_log import FakeLog, is_bad, rows_of
from tests.fakes.lake.tables import KINDS, coordinates, open_sink, read_table

COMMITS = 120

LOG = {0: (0, 20 * COMMITS), 1: (5, 9)}
GOOD = [one for one in rows_of(LOG) if not is_bad(one[1])]


def settings(root: Path, kind: str) -> JobConfig:
    sink = f"type: {kind}, table: {root}/orders"
    if kind == "iceberg":
        uri = f"name: tests, uri: 'sqlite:///{root}/catalog.db', warehouse: 'file://{root}/tables'"
        sink = f"type: iceberg, table: lake.orders, catalog: {{type: sql, {uri}}}"
    return parse_job(
        f"name: orders-lake\nsource: {{location: 'file:///nowhere', topic: orders}}\n"
        f"value: {{format: json}}\nsink: {{{sink}, target_file_bytes: 256 KiB}}\n"
        "maintain: {sort_by: key, max_bytes: 256 KiB}\n"
    )


def by_spark(spark: Any, kind: str, root: Path) -> list[tuple[int, int]]:
    """Rows of the table's files as Spark's own Parquet reader has them."""
    sink = open_sink(kind, root)
    folder = sink.store.uri.removeprefix("file://")
    paths = [f"{folder}/{key}" for key in sink.keys(sink.view())]
    rows = spark.read.parquet(*paths).select("partition", "offset").collect()
    return sorted((row["partition"], row["offset"]) for row in rows)


@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_rows_in_small_files_become_few_files(
    spark: Any, kind: str, tmp_path: Path
) -> None:
    run(lake_job(kind, tmp_path, FakeLog(LOG), max_bytes=2000))
    sink = open_sink(kind, tmp_path)
    before = sink.view()
    keys = sink.keys(before)
    assert len(keys) > 2 * COMMITS
    assert by_spark(spark, kind, tmp_path) == coordinates(read_table(kind, tmp_path)) == GOOD
    rows, quarantine = maintain_job(settings(tmp_path, kind), spark)
    assert rows.compacted.replaced == len(keys)
    assert (rows.compacted.dropped, rows.compacted.left_out) == (0, ())
    assert quarantine.orphans == 0
    assert len(sink.keys(sink.view())) == rows.compacted.made < len(keys) / 20
    assert by_spark(spark, kind, tmp_path) == coordinates(read_table(kind, tmp_path)) == GOOD
    assert sink.view().progress == before.progress
    if kind != "parquet":
        # Whoever reads the state from before still does.
        assert coordinates(older(kind, tmp_path, before.state)) == GOOD
    more = {**LOG, 0: (0, 20 * COMMITS + 50)}
    run(lake_job(kind, tmp_path, FakeLog(more)))
    everything = [one for one in rows_of(more) if not is_bad(one[1])]
    assert by_spark(spark, kind, tmp_path) == everything


def older(kind: str, root: Path, state: Any) -> Any:
    if kind == "delta":
        from deltalake import DeltaTable

        return DeltaTable(f"{root}/orders", version=state.version()).to_pyarrow_table()
    from tests.fakes.lake.tables import open_catalog

    table = open_catalog(root).load_table("lake.orders")
    return table.scan(snapshot_id=state.snapshot_id).to_arrow()
