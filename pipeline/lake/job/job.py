"""A lake job: keeps a table behind a topic, each offset once, whatever dies in between.

    view the table      its offsets, from its own commits
    view the log        where it begins and ends
    plan                the next ranges; the plan is stored, or found and repeated
    work                tasks write files, none of which is in the table yet. By key: tasks write
                        sorted runs, and then a task a bucket merges them with its files
    quarantine          records that do not fit are committed first, with offsets of their own
    commit              files and new offsets, in one step that fails if another commit came first

                 +--> conflict: nothing was done, view again
    VIEW -> PLAN -> WORK -> QUARANTINE -> COMMIT -> VIEW ...
      ^                                      |
      +-- any failure: view again, repeat the same plan

Killed at any point, the next run finds the offsets of the last commit and the stored plan, and
makes the same files again. Two jobs at once follow the same plan; one of them commits.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from pipeline.lake.batch.batch_plan import BatchPlan, TaskRange
from pipeline.lake.batch.first_offsets import FirstOffsets
from pipeline.lake.batch.log_view import LogSource, TopicView
from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import CommitConflictError, ForeignTableError
from pipeline.lake.files.data_file import FileNames
from pipeline.lake.job.leftovers import clean_up
from pipeline.lake.job.opening import TableOpener
from pipeline.lake.job.planning import BatchPlanner
from pipeline.lake.job.quarantine_commit import BatchQuarantine
from pipeline.lake.keyed.table import KeyedTable, TableChange, plan_digest
from pipeline.lake.runs.run_file import runs_folder
from pipeline.lake.schemas.spec import ConverterSpec
from pipeline.lake.sinks.base import Sink, TableView
from pipeline.lake.values.converter import Converter
from pipeline.lake.work.job_parts import Columns, JobSettings, Runner
from pipeline.lake.work.task import Task, TaskResult, TaskSpec, results_of
from pipeline.plan.piece import Piece
from storage.environment.clock import Clock
from storage.environment.randomness import Randomness

LOGGER = logging.getLogger(__name__)

CONFLICTS_MAX: Final = 20
"""In a row, without a look that finds the table further: then something else is wrong."""

EVOLUTIONS_MAX: Final = 10
"""Of the columns, for one batch."""


class Batch(NamedTuple):
    """Result of one batch.

    Attributes:
        progress: The table's, behind it.
        rows, quarantined: Records of either kind; in a table by key they may be of one row.
        files: New ones.
        read_bytes: Of keys and values.
        work_ms, commit_ms: What it took.
        upserted, deleted: Rows, in a table by key.
    """

    progress: Progress
    rows: int
    quarantined: int
    files: int
    read_bytes: int
    work_ms: float
    commit_ms: float
    upserted: int = 0
    deleted: int = 0


class LakeJob:
    """See the module. One at a time calls `step`.

    Attributes:
        keyed: The table as one by key; None: it has every record.
    """

    def __init__(
        self,
        settings: JobSettings,
        source: LogSource,
        sink: Sink,
        quarantine: Sink | None,
        task_spec: Callable[[ConverterSpec], TaskSpec],
        columns: Columns,
        runner: Runner,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        """Makes no request yet.

        Args:
            settings: See there.
            source: The log.
            sink: The table.
            quarantine: The table of records that do not fit; None: there is none.
            task_spec: From a converter's spec to what tasks need; called once the table is there.
            columns: Of the table.
            runner: Runs tasks.
            clock: For durations.
            randomness: Names attempts that must not share files.
        """
        first = FirstOffsets(settings.start, source, fail_on_data_loss=settings.fail_on_data_loss)
        self._source = source
        self._sink = sink
        self._quarantine = BatchQuarantine(quarantine)
        self._task_spec = task_spec
        self._columns = columns
        self._runner = runner
        self._clock = clock
        self.keyed = None
        if settings.mode != "append":
            self.keyed = KeyedTable(sink, runner, settings.mode, settings.buckets)
        self._opener = TableOpener(
            settings, source, sink, self._quarantine, columns, first, self.keyed
        )
        self._planner = BatchPlanner(settings, source, sink, first, randomness)
        self._evolved: ConverterSpec | None = None

    def view(self) -> tuple[TopicView, Progress | None]:
        """The log and what the table has of it; changes nothing.

        Raises:
            ForeignTableError: The table is of another topic.
            TopicReplacedError: They are of two incarnations, and `new_incarnation` is not set.
        """
        return self._opener.view()

    def next_tasks(self, topic: TopicView, progress: Progress | None) -> tuple[TaskRange, ...]:
        """Tasks of the next batch, where no plan is stored.

        Raises:
            LostOffsetsError, LogBehindTableError: The log does not continue the table.
        """
        return self._planner.next_tasks(topic, progress)

    def step(self) -> Batch | None:
        """Make one batch; None: the table has all that the log has.

        Raises:
            JobStopError: A person has to decide.
            TableUnavailableError, TaskFailedError: Worth another try.
        """
        for _ in range(CONFLICTS_MAX):
            try:
                return self._attempt()
            except CommitConflictError as error:
                # Ours may be in the table now, or another job's: the next view says which.
                LOGGER.info("%s; planning the batch again", error)
        raise ForeignTableError(
            f"{self._sink.name}: {CONFLICTS_MAX} commits in a row were overtaken by others"
        )

    def _attempt(self) -> Batch | None:
        began_ms = self._clock.monotonic_ms()
        opened = self._opener.open(self._evolved)
        if opened is None:
            return None
        view, progress, topic, spec = opened
        for _ in range(EVOLUTIONS_MAX):
            plan = self._planner.plan(topic, progress, spec)
            if plan is None:
                return None
            put_aside = self._quarantine.view(plan)
            results = self._work(topic, plan, spec, put_aside.skipped)
            result = results_of(results)
            if not result.behind:
                break
            spec = self._evolved = self._columns.evolved(spec, result.behind)
        else:
            raise ForeignTableError(
                f"{self._sink.name}: its columns still do not hold the records after several "
                "schema changes"
            )
        if self.keyed is None:
            change = TableChange(result.files, (), None, progress.advanced(plan.ends()), 0, 0)
        else:
            target = self._task_spec(spec).rows
            change = self.keyed.merge(view, plan, results, spec, target)
        worked_ms = self._clock.monotonic_ms()
        put_aside.commit(plan, result.quarantine_files)
        if put_aside.batch is not None:
            advanced = change.progress._replace(quarantine=put_aside.batch)
            change = change._replace(progress=advanced)
        self._commit(view, Converter(spec).row_schema, change)
        committed_ms = self._clock.monotonic_ms()
        clean_up(self._sink, plan, change.progress)
        return Batch(
            change.progress,
            result.rows,
            result.quarantined,
            len(change.files),
            result.read_bytes,
            worked_ms - began_ms,
            committed_ms - worked_ms,
            change.upserted,
            change.deleted,
        )

    def _commit(self, view: TableView, schema: pa.Schema, change: TableChange) -> None:
        """Commit; retried where the table was changed but not its offsets (compaction)."""
        for _ in range(CONFLICTS_MAX):
            try:
                self._sink.commit(view, schema, change.files, change.progress, change.remove)
            except CommitConflictError:
                again = self._sink.view()
                if again.progress != view.progress:
                    raise
                if change.keys is not None and change.keys != frozenset(self._sink.keys(again)):
                    # The merged files are no longer the table's: the whole batch is done again.
                    raise
                view = again
            else:
                return
        raise CommitConflictError(f"{self._sink.name} is changed all the time by another writer")

    def _work(
        self,
        topic: TopicView,
        plan: BatchPlan,
        spec: ConverterSpec,
        skipped: Mapping[TaskRange, tuple[int, ...]],
    ) -> Sequence[TaskResult]:
        found = self._source.pieces(plan.tasks)
        tasks = [
            self._task(topic, plan, one, pieces, skipped.get(one, ()))
            for one, pieces in zip(plan.tasks, found, strict=True)
        ]
        return self._runner.run(tasks, self._task_spec(spec))

    def _task(
        self,
        topic: TopicView,
        plan: BatchPlan,
        one: TaskRange,
        pieces: tuple[Piece, ...],
        skipped: tuple[int, ...],
    ) -> Task:
        names = FileNames(
            self._sink.folder,
            topic.topic,
            topic.topic_id,
            one.partition,
            one.start,
            one.end,
            plan.fingerprint,
        )
        runs = ""
        if self.keyed is not None:
            topic_id_start = topic.topic_id.hex[:8]
            runs = runs_folder(topic_id_start, plan.base.batch + 1, plan_digest(plan))
        put_aside = names._replace(folder=self._quarantine.folder)
        return Task(names, put_aside, pieces, skipped, runs)
