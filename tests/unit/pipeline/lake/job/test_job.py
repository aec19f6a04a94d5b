"""Lake jobs on made-up logs: each offset once, whatever fails between the steps."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typing_extensions import override

from pipeline.lake.batch.batch_plan import FOLDER, TaskRange
from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import (
    CommitConflictError,
    ForeignTableError,
    LogBehindTableError,
    LostOffsetsError,
    TableUnavailableError,
    TopicReplacedError,
)
from pipeline.lake.files.data_file import DataFile
from pipeline.lake.job.job import CONFLICTS_MAX
from pipeline.lake.schemas.spec import ConverterSpec, FieldSpec
from pipeline.lake.settings.start import StartTimes
from pipeline.lake.sinks.base import Sink, TableFile, TableView
from pipeline.lake.stores.table_store import TableStore
from pipeline.lake.work.local_runner import LocalRunner
from pipeline.lake.work.task import QuarantinedError, ReadPiece, Task, TaskResult, TaskSpec
from pipeline.plan.piece import Piece
from tests.fakes.lake.jobs import SPEC, lake_job, run
from tests.fakes.lake.numbers_log import HOUR_MS, FakeLog, is_bad, read_rows, rows_of
from tests.fakes.lake.tables import KINDS, coordinates, open_directory, open_sink, read_table

LOG = {0: (0, 60), 1: (5, 33)}
OTHER_ID = UUID(int=99)

GOOD = [one for one in rows_of(LOG) if not is_bad(one[1])]
BAD = [one for one in rows_of(LOG) if is_bad(one[1])]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def check(kind: str, root: Path) -> None:
    """Every record is once in one of the two tables."""
    assert coordinates(read_table(kind, root)) == GOOD
    assert coordinates(read_table(kind, root, "orders_quarantine")) == BAD


def test_a_table_gets_every_record_once(kind: str, tmp_path: Path) -> None:
    """From the log start on; those that do not fit are in the quarantine with their reason."""
    job = lake_job(kind, tmp_path, FakeLog(LOG))
    assert run(job) == 4
    check(kind, tmp_path)
    ids = read_table(kind, tmp_path).column("id").to_pylist()
    assert sorted(ids) == sorted(offset for _, offset in GOOD)
    reasons = read_table(kind, tmp_path, "orders_quarantine").column("reason").to_pylist()
    assert all(reasons)


def test_a_parted_table_gets_every_record_once(kind: str, tmp_path: Path) -> None:
    run(lake_job(kind, tmp_path, FakeLog(LOG), partition_by=["day(timestamp)"]))
    check(kind, tmp_path)


def test_a_job_goes_on_where_the_table_is(kind: str, tmp_path: Path) -> None:
    """By the table alone: there is no other memory."""
    log = FakeLog({0: (0, 20), 1: (5, 9)})
    run(lake_job(kind, tmp_path, log))
    log.partitions = dict(LOG)
    assert run(lake_job(kind, tmp_path, log)) == 3
    check(kind, tmp_path)
    assert run(lake_job(kind, tmp_path, log)) == 0


def test_retention_behind_the_table_loses_nothing(tmp_path: Path) -> None:
    log = FakeLog({0: (0, 20)})
    run(lake_job("parquet", tmp_path, log))
    log.partitions = {0: (15, 40)}
    run(lake_job("parquet", tmp_path, log))
    rows = [one for one in rows_of({0: (0, 40)}) if not is_bad(one[1])]
    assert coordinates(read_table("parquet", tmp_path)) == rows


def test_offsets_that_are_gone_stop_the_job(tmp_path: Path) -> None:
    """Unless it is told to go on; then it says what it left out."""
    log = FakeLog({0: (0, 20)})
    run(lake_job("parquet", tmp_path, log))
    log.partitions = {0: (30, 40)}
    with pytest.raises(LostOffsetsError, match="offsets 20 to 29"):
        lake_job("parquet", tmp_path, log).step()
    run(lake_job("parquet", tmp_path, log, fail_on_data_loss=False))
    rows = [*rows_of({0: (0, 20)}), *rows_of({0: (30, 40)})]
    found = coordinates(read_table("parquet", tmp_path))
    assert found == [one for one in rows if not is_bad(one[1])]


def test_a_gap_in_the_log_stops_the_job(tmp_path: Path) -> None:
    log = FakeLog({0: (0, 40)}, gaps={0: [(12, 17)]})
    with pytest.raises(LostOffsetsError, match="offsets 12 to 16"):
        lake_job("parquet", tmp_path, log).step()
    run(lake_job("parquet", tmp_path, log, fail_on_data_loss=False))
    rows = [*rows_of({0: (0, 12)}), *rows_of({0: (17, 40)})]
    found = coordinates(read_table("parquet", tmp_path))
    assert found == [one for one in rows if not is_bad(one[1])]


def test_a_log_that_ends_below_the_table_stops_the_job(tmp_path: Path) -> None:
    """After a restore these offsets will be other records."""
    log = FakeLog({0: (0, 20)})
    run(lake_job("parquet", tmp_path, log))
    log.partitions = {0: (0, 15)}
    with pytest.raises(LogBehindTableError, match="ends at offset 15"):
        lake_job("parquet", tmp_path, log, fail_on_data_loss=False).step()


def test_a_topic_made_anew_stops_the_job_until_it_is_told(kind: str, tmp_path: Path) -> None:
    run(lake_job(kind, tmp_path, FakeLog({0: (0, 20)})))
    anew = FakeLog({0: (0, 8)}, topic_id=OTHER_ID)
    with pytest.raises(TopicReplacedError, match="--new-incarnation"):
        lake_job(kind, tmp_path, anew).step()
    run(lake_job(kind, tmp_path, anew, new_incarnation=True))
    rows = sorted(rows_of({0: (0, 20)}) + rows_of({0: (0, 8)}))
    found = coordinates(read_table(kind, tmp_path))
    assert found == [one for one in rows if not is_bad(one[1])]
    bad = coordinates(read_table(kind, tmp_path, "orders_quarantine"))
    assert bad == [one for one in rows if is_bad(one[1])]
    assert run(lake_job(kind, tmp_path, anew)) == 0


def test_another_topic_is_refused(tmp_path: Path) -> None:
    run(lake_job("parquet", tmp_path, FakeLog({0: (0, 5)})))
    with pytest.raises(ForeignTableError, match="holds the topic orders"):
        lake_job("parquet", tmp_path, FakeLog({0: (0, 5)}, topic="other")).step()


def test_a_table_may_begin_at_offsets(kind: str, tmp_path: Path) -> None:
    """A partition that is not named begins at its start."""
    log = FakeLog({0: (0, 20), 1: (5, 20)})
    run(lake_job(kind, tmp_path, log, start={0: 12}))
    found = coordinates(read_table(kind, tmp_path))
    rows = rows_of({0: (12, 20), 1: (5, 20)})
    assert found == [one for one in rows if not is_bad(one[1])]


def test_a_table_may_begin_at_a_time(kind: str, tmp_path: Path) -> None:
    """Once: what is older stays out, also of later runs and with other settings."""
    log = FakeLog({0: (0, 20), 1: (5, 20)})
    run(lake_job(kind, tmp_path, log, start=StartTimes(12 * HOUR_MS, {1: 7 * HOUR_MS})))
    log.partitions = {0: (0, 30), 1: (5, 20), 2: (0, 4)}
    run(lake_job(kind, tmp_path, log))
    found = coordinates(read_table(kind, tmp_path))
    rows = rows_of({0: (12, 30), 1: (7, 20), 2: (0, 4)})
    assert found == [one for one in rows if not is_bad(one[1])]


def test_a_table_may_begin_at_the_end(kind: str, tmp_path: Path) -> None:
    """At what was the end when the job was first run, not at each of its looks."""
    log = FakeLog({0: (0, 20), 1: (5, 20)})
    assert lake_job(kind, tmp_path, log, start="latest").step() is None
    log.partitions = {0: (0, 30), 1: (5, 20), 2: (0, 10)}
    run(lake_job(kind, tmp_path, log, start="latest"))
    found = coordinates(read_table(kind, tmp_path))
    rows = rows_of({0: (20, 30), 2: (0, 10)})
    assert found == [one for one in rows if not is_bad(one[1])]


def test_the_end_of_an_empty_log_is_remembered(tmp_path: Path) -> None:
    """What comes first is not skipped by the next look."""
    log = FakeLog({0: (0, 0)})
    job = lake_job("parquet", tmp_path, log, start="latest")
    assert job.step() is None
    log.partitions = {0: (0, 8)}
    run(job)
    found = coordinates(read_table("parquet", tmp_path))
    assert found == [one for one in rows_of({0: (0, 8)}) if not is_bad(one[1])]


def test_a_record_that_does_not_fit_may_end_the_job(tmp_path: Path) -> None:
    job = lake_job("parquet", tmp_path, FakeLog(LOG), quarantine=False)
    with pytest.raises(QuarantinedError, match=r"orders-0 at offset 3: .*errors\.quarantine"):
        job.step()
    assert coordinates(read_table("parquet", tmp_path)) == []


def test_an_empty_log_makes_no_table(kind: str, tmp_path: Path) -> None:
    """There is nothing to infer columns from."""
    assert lake_job(kind, tmp_path, FakeLog({0: (7, 7)})).step() is None
    assert open_sink(kind, tmp_path).view().schema is None


# -- failures between the steps --------------------------------------------------------------------


class Faulty:
    """A sink that fails at one of its calls, before or behind doing it."""

    def __init__(self, sink: Sink, call: str, *, after: bool, error: Exception) -> None:
        self.sink = sink
        self.call = call
        self.after = after
        self.error: Exception | None = error
        self.name = sink.name
        self.folder = sink.folder
        self.keeps_partition_columns = sink.keeps_partition_columns

    @property
    def store(self) -> TableStore:
        return self.sink.store

    def _fail(self, call: str, *, after: bool) -> None:
        if self.error is not None and (call, after) == (self.call, self.after):
            error, self.error = self.error, None
            raise error

    def view(self) -> TableView:
        return self.sink.view()

    def check(self, view: TableView) -> None:
        self.sink.check(view)

    def keys(self, view: TableView) -> Sequence[str]:
        return self.sink.keys(view)

    def files(self, view: TableView) -> Sequence[TableFile]:
        return self.sink.files(view)

    def replace(self, view: TableView, files: Sequence[DataFile], remove: Sequence[str]) -> None:
        self.sink.replace(view, files, remove)

    def create(self, schema: pa.Schema, progress: Progress) -> None:
        self._fail("create", after=False)
        self.sink.create(schema, progress)
        self._fail("create", after=True)

    def commit(
        self,
        view: TableView,
        schema: pa.Schema,
        files: Sequence[DataFile],
        progress: Progress,
        remove: Sequence[str] = (),
    ) -> None:
        self._fail("commit", after=False)
        self.sink.commit(view, schema, files, progress, remove)
        self._fail("commit", after=True)


@pytest.mark.parametrize("call", ["create", "commit"])
@pytest.mark.parametrize("after", [False, True])
def test_an_answer_that_got_lost_doubles_nothing(
    kind: str, tmp_path: Path, call: str, after: bool
) -> None:
    """Whether it was done is looked up, not guessed."""
    away = TableUnavailableError("the answer did not come")

    def wrap(sink: Sink) -> Sink:
        return Faulty(sink, call, after=after, error=away)

    job = lake_job(kind, tmp_path, FakeLog(LOG), wrap=wrap)
    with pytest.raises(TableUnavailableError):
        run(job)
    run(job)
    check(kind, tmp_path)


def test_a_conflict_is_looked_at_again(kind: str, tmp_path: Path) -> None:
    def wrap(sink: Sink) -> Sink:
        return Faulty(sink, "commit", after=True, error=CommitConflictError("overtaken"))

    run(lake_job(kind, tmp_path, FakeLog(LOG), wrap=wrap))
    check(kind, tmp_path)


class Overtaken(LocalRunner):
    """While its first tasks run, another job makes the same batch, or all of them."""

    def __init__(
        self,
        kind: str,
        root: Path,
        batches: int,
        read_piece: ReadPiece = read_rows,
        *,
        fail_on_data_loss: bool = True,
    ) -> None:
        super().__init__(read_piece)
        self.kind, self.root, self.batches = kind, root, batches
        self.fail_on_data_loss = fail_on_data_loss

    @override
    def run(self, tasks: Sequence[Task], spec: TaskSpec) -> Sequence[TaskResult]:
        other = lake_job(
            self.kind, self.root, FakeLog(LOG), fail_on_data_loss=self.fail_on_data_loss
        )
        for _ in range(self.batches):
            other.step()
        self.batches = 0
        return super().run(tasks, spec)


@pytest.mark.parametrize("batches", [1, 2, 10])
def test_two_jobs_at_once_make_one_table(kind: str, tmp_path: Path, batches: int) -> None:
    """One of them woke up behind the other: a zombie."""
    run(lake_job(kind, tmp_path, FakeLog(LOG), runner=Overtaken(kind, tmp_path, batches)))
    check(kind, tmp_path)


def lossy(piece: Piece) -> Iterator[pa.RecordBatch]:
    """Half of the rows cannot be read any more, and are left out."""
    for batch in read_rows(piece):
        yield batch.slice(batch.num_rows // 2)


def test_who_finds_fewer_rows_overwrites_nobodys_files(kind: str, tmp_path: Path) -> None:
    """With `fail_on_data_loss: false` the same tasks may give other rows the second time."""
    late = Overtaken(kind, tmp_path, 10, lossy, fail_on_data_loss=False)
    run(lake_job(kind, tmp_path, FakeLog(LOG), runner=late, fail_on_data_loss=False))
    check(kind, tmp_path)


class Compacting(LocalRunner):
    """While tasks run, somebody changes the table and not its offsets."""

    def __init__(self, sink: Sink) -> None:
        super().__init__(read_rows)
        self.sink = sink
        self.runs = 0

    @override
    def run(self, tasks: Sequence[Task], spec: TaskSpec) -> Sequence[TaskResult]:
        view = self.sink.view()
        assert view.schema is not None
        assert view.progress is not None
        self.sink.commit(view, view.schema, (), view.progress)
        self.runs += 1
        return super().run(tasks, spec)


def test_the_work_is_not_repeated_when_only_files_changed(kind: str, tmp_path: Path) -> None:
    """Compaction yields to the job, and costs it a look."""
    runner = Compacting(open_sink(kind, tmp_path))
    assert run(lake_job(kind, tmp_path, FakeLog(LOG), runner=runner)) == runner.runs == 4
    check(kind, tmp_path)


class Dying(LocalRunner):
    """Dies when so many tasks are done, as a driver that is killed: its files stay behind."""

    def __init__(self, tasks: int) -> None:
        super().__init__(read_rows)
        self.left = tasks

    @override
    def run(self, tasks: Sequence[Task], spec: TaskSpec) -> Sequence[TaskResult]:
        results: list[TaskResult] = []
        for task in tasks:
            if self.left == 0:
                raise KeyboardInterrupt
            self.left -= 1
            results.extend(super().run([task], spec))
        return results


def test_a_repeated_batch_overwrites_its_own_files(kind: str, tmp_path: Path) -> None:
    """Also where the log has grown meanwhile: the stored plan is followed, not a new one."""
    log = FakeLog({0: (0, 20), 1: (5, 9)})
    with pytest.raises(KeyboardInterrupt):
        run(lake_job(kind, tmp_path, log, runner=Dying(2)))
    left = sorted(tmp_path.rglob("part-*.parquet"))
    assert left
    log.partitions = dict(LOG)
    run(lake_job(kind, tmp_path, log))
    check(kind, tmp_path)
    store = open_sink(kind, tmp_path).store
    found = [file.key for file in store.list("") if file.key.endswith(".parquet")]
    sink = open_sink(kind, tmp_path)
    assert sorted(found) == sorted(sink.keys(sink.view()))
    assert not list(store.list(FOLDER))


class KilledBeforeCommit(Faulty):
    """The quarantine is committed, the rows are not."""

    def __init__(self, sink: Sink) -> None:
        super().__init__(sink, "commit", after=False, error=KeyboardInterrupt())  # type: ignore[arg-type]  # as a signal


def test_a_quarantine_that_was_committed_is_not_committed_again(kind: str, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(lake_job(kind, tmp_path, FakeLog(LOG), wrap=KilledBeforeCommit))
    assert coordinates(read_table(kind, tmp_path)) == []
    assert coordinates(read_table(kind, tmp_path, "orders_quarantine")) != []
    run(lake_job(kind, tmp_path, FakeLog(LOG)))
    check(kind, tmp_path)


def test_what_the_quarantine_has_stays_there_under_other_settings(
    kind: str, tmp_path: Path
) -> None:
    """Somebody mends the settings between the kill and the next run: still one row per offset."""
    with pytest.raises(KeyboardInterrupt):
        run(lake_job(kind, tmp_path, FakeLog(LOG), wrap=KilledBeforeCommit))
    first = coordinates(read_table(kind, tmp_path, "orders_quarantine"))
    lenient = ConverterSpec(FieldSpec("json", fields=SPEC.value.fields), FieldSpec("string"))
    run(lake_job(kind, tmp_path, FakeLog(LOG), spec=lenient, facts={"settings": "others"}))
    check(kind, tmp_path)
    assert set(first) <= set(coordinates(read_table(kind, tmp_path, "orders_quarantine")))


def test_files_of_a_plan_that_was_put_aside_go(tmp_path: Path) -> None:
    """Who reads the folder would see their rows beside the table's."""
    with pytest.raises(KeyboardInterrupt):
        run(lake_job("parquet", tmp_path, FakeLog(LOG), wrap=KilledBeforeCommit))
    before = set(tmp_path.glob("orders/part-*.parquet"))
    assert before
    run(lake_job("parquet", tmp_path, FakeLog(LOG), facts={"settings": "others"}))
    assert not before & set(tmp_path.glob("orders/part-*.parquet"))
    files = [pq.read_table(path) for path in (tmp_path / "orders").glob("part-*.parquet")]
    assert coordinates(pa.concat_tables(files)) == GOOD
    check("parquet", tmp_path)


