"""Tables by key: the last record of each key wins, however the log is cut into batches."""

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typing_extensions import override

from pipeline.lake.errors import ForeignTableError
from pipeline.lake.files.data_file import DataFile
from pipeline.lake.files.file_writer import WriterOptions
from pipeline.lake.files.stored_rows import stored_rows
from pipeline.lake.job.job import LakeJob
from pipeline.lake.job.quarantine import Replay, Replayed
from pipeline.lake.keyed import leftovers
from pipeline.lake.reconcile import keyed_reconcile
from pipeline.lake.reconcile.keyed_reconcile import KeyedReconciler, ReconciledKeys
from pipeline.lake.schemas.spec import ConverterSpec, FieldSpec
from pipeline.lake.sinks.base import TableView
from pipeline.lake.work.local_runner import LocalRunner
from pipeline.lake.work.task import TableTarget, TaskSpec
from tests.effort import examples
from tests.fakes.lake.jobs import BUCKETS, FixedColumns, lake_job, run
from tests.fakes.lake.keyed_log import (
    UPSERT,
    KeyedLog,
    Record,
    oracle,
    rows_of_table,
    value,
)
from tests.fakes.lake.tables import (
    KINDS,
    OpenDirectory,
    open_directory,
    open_sink,
    read_table,
)

T = TypeVar("T")
R = TypeVar("R")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def keyed_job(kind: str, root: Path, log: KeyedLog, **more: object) -> LakeJob:
    given = {"spec": UPSERT, "read_piece": log.read, **more}
    return lake_job(kind, root, log, **given)  # type: ignore[arg-type]  # the job's own names


def some_records(count: int, keys: int = 9) -> list[Record]:
    """Over two partitions, with deletions, null keys and values that do not fit."""
    made = []
    for n in range(count):
        key = None if n % 41 == 40 else f"k{n * 7 % keys}".encode()
        content: bytes | None = value(n)
        if n % 6 == 5:
            content = None
        elif n % 17 == 11:
            content = b"{no json"
        made.append(Record(n * 7 % keys % 2, key, content, 1000 + n))
    return made


def test_the_last_record_of_a_key_is_its_row(kind: str, tmp_path: Path) -> None:
    log = KeyedLog(some_records(120))
    batches = run(keyed_job(kind, tmp_path, log))
    assert batches > 3
    expected = oracle(log)
    assert expected
    assert rows_of_table(read_table(kind, tmp_path)) == expected


def test_nothing_but_the_table_is_left(kind: str, tmp_path: Path) -> None:
    log = KeyedLog(some_records(120))
    run(keyed_job(kind, tmp_path, log))
    store = open_sink(kind, tmp_path).store
    assert not list(store.list("_varve/keyed/runs/"))
    assert not list(store.list("_varve/plans/"))


def test_a_table_says_how_it_is_kept(kind: str, tmp_path: Path) -> None:
    """Buckets, mode and how keys are known cannot be changed; each refusal says what to do."""
    log = KeyedLog(some_records(20))
    run(keyed_job(kind, tmp_path, log))
    log.write(some_records(5))
    with pytest.raises(ForeignTableError, match=r"sink.buckets: 4, the job says 5: set it back"):
        run(keyed_job(kind, tmp_path, log, buckets=5))
    with pytest.raises(ForeignTableError, match=r"last record of each key.* set mode back"):
        run(keyed_job(kind, tmp_path, log, spec=replace(UPSERT, mode="append")))
    with pytest.raises(ForeignTableError, match="kept with mode: upsert, the job says debezium"):
        run(keyed_job(kind, tmp_path, log, spec=replace(UPSERT, mode="debezium")))
    other = replace(UPSERT, key=FieldSpec("json", fields=pa.schema([("id", pa.int64())])))
    with pytest.raises(ForeignTableError, match=r"rows by the column key, .* set it back"):
        run(keyed_job(kind, tmp_path, log, spec=other))
    assert run(keyed_job(kind, tmp_path, log)) == 1


def test_a_table_of_every_record_cannot_be_kept_by_key(kind: str, tmp_path: Path) -> None:
    log = KeyedLog(some_records(20))
    run(keyed_job(kind, tmp_path, log, spec=replace(UPSERT, mode="append")))
    log.write(some_records(5))
    with pytest.raises(ForeignTableError, match=r"every record \(mode: append\).* new table"):
        run(keyed_job(kind, tmp_path, log))


def test_a_topic_made_anew_is_refused(kind: str, tmp_path: Path) -> None:
    log = KeyedLog(some_records(20))
    run(keyed_job(kind, tmp_path, log))
    log.topic_id = UUID(int=99)
    with pytest.raises(ForeignTableError, match="cannot continue with a topic that was recreated"):
        run(keyed_job(kind, tmp_path, log, new_incarnation=True))


