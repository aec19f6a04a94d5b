"""Quarantined records come into the table once, after a fix, whatever dies in between."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import CommitConflictError, ForeignTableError
from pipeline.lake.files.data_file import DataFile
from pipeline.lake.files.file_writer import WriterOptions
from pipeline.lake.job.quarantine import Replay, Replayed
from pipeline.lake.schemas.spec import ConverterSpec, FieldSpec
from pipeline.lake.settings.config import parse_partition_field
from pipeline.lake.sinks.base import Sink, TableView
from pipeline.lake.sinks.parquet import ParquetState
from pipeline.lake.work.task import TableTarget, TaskSpec
from tests.fakes.lake.jobs import FIELDS, SPEC, FixedColumns, lake_job, run
from tests.fakes.lake.numbers_log import FakeLog, is_bad, rows_of
from tests.fakes.lake.tables import KINDS, OpenDirectory, coordinates, open_sink, read_table

PARTITIONS = {0: (0, 30), 1: (5, 30)}
"""Few: a replay commits twice for each batch of the quarantine, and each commit takes its time."""


def _bad() -> list[tuple[int, int]]:
    return [(number, offset) for number, offset in rows_of(PARTITIONS) if is_bad(offset)]


def _replay(
    kind: str,
    root: Path,
    spec: ConverterSpec = SPEC,
    wrap: Callable[[Sink], Sink] = lambda sink: sink,
    wrap_bad: Callable[[Sink], Sink] = lambda sink: sink,
    partition_by: Sequence[str] = (),
) -> Replayed:
    sink = open_sink(kind, root, partition_by=partition_by)
    bad = open_sink(kind, root, name="orders_quarantine")

    def task_spec(converter: ConverterSpec) -> TaskSpec:
        sink.view()
        bad.view()
        fields = tuple(parse_partition_field(one) for one in partition_by)
        options = WriterOptions(fields, sink.keeps_partition_columns)
        return TaskSpec(
            TableTarget(OpenDirectory(sink.store.uri), sink.folder, options),
            TableTarget(OpenDirectory(bad.store.uri), bad.folder, WriterOptions()),
            converter,
        )

    return Replay(wrap(sink), wrap_bad(bad), FixedColumns(spec), task_spec).run()


def _both(kind: str, root: Path) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    return (
        coordinates(read_table(kind, root)),
        coordinates(read_table(kind, root, "orders_quarantine")),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_rows_come_into_the_parts_of_a_parted_table(kind: str, tmp_path: Path) -> None:
    """By their own timestamps, as the job would have written them."""
    # A Parquet table's files lack a column they are parted by; whoever reads them has the folder.
    parted = ["day(timestamp)"] if kind == "parquet" else ["partition", "day(timestamp)"]
    log = FakeLog(PARTITIONS)
    run(lake_job(kind, tmp_path, log, spec=_limited(24), partition_by=parted))
    _replay(kind, tmp_path, partition_by=parted)
    table, held = _both(kind, tmp_path)
    assert sorted(table + held) == rows_of(PARTITIONS)
    assert held == _bad()
    if kind != "parquet":
        assert read_table(kind, tmp_path).column("timestamp").null_count == 0


class Killed(Exception):
    """The process ends here."""


class Wrapped:
    """A sink of which one commit does something else."""

    def __init__(self, sink: Sink, commit: Callable[..., None]) -> None:
        self._sink = sink
        self._commit = commit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)

    def commit(
        self,
        view: TableView,
        schema: pa.Schema,
        files: Sequence[DataFile],
        progress: Progress,
        remove: Sequence[str] = (),
    ) -> None:
        self._commit(self._sink, view, schema, files, progress, remove)


@pytest.mark.parametrize("kind", KINDS)
def test_what_fits_after_a_fix_moves_into_the_table(kind: str, tmp_path: Path) -> None:
    """The job goes on before and after a replay; nothing is in a table twice."""
    log = FakeLog(PARTITIONS)
    run(lake_job(kind, tmp_path, log, spec=_limited(24)))
    table, held = _both(kind, tmp_path)
    assert table + held != table
    assert sorted(table + held) == rows_of(PARTITIONS)
    replayed = _replay(kind, tmp_path)
    assert replayed.rows == len(rows_of(PARTITIONS)) - len(table) - len(_bad())
    log.partitions[0] = (0, 60)
    run(lake_job(kind, tmp_path, log))
    table, held = _both(kind, tmp_path)
    everything = rows_of({0: (0, 60), 1: (5, 30)})
    assert sorted(table + held) == everything
    assert held == [(number, offset) for number, offset in everything if is_bad(offset)]
    rows = read_table(kind, tmp_path).select(["offset", "id", "key"]).to_pylist()
    assert all(row["id"] == row["offset"] for row in rows)
    assert all(row["key"] == f"k{row['offset'] % 5}".encode() for row in rows)
    assert _replay(kind, tmp_path).rows == 0


def _limited(max_bytes: int) -> ConverterSpec:
    """Values above some bytes do not fit."""
    return ConverterSpec(FieldSpec("json", fields=FIELDS, max_value_bytes=max_bytes))


@pytest.mark.parametrize("kind", KINDS)
def test_a_replay_that_is_killed_is_finished_by_the_next(kind: str, tmp_path: Path) -> None:
    """Between the two commits rows are in both tables; never twice in the one."""
    # Each replay reads all batches that are left, so still fewer of them.
    partitions = {0: (0, 25), 1: (5, 18)}
    bad = [(number, offset) for number, offset in rows_of(partitions) if is_bad(offset)]
    run(lake_job(kind, tmp_path, FakeLog(partitions), spec=_limited(24)))
    table, held = _both(kind, tmp_path)
    kills = 0

    def killed(*_: object) -> None:
        raise Killed

    for _ in range(20):
        try:
            _replay(kind, tmp_path, wrap_bad=lambda sink: Wrapped(sink, killed))
        except Killed:
            kills += 1
            now, still = _both(kind, tmp_path)
            assert len(now) == len(set(now))
            assert still == held
            _replay(kind, tmp_path, spec=_limited(24))
            table, held = _both(kind, tmp_path)
            assert sorted(table + held) == rows_of(partitions)
        else:
            break
    assert held == bad
    assert kills > 1, kills


@pytest.mark.parametrize("kind", KINDS)
def test_whoever_is_overtaken_looks_again(kind: str, tmp_path: Path) -> None:
    """A commit of somebody else is no loss and no doubling."""
    run(lake_job(kind, tmp_path, FakeLog(PARTITIONS), spec=_limited(24)))
    refusals = iter(range(3))

    def refused(sink: Sink, *given: Any) -> None:
        if next(refusals, None) is not None:
            raise CommitConflictError("somebody was faster")
        sink.commit(*given)

    _replay(kind, tmp_path, wrap=lambda sink: Wrapped(sink, refused))
    table, held = _both(kind, tmp_path)
    assert sorted(table + held) == rows_of(PARTITIONS)
    assert held == _bad()


def test_two_replays_at_once_bring_each_row_once(tmp_path: Path) -> None:
    """The second one runs whole while the first is about to commit."""
    run(lake_job("delta", tmp_path, FakeLog(PARTITIONS), spec=_limited(24)))
    others = iter([True])

    def overtaken(sink: Sink, *given: Any) -> None:
        if next(others, None):
            _replay("delta", tmp_path)
        sink.commit(*given)

    _replay("delta", tmp_path, wrap=lambda sink: Wrapped(sink, overtaken))
    table, held = _both("delta", tmp_path)
    assert sorted(table + held) == rows_of(PARTITIONS)


def test_records_of_a_batch_that_is_not_committed_stay(tmp_path: Path) -> None:
    """The job has quarantined them and was killed; it will make its batch again."""

    def killed(*_: object) -> None:
        raise Killed

    job = lake_job(
        "delta",
        tmp_path,
        FakeLog(PARTITIONS),
        spec=_limited(24),
        wrap=lambda sink: Wrapped(sink, killed),
    )
    with pytest.raises(Killed):
        run(job)
    held = coordinates(read_table("delta", tmp_path, "orders_quarantine"))
    assert held
    replayed = _replay("delta", tmp_path)
    assert (replayed.rows, replayed.left) == (0, len(held))
    run(lake_job("delta", tmp_path, FakeLog(PARTITIONS)))
    table, still = _both("delta", tmp_path)
    assert sorted(table + still) == rows_of(PARTITIONS)
    _replay("delta", tmp_path)
    table, still = _both("delta", tmp_path)
    assert sorted(table + still) == rows_of(PARTITIONS)
    assert still == _bad()


def test_a_quarantine_without_a_table_is_an_error(tmp_path: Path) -> None:
    """There is nothing to replay into."""
    with pytest.raises(ForeignTableError, match="run the job first"):
        _replay("delta", tmp_path)


def test_another_incarnation_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its offsets are other records'."""
    run(lake_job("parquet", tmp_path, FakeLog(PARTITIONS)))
    bad = open_sink("parquet", tmp_path, name="orders_quarantine")
    view = bad.view()
    assert view.progress is not None
    (key, *_) = bad.keys(view)
    assert isinstance(view.state, ParquetState)
    file = next(iter(view.state.files.values()))
    other = key.replace(view.progress.topic_id.hex[:8], "0" * 8)
    bad.store.put(other, bad.store.get(key) or b"")
    assert view.schema is not None
    bad.commit(view, view.schema, [file._replace(key=other)], view.progress)
    _replay("parquet", tmp_path)
    assert f"{other} belongs to another topic" in caplog.text