def test_a_batch_that_was_committed_while_it_was_planned_is_not_worked_again(
    tmp_path: Path,
) -> None:
    """By a job that slept: its plan may have other ranges, so its files other names."""
    lake_job("parquet", tmp_path, FakeLog(LOG)).step()
    slept: list[int] = []

    def sleep(call: str, behind: bool) -> None:
        if call == "put_if_absent" and not behind and not slept:
            slept.append(1)
            run(lake_job("parquet", tmp_path, FakeLog(LOG), max_bytes=1 << 30))

    run(lake_job("parquet", tmp_path, FakeLog(LOG), hook=sleep))
    assert slept
    files = [pq.read_table(path) for path in (tmp_path / "orders").glob("part-*.parquet")]
    assert coordinates(pa.concat_tables(files)) == GOOD
    check("parquet", tmp_path)


def test_records_that_fit_no_more_are_not_lost(tmp_path: Path) -> None:
    """The quarantine has the batch already, and lacks those."""
    with pytest.raises(KeyboardInterrupt):
        run(lake_job("parquet", tmp_path, FakeLog(LOG), wrap=KilledBeforeCommit))
    strict = pa.schema([pa.field("id", pa.string()), pa.field("name", pa.int64())])
    other = ConverterSpec(FieldSpec("json", fields=strict), FieldSpec("raw"))
    run(lake_job("parquet", tmp_path, FakeLog(LOG), spec=other))
    rows = coordinates(read_table("parquet", tmp_path))
    bad = coordinates(read_table("parquet", tmp_path, "orders_quarantine"))
    assert sorted(rows + bad) == rows_of(LOG)