def test_a_table_may_begin_at_the_end_of_the_log(kind: str, tmp_path: Path) -> None:
    log = KeyedLog([Record(0, b"a", value(1), 5)])
    run(keyed_job(kind, tmp_path, log, start="latest"))
    log.write([Record(0, b"b", value(2), 6)])
    run(keyed_job(kind, tmp_path, log, start="latest"))
    assert list(rows_of_table(read_table(kind, tmp_path))) == [b"b"]


def test_files_that_something_else_put_together_are_refused(kind: str, tmp_path: Path) -> None:
    """Rows of several buckets in one file: nothing is taken for what it is not."""
    log = KeyedLog(some_records(40))
    run(keyed_job(kind, tmp_path, log))
    sink = open_sink(kind, tmp_path)
    view = sink.view()
    assert view.progress is not None
    assert view.schema is not None
    path = sink.store.scratch_path(f"{sink.folder}merged.parquet")
    pq.write_table(read_table(kind, tmp_path).cast(view.schema), path)
    size = sink.store.publish(path, f"{sink.folder}merged.parquet")
    merged = DataFile(f"{sink.folder}merged.parquet", size, 1, -1, 0, 40, 0, 0)
    sink.commit(view, view.schema, [merged], view.progress, sink.keys(view))
    log.write(some_records(5))
    with pytest.raises(ForeignTableError, match=r"merged.parquet is no file of a key bucket"):
        run(keyed_job(kind, tmp_path, log))


