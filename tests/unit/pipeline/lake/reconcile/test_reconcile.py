"""A table that is its log, and every way in which it may not be."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from pipeline.lake.errors import ForeignTableError
from pipeline.lake.files.data_file import DataFile
from pipeline.lake.reconcile.reconcile import Reconciled, Reconciler, differing
from pipeline.lake.schemas.spec import ConverterSpec, FieldSpec
from pipeline.lake.sinks.base import Sink
from pipeline.lake.sinks.parquet import ParquetState
from tests.fakes.lake.jobs import FIELDS, SPEC, FixedColumns, lake_job, run
from tests.fakes.lake.numbers_log import FakeLog, read_rows, rows_of
from tests.fakes.lake.tables import KINDS, open_sink

PARTITIONS = {0: (0, 60), 1: (5, 40)}


def _reconciled(
    kind: str,
    root: Path,
    log: FakeLog | None = None,
    *,
    spec: ConverterSpec = SPEC,
    partition_by: tuple[str, ...] = (),
) -> Reconciled:
    source = log or FakeLog(PARTITIONS)
    sink = open_sink(kind, root, partition_by=partition_by)
    bad = open_sink(kind, root, name="orders_quarantine")
    progress = sink.view().progress
    assert progress is not None
    bad.view()
    reconciler = Reconciler(source, sink, bad, FixedColumns(spec), read_rows, range_bytes=1000)
    return reconciler.run(source.view(), progress)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("partition_by", [(), ("partition", "day(timestamp)")])
def test_a_job_leaves_what_the_log_says(
    kind: str, partition_by: tuple[str, ...], tmp_path: Path
) -> None:
    """Range by range; quarantined records count."""
    run(lake_job(kind, tmp_path, FakeLog(PARTITIONS), partition_by=partition_by))
    found = _reconciled(kind, tmp_path, partition_by=partition_by)
    assert found.equal
    assert differing(found.ranges) == []
    assert sum(one.log_rows for one in found.ranges) == len(rows_of(PARTITIONS))
    assert sum(one.table_rows for one in found.ranges) == len(rows_of(PARTITIONS)) - 4
    assert sum(one.quarantined for one in found.ranges) == 4
    assert [(one.partition, one.start, one.end) for one in found.ranges][:2] == [
        *((0, 0, 10), (0, 10, 20)),
    ]


def test_what_is_not_replayed_yet_is_no_difference(tmp_path: Path) -> None:
    """Records that fit now lie in the quarantine still."""
    strict = ConverterSpec(FieldSpec("json", fields=FIELDS, max_value_bytes=24), FieldSpec("raw"))
    run(lake_job("parquet", tmp_path, FakeLog(PARTITIONS), spec=strict))
    assert _reconciled("parquet", tmp_path).equal
    assert _reconciled("parquet", tmp_path, spec=strict).equal


def test_what_the_log_has_no_more_is_counted(tmp_path: Path) -> None:
    """Retention goes on; and the log may have more than the table yet."""
    run(lake_job("delta", tmp_path, FakeLog(PARTITIONS)))
    later = FakeLog({0: (20, 90), 1: (5, 40), 2: (0, 10)}, gaps={1: [(10, 20)]})
    found = _reconciled("delta", tmp_path, later)
    assert found.equal
    gone = [*range(20), *range(10, 20)]
    assert found.older == len([o for o in gone if o % 10 != 9])
    assert [(one.partition, one.end) for one in found.ranges][-1] == (1, 40)


def _file(root: Path) -> tuple[Sink, Any, DataFile]:
    """The file of the table whose rows begin at offset 10 of partition 0."""
    sink = open_sink("parquet", root)
    view = sink.view()
    assert isinstance(view.state, ParquetState)
    files = view.state.files.values()
    return sink, view, next(f for f in files if f.partition == 0 and f.first_offset == 10)


def _rewritten(root: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    sink, _, file = _file(root)
    table = pq.read_table(pa.BufferReader(sink.store.get(file.key) or b""))
    out = pa.BufferOutputStream()
    pq.write_table(change(table), out)
    sink.store.put(file.key, out.getvalue().to_pybytes())


def _column(name: str, value: Callable[[pa.ChunkedArray], Any]) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index(name)
        return table.set_column(at, table.schema.field(at), value(table.column(name)))

    return change


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        (lambda table: table.slice(1), ("rows", "offsets", "coordinates", "values")),
        (lambda table: pa.concat_tables([table, table.slice(3, 1)]),
         ("rows", "coordinates", "values")),
        (lambda table: pa.concat_tables([table.slice(0, 3), table.slice(2, 1), table.slice(4)]),
         ("coordinates", "values")),
        (_column("timestamp", lambda c: pc.add(c, pa.scalar(1, pa.duration("us")))),
         ("coordinates", "values")),
        (_column("name", lambda c: pc.utf8_upper(c)), ("values",)),
        (_column("id", lambda c: pc.if_else(pc.equal(c, 12), None, c)), ("values",)),
        (_column("key", lambda c: pa.nulls(len(c), pa.binary())), ("values",)),
        (_column("id", lambda c: c.take(pa.array([1, 0, *range(2, len(c))]))), ("values",)),
        (lambda table: table.sort_by([("offset", "descending")]), ()),
    ],
)  # fmt: skip
def test_every_difference_is_seen_in_its_range(
    change: Callable[[pa.Table], pa.Table], differs: tuple[str, ...], tmp_path: Path
) -> None:
    """Lost, doubled, replaced, altered, exchanged; the order of rows is none."""
    run(lake_job("parquet", tmp_path, FakeLog(PARTITIONS)))
    _rewritten(tmp_path, change)
    found = _reconciled("parquet", tmp_path)
    assert found.equal == (not differs)
    told = [(one.partition, one.start, one.differs) for one in differing(found.ranges)]
    assert told == ([(0, 10, differs)] if differs else [])


def _offsets(root: Path) -> list[int]:
    sink, _, file = _file(root)
    rows = pq.read_table(pa.BufferReader(sink.store.get(file.key) or b""), columns=["offset"])
    offsets: list[int] = rows.column("offset").to_pylist()
    return offsets


def test_rows_beyond_the_tables_own_offsets_are_wrong(tmp_path: Path) -> None:
    """Somebody has committed files without offsets."""
    run(lake_job("parquet", tmp_path, FakeLog(PARTITIONS)))
    _rewritten(tmp_path, _column("offset", lambda c: pc.add(c, 1000)))
    found = _reconciled("parquet", tmp_path)
    assert not found.equal
    assert found.beyond == len(_offsets(tmp_path))


def test_files_that_are_gone_and_schemas_that_are_not_held_are_errors(tmp_path: Path) -> None:
    """Neither is a difference of rows."""
    run(lake_job("parquet", tmp_path, FakeLog(PARTITIONS)))
    sink, _, file = _file(tmp_path)
    sink.store.delete([file.key])
    with pytest.raises(ForeignTableError, match="is of the table, and is not there"):
        _reconciled("parquet", tmp_path)


def test_rows_of_another_incarnation_are_not_looked_at(tmp_path: Path) -> None:
    """Their offsets are other records'."""
    run(lake_job("parquet", tmp_path, FakeLog(PARTITIONS)))
    sink, view, file = _file(tmp_path)
    other = file.key.replace(view.progress.topic_id.hex[:8], "0" * 8)
    sink.store.put(other, sink.store.get(file.key) or b"")
    sink.commit(view, view.schema, [file._replace(key=other)], view.progress)
    assert _reconciled("parquet", tmp_path).equal