def test_a_planned_batch_that_the_log_lost_stops_the_job(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(lake_job("parquet", tmp_path, FakeLog(LOG), runner=Dying(1)))
    cut = FakeLog({0: (0, 3), 1: (5, 33)})
    with pytest.raises(ForeignTableError, match=r"planned up to offset .* Remove"):
        lake_job("parquet", tmp_path, cut).step()
    store = open_directory(str(tmp_path / "orders"))
    (plan,) = store.list(FOLDER)
    store.delete([plan.key])
    with pytest.raises(ForeignTableError, match="remove these 1 files"):
        lake_job("parquet", tmp_path, cut).step()
    store.delete([file.key for file in store.list("part-")])
    assert lake_job("parquet", tmp_path, cut).step() is not None


def test_a_commit_that_is_always_overtaken_ends(tmp_path: Path) -> None:
    class Never(Faulty):
        @override
        def _fail(self, call: str, *, after: bool) -> None:
            if call == "commit":
                raise CommitConflictError("never")

    def wrap(sink: Sink) -> Sink:
        return Never(sink, "commit", after=False, error=CommitConflictError("never"))

    counted = 0

    class Counting(LocalRunner):
        @override
        def run(self, tasks: Sequence[Task], spec: TaskSpec) -> Sequence[TaskResult]:
            nonlocal counted
            counted += 1
            return super().run(tasks, spec)

    job = lake_job("parquet", tmp_path, FakeLog(LOG), wrap=wrap, runner=Counting(read_rows))
    with pytest.raises(ForeignTableError, match="overtaken"):
        job.step()
    assert counted == CONFLICTS_MAX


def test_nothing_is_planned_without_offsets(tmp_path: Path) -> None:
    job = lake_job("parquet", tmp_path, FakeLog(LOG))
    topic, progress = job.view()
    assert progress is None
    tasks = job.next_tasks(topic, progress)
    assert tasks == (TaskRange(0, 0, 10), TaskRange(0, 10, 17), TaskRange(1, 5, 12))


def test_rows_out_of_order_are_not_committed(tmp_path: Path) -> None:
    def twice(piece: Piece) -> Iterator[pa.RecordBatch]:
        yield from read_rows(piece)
        yield from read_rows(piece)

    with pytest.raises(Exception, match="were to come"):
        run(lake_job("parquet", tmp_path, FakeLog(LOG), read_piece=twice))
    assert coordinates(read_table("parquet", tmp_path)) == []