def test_rows_deleted_beside_their_files_are_not_brought_back(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By delete files or deletion vectors, which neither library here can write itself."""
    log = KeyedLog(some_records(40))
    run(keyed_job(kind, tmp_path, log))
    before = read_table(kind, tmp_path)
    cls = type(open_sink(kind, tmp_path))
    files = cls.files

    def with_deletions(sink: Any, view: TableView) -> Any:
        return [file._replace(sealed="rows of it are deleted") for file in files(sink, view)]

    monkeypatch.setattr(cls, "files", with_deletions)
    log.write(some_records(5))
    with pytest.raises(ForeignTableError, match="rows of it are deleted, by something else"):
        run(keyed_job(kind, tmp_path, log))
    assert read_table(kind, tmp_path).equals(before)


def test_a_state_that_is_lost_ends_the_job(kind: str, tmp_path: Path) -> None:
    log = KeyedLog(some_records(20))
    run(keyed_job(kind, tmp_path, log))
    store = open_sink(kind, tmp_path).store
    store.delete([file.key for file in store.list("_varve/keyed/")])
    log.write(some_records(5))
    with pytest.raises(ForeignTableError, match="rows that were deleted might come back"):
        run(keyed_job(kind, tmp_path, log))


def test_old_states_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "STATES_KEPT", 3)
    log = KeyedLog()
    for n in range(8):
        log.write([Record(0, b"k%d" % n, None, n), Record(0, b"live", value(n), n)])
        run(keyed_job("parquet", tmp_path, log))
    store = open_sink("parquet", tmp_path).store
    states = [f.key for f in store.list("_varve/keyed/") if f.key.endswith(".json")]
    assert len(states) == 4
    assert list(rows_of_table(read_table("parquet", tmp_path))) == [b"live"]
    # An older record of a deleted key by another partition, after all that.
    log.write([Record(1, b"k0", value(77), -5)])
    run(keyed_job("parquet", tmp_path, log))
    assert rows_of_table(read_table("parquet", tmp_path)) == oracle(log)
    assert b"k0" not in rows_of_table(read_table("parquet", tmp_path))


def test_a_batch_says_what_it_changed(tmp_path: Path) -> None:
    log = KeyedLog([Record(0, b"a", value(1), 1), Record(0, b"b", value(1), 2)])
    job = keyed_job("parquet", tmp_path, log)
    first = job.step()
    assert first is not None
    assert (first.rows, first.upserted, first.deleted) == (2, 2, 0)
    log.write([Record(0, b"a", value(2), 3), Record(0, b"a", None, 4), Record(0, b"c", None, 5)])
    second = job.step()
    assert second is not None
    assert (second.rows, second.upserted, second.deleted) == (3, 0, 1)


def test_two_jobs_at_once_make_one_table(kind: str, tmp_path: Path) -> None:
    """One makes the batch while the other's tasks run: a zombie."""
    log = KeyedLog(some_records(90))

    class Overtaken(LocalRunner):
        batches = 3

        @override
        def map(self, work: Callable[[T], R], items: Sequence[T]) -> Sequence[R]:
            other = keyed_job(kind, tmp_path, log)
            while self.batches:
                self.batches -= 1
                other.step()
            return super().map(work, items)

    run(keyed_job(kind, tmp_path, log, runner=Overtaken(log.read)))
    assert rows_of_table(read_table(kind, tmp_path)) == oracle(log)


# -- the quarantine, and the log again -------------------------------------------------------------


def replay(kind: str, root: Path, job: LakeJob, spec: ConverterSpec) -> Replayed:
    sink, bad = open_sink(kind, root), open_sink(kind, root, name="orders_quarantine")

    def task_spec(converter: ConverterSpec) -> TaskSpec:
        return TaskSpec(
            TableTarget(OpenDirectory(sink.store.uri), sink.folder, WriterOptions()),
            TableTarget(OpenDirectory(bad.store.uri), bad.folder, WriterOptions()),
            converter,
            BUCKETS,
        )

    return Replay(sink, bad, FixedColumns(spec), task_spec, job.keyed).run()


WIDE = pa.schema([pa.field("id", pa.string()), pa.field("name", pa.string())])


def test_a_replay_never_replaces_newer_rows(kind: str, tmp_path: Path) -> None:
    """Nor does it bring a row back that was deleted since; older rows it replaces."""
    limited = replace(UPSERT, value=replace(UPSERT.value, max_value_bytes=40))
    long = json.dumps({"id": 9, "name": "n9"}).encode() + b" " * 30
    log = KeyedLog(
        [
            Record(0, b"older", value(1), 50),
            Record(0, b"newer", long, 10),
            Record(0, b"older", long, 11),
            Record(0, b"gone", long, 12),
            Record(0, b"alone", long, 13),
            Record(0, b"newer", value(2), 14),
            Record(0, b"gone", None, 15),
        ]
    )
    run(keyed_job(kind, tmp_path, log, spec=limited))
    found = rows_of_table(read_table(kind, tmp_path))
    assert {key: place for key, (place, _) in found.items()} == {b"older": (0, 0), b"newer": (0, 5)}
    job = keyed_job(kind, tmp_path, log)
    assert replay(kind, tmp_path, job, UPSERT).left == 0
    expected = {b"older": (0, 2), b"newer": (0, 5), b"alone": (0, 4)}
    found = rows_of_table(read_table(kind, tmp_path))
    assert {key: place for key, (place, _) in found.items()} == expected
    assert read_table(kind, tmp_path, "orders_quarantine").num_rows == 0
    log.write([Record(0, b"alone", value(3), 16)])
    assert run(job) == 1
    assert rows_of_table(read_table(kind, tmp_path))[b"alone"][0] == (0, 7)


def reconciled(kind: str, root: Path, log: KeyedLog) -> ReconciledKeys:
    sink, bad = open_sink(kind, root), open_sink(kind, root, name="orders_quarantine")
    progress = sink.view().progress
    assert progress is not None
    scratch = open_directory(f"{root}/scratch")
    found = KeyedReconciler(log, sink, bad, FixedColumns(UPSERT), log.read, scratch)
    return found.run(log.view(), progress)


def test_a_table_is_what_its_log_says(kind: str, tmp_path: Path) -> None:
    log = KeyedLog(some_records(150))
    run(keyed_job(kind, tmp_path, log))
    found = reconciled(kind, tmp_path, log)
    assert found.equal
    assert sum(one.log_rows for one in found.buckets) == len(oracle(log))
    # What the log has no more is counted, and is no difference.
    log.partitions = {n: (end // 2, end) for n, (_, end) in log.partitions.items()}
    assert reconciled(kind, tmp_path, log).equal


def test_rows_compare_alike_however_they_are_cut_into_batches(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bucket of the table comes in blocks of one file, the log's fold as its merge gives it."""
    log = KeyedLog(some_records(150, keys=60))
    run(keyed_job(kind, tmp_path, log))
    one_by_one = partial(stored_rows, block_bytes=1)
    monkeypatch.setattr(keyed_reconcile, "stored_rows", one_by_one)
    found = reconciled(kind, tmp_path, log)
    assert max(one.table_rows for one in found.buckets) > 5
    assert found.equal


def test_a_row_that_is_not_the_logs_differs(tmp_path: Path) -> None:
    log = KeyedLog(some_records(60))
    run(keyed_job("parquet", tmp_path, log))
    log.records[0][-1] = Record(0, log.records[0][-1].key, value(999), 9999)
    found = reconciled("parquet", tmp_path, log)
    assert not found.equal
    assert sum(bool(one.differs) for one in found.buckets) == 1


records = st.lists(
    st.builds(
        Record,
        st.integers(0, 2),
        st.sampled_from([b"", b"a", b"b", b"ab", b"\xff\x00", b"c", None]),
        st.one_of(st.none(), st.integers(0, 9).map(value), st.just(b"{no json")),
        st.integers(-1, 30),
    ),
    max_size=60,
)


@settings(examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records, st.lists(st.integers(0, 60), max_size=3), st.integers(100, 3000))
def test_any_log_cut_anywhere_is_its_fold(
    some: Sequence[Record], cuts: Sequence[int], max_bytes: int
) -> None:
    """Keys in several partitions, times that go back, records that come late: one order."""
    with tempfile.TemporaryDirectory() as root:
        log = KeyedLog()
        for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(some)], strict=True):
            log.write(some[start:end])
            if log.partitions:
                run(keyed_job("parquet", Path(root), log, max_bytes=max_bytes))
        assert rows_of_table(read_table("parquet", Path(root))) == oracle(log)
