"""A lake job: keeps a table behind a topic, each offset once, whatever dies in between.

    look at the table   its offsets, from its own commits
    look at the log     where it begins and ends
    plan                the next ranges; the plan is stored, or found and repeated
    work                tasks write files; nothing of them is in the table
    quarantine          records that do not fit are committed first, with offsets of their own
    commit              files and new offsets, in one step that fails if anybody committed since

                 +--> conflict: nothing was done, look again
    LOOK -> PLAN -> WORK -> QUARANTINE -> COMMIT -> LOOK ...
      ^                                      |
      +-- any failure: look again, repeat the same plan

Killed at any point, the next run finds the offsets of the last commit and the stored plan, and
makes the same files again. Two jobs at once follow the same plan; one of them commits.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol
from uuid import UUID

import pyarrow as pa

from pipeline.lake.batch_plan import (
    BatchPlan,
    PlanShelf,
    Span,
    TaskRange,
    choose_tasks,
    fingerprint_of,
)
from pipeline.lake.data_file import FileNames, range_of
from pipeline.lake.errors import (
    CommitConflictError,
    ForeignTableError,
    LogBehindTableError,
    LostOffsetsError,
    TableUnavailableError,
    TopicReplacedError,
)
from pipeline.lake.progress import Progress
from pipeline.lake.sinks.base import Sink, TableView, offsets_of
from pipeline.lake.task import Task, TaskResult, TaskSpec, results_of
from pipeline.lake.values.columns import QUARANTINE_SCHEMA
from pipeline.lake.values.converter import Converter
from pipeline.lake.values.spec import ConverterSpec
from pipeline.plan.piece import Piece
from storage.clock import Clock

LOGGER = logging.getLogger(__name__)

WRITER_VERSION: Final = 1
"""Goes up when the same rows would become other bytes: part of the fingerprint."""

CONFLICTS_MAX: Final = 20
"""In a row, without a look that finds the table further: then something else is wrong."""

EVOLUTIONS_MAX: Final = 10
"""Of the columns, for one batch."""


class PartitionView(NamedTuple):
    """A partition's log now.

    Attributes:
        start: Least offset to be read.
        end: Where rows of the isolation level end, exclusive.
        spans: Offsets of [start, end) with their bytes; what is missing between them is lost.
        newest_ms: Time of the newest record that is known without reading; -1: unknown.
    """

    start: int
    end: int
    spans: tuple[Span, ...]
    newest_ms: int = -1


class TopicView(NamedTuple):
    """A topic's log now, by partition."""

    topic: str
    topic_id: UUID
    partitions: Mapping[int, PartitionView]


class LogSource(Protocol):
    """Where records come from."""

    def look(self) -> TopicView:
        """The topic now. Raises LakeError subclasses or what its store raises."""
        ...

    def aligned(self, tasks: Sequence[TaskRange]) -> Sequence[TaskRange]:
        """Tasks with the same offsets in all, cut where reading costs least."""
        ...

    def pieces(self, tasks: Sequence[TaskRange]) -> Sequence[tuple[Piece, ...]]:
        """For each range what to read, of the log as `look` found it last."""
        ...


class Runner(Protocol):
    """Runs tasks somewhere."""

    def run(self, tasks: Sequence[Task], spec: TaskSpec) -> Sequence[TaskResult]:
        """All of them; TaskFailedError when one cannot be done."""
        ...

    def close(self) -> None:
        """Give back processes."""
        ...


class Columns(Protocol):
    """Knows what the table's columns are, or have to become."""

    def spec(self, table: pa.Schema | None) -> ConverterSpec:
        """For a table of these columns; None: it is made now, from a sample if need be."""
        ...

    def evolved(self, spec: ConverterSpec, behind: frozenset[int]) -> ConverterSpec:
        """With columns for all that the schemas `behind` have."""
        ...


class JobSettings(NamedTuple):
    """What of the settings decides how a batch is made.

    Attributes:
        name: Of the job.
        start: Where partitions begin of which the table has nothing: "earliest", "latest", or
            offsets per partition (others: earliest).
        max_bytes: Of a batch, in the log.
        task_bytes: Of a task, in the log.
        fail_on_data_loss: Offsets that are gone end the job.
        new_incarnation: Go on with a topic that was made anew.
        facts: All else that decides what files are like; part of the fingerprint.
    """

    name: str
    start: str | Mapping[int, int] = "earliest"
    max_bytes: int = 4 << 30
    task_bytes: int = 128 << 20
    fail_on_data_loss: bool = True
    new_incarnation: bool = False
    facts: Mapping[str, str] = {}


class Batch(NamedTuple):
    """What one batch did."""

    progress: Progress
    rows: int
    quarantined: int
    files: int
    read_bytes: int
    work_ms: float
    commit_ms: float


class LakeJob:
    """See the module. One at a time calls `step`."""

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
    ) -> None:
        """Nothing is asked of anybody yet.

        Args:
            settings: See there.
            source: The log.
            sink: The table.
            quarantine: The table of records that do not fit; None: there is none.
            task_spec: From a converter's spec to what tasks need; called once the table is there.
            columns: Of the table.
            runner: Runs tasks.
            clock: For durations.
        """
        self._settings = settings
        self._source = source
        self._sink = sink
        self._quarantine = quarantine
        self._task_spec = task_spec
        self._columns = columns
        self._runner = runner
        self._clock = clock
        self._evolved: ConverterSpec | None = None
        self._first: tuple[UUID, Mapping[int, int]] | None = None

    # -- looking ---------------------------------------------------------------------------------

    def look(self) -> tuple[TopicView, Progress | None]:
        """The log and what the table has of it; changes nothing.

        Raises:
            TopicReplacedError: They are of two incarnations, and nobody said to go on.
        """
        view = self._sink.look()
        topic = self._source.look()
        return topic, self._continued(view, topic)

    def _continued(self, view: TableView, topic: TopicView) -> Progress | None:
        known = view.progress
        if known is None:
            return None
        if known.topic != topic.topic:
            raise ForeignTableError(
                f"{self._sink.name} holds the topic {known.topic}, not {topic.topic}"
            )
        if known.topic_id != topic.topic_id:
            if not self._settings.new_incarnation:
                raise TopicReplacedError(topic.topic, known.topic_id, topic.topic_id)
            return None
        return known

    def next_tasks(self, topic: TopicView, progress: Progress | None) -> tuple[TaskRange, ...]:
        """What the next batch would read, as far as no plan is stored.

        Raises:
            LostOffsetsError, LogBehindTableError: The log does not continue the table.
        """
        spans = {}
        offsets = {} if progress is None else progress.offsets
        for number, partition in topic.partitions.items():
            reached = offsets.get(number)
            if progress is None:
                start = self._first_offsets(topic)[number]
            else:
                start = self._start(topic, number, partition, reached)
            if wanted := _from(partition.spans, start):
                self._check_gaps(topic, number, partition, start)
                spans[number] = wanted
        return choose_tasks(
            spans, max_bytes=self._settings.max_bytes, task_bytes=self._settings.task_bytes
        )

    def _first_offsets(self, topic: TopicView) -> Mapping[int, int]:
        """Where a table begins that has nothing of the topic; what is the latest is found once."""
        if self._first is None or self._first[0] != topic.topic_id:
            start = self._settings.start
            offsets = {}
            for number, partition in topic.partitions.items():
                offsets[number] = partition.end if start == "latest" else partition.start
                if isinstance(start, Mapping):
                    wanted = start.get(number, partition.start)
                    offsets[number] = min(max(wanted, partition.start), partition.end)
            self._first = (topic.topic_id, offsets)
        first = self._first[1]
        return {n: max(first.get(n, p.start), p.start) for n, p in topic.partitions.items()}

    def _start(
        self, topic: TopicView, number: int, partition: PartitionView, reached: int | None
    ) -> int:
        if reached is None:
            # A partition that came later: whatever the job began with, of it nothing is left out.
            return partition.start
        if reached > partition.end:
            raise LogBehindTableError(topic.topic, number, partition.end, reached)
        if reached < partition.start:
            self._lost(topic, number, reached, partition.start)
            return partition.start
        return reached

    def _check_gaps(
        self, topic: TopicView, number: int, partition: PartitionView, start: int
    ) -> None:
        reached = start
        for span in (*partition.spans, Span(partition.end, partition.end, 0)):
            if span.end < start:
                continue
            if span.start > reached:
                self._lost(topic, number, reached, span.start)
            reached = max(reached, span.end)

    def _lost(self, topic: TopicView, number: int, start: int, end: int) -> None:
        error = LostOffsetsError(topic.topic, number, start, end)
        if self._settings.fail_on_data_loss:
            raise error
        LOGGER.warning("%s", error)

    # -- a batch ---------------------------------------------------------------------------------

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
                # Ours may be in the table now, or somebody else's: the next look tells.
                LOGGER.info("%s; looking again", error)
        raise ForeignTableError(
            f"{self._sink.name}: {CONFLICTS_MAX} commits in a row were overtaken by others"
        )

    def _attempt(self) -> Batch | None:
        began_ms = self._clock.monotonic_ms()
        view, topic, spec = self._opened()
        if view is None or spec is None:
            return None
        progress = view.progress
        assert progress is not None
        for _ in range(EVOLUTIONS_MAX):
            plan = self._plan(topic, progress, spec)
            if plan is None:
                return None
            quarantine, skipped = self._look_at_quarantine(plan)
            result = results_of(self._work(topic, plan, spec, skipped))
            if not result.behind:
                break
            spec = self._evolved = self._columns.evolved(spec, result.behind)
        else:
            raise ForeignTableError(f"{self._sink.name}: its columns are never enough")
        worked_ms = self._clock.monotonic_ms()
        self._commit_quarantine(quarantine, plan, result)
        after = progress.advanced(plan.ends())
        self._commit(view, Converter(spec).row_schema, result, after)
        committed_ms = self._clock.monotonic_ms()
        self._clean_up(plan)
        return Batch(
            after,
            result.rows,
            result.quarantined,
            len(result.files),
            result.read_bytes,
            worked_ms - began_ms,
            committed_ms - worked_ms,
        )

    def _commit(
        self, view: TableView, schema: pa.Schema, result: TaskResult, after: Progress
    ) -> None:
        """Commit; once more where somebody changed the table and not its offsets (compaction)."""
        for _ in range(CONFLICTS_MAX):
            try:
                self._sink.commit(view, schema, result.files, after)
            except CommitConflictError:
                again = self._sink.look()
                if again.progress != view.progress:
                    raise
                view = again
            else:
                return
        raise CommitConflictError(f"{self._sink.name} is changed all the time by somebody else")

    def _clean_up(self, plan: BatchPlan) -> None:
        """Remove plans of a batch that is committed, and files of those that are not this one.

        They can be committed no more: the table has passed their base. Who reads a folder of
        Parquet files would see their rows beside the table's.
        """
        shelf = PlanShelf(self._sink.store)
        try:
            for other in shelf.others(plan):
                self._remove_files(other)
            shelf.forget(plan.base)
        except TableUnavailableError as error:
            LOGGER.info("%s; what is left of the batch stays", error)

    def _remove_files(self, plan: BatchPlan) -> None:
        tasks = set(plan.tasks)
        topic_id_start = plan.base.topic_id.hex[:8]
        left = []
        for file in self._sink.store.list(self._sink.folder):
            named = range_of(file.key)
            if (
                named is not None
                and (named.topic_id_start, named.fingerprint) == (topic_id_start, plan.fingerprint)
                and TaskRange(named.partition, named.start, named.end) in tasks
            ):
                left.append(file.key)
        if left:
            self._sink.store.delete(left)

    def _opened(self) -> tuple[TableView | None, TopicView, ConverterSpec | None]:
        """The table, made if it is missing; None where there is nothing to make it from yet."""
        view = self._sink.look()
        topic = self._source.look()
        known = self._continued(view, topic)
        if known is None and all(p.start == p.end for p in topic.partitions.values()):
            self._first_offsets(topic)
            return None, topic, None
        spec = self._evolved or self._columns.spec(view.schema)
        if known is None:
            is_anew = view.progress is not None
            begun = Progress(self._settings.name, topic.topic, topic.topic_id, 0, {})
            self._sink.create(Converter(spec).row_schema, begun)
            view = self._sink.look()
            if view.progress is None or self._continued(view, topic) is None:
                raise CommitConflictError(f"{self._sink.name} was made by somebody else")
            if is_anew:
                self._first = (topic.topic_id, {})
        view = self._begun(view, topic, Converter(spec).row_schema)
        self._open_quarantine(topic)
        return view, topic, spec

    def _begun(self, view: TableView, topic: TopicView, schema: pa.Schema) -> TableView:
        """A table that does not begin at the log's start has that in a commit of its own."""
        progress = view.progress
        assert progress is not None
        if progress.batch or self._settings.start == "earliest":
            return view
        self._sink.commit(view, schema, (), progress.advanced(self._first_offsets(topic)))
        return self._sink.look()

    def _open_quarantine(self, topic: TopicView) -> None:
        """Made with the table, so that nobody looks for it in vain and tasks know where it is."""
        if self._quarantine is None:
            return
        known = self._quarantine.look().progress
        if known is None or known.topic_id != topic.topic_id:
            begun = Progress(self._settings.name, topic.topic, topic.topic_id, 0, {})
            self._quarantine.create(QUARANTINE_SCHEMA, begun)

    def _plan(self, topic: TopicView, progress: Progress, spec: ConverterSpec) -> BatchPlan | None:
        fingerprint = fingerprint_of(
            {
                **self._settings.facts,
                "writer": str(WRITER_VERSION),
                "pyarrow": pa.__version__,
                "converter": repr(spec),
            }
        )
        shelf = PlanShelf(self._sink.store)
        stored = shelf.find(fingerprint, progress)
        if stored is not None:
            self._check_stored(topic, stored)
            return stored
        tasks = self.next_tasks(topic, progress)
        if not tasks:
            return None
        return shelf.put(BatchPlan(fingerprint, progress, tuple(self._source.aligned(tasks))))

    def _check_stored(self, topic: TopicView, plan: BatchPlan) -> None:
        for number, end in plan.ends().items():
            partition = topic.partitions.get(number)
            if partition is None or partition.end < end:
                found = 0 if partition is None else partition.end
                raise ForeignTableError(
                    f"{topic.topic}-{number}: batch {plan.base.batch + 1} is planned up to offset "
                    f"{end}, and the log ends at {found}: it was cut or restored. Remove "
                    f"{self._sink.store.uri}/{plan.key()} to plan it again"
                )

    def _work(
        self,
        topic: TopicView,
        plan: BatchPlan,
        spec: ConverterSpec,
        skipped: Mapping[TaskRange, tuple[int, ...]],
    ) -> Sequence[TaskResult]:
        found = self._source.pieces(plan.tasks)
        tasks = [
            self._task(topic, plan.fingerprint, one, pieces, skipped.get(one, ()))
            for one, pieces in zip(plan.tasks, found, strict=True)
        ]
        return self._runner.run(tasks, self._task_spec(spec))

    def _task(
        self,
        topic: TopicView,
        fingerprint: str,
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
            fingerprint,
        )
        folder = "" if self._quarantine is None else self._quarantine.folder
        return Task(names, names._replace(folder=folder), pieces, skipped)

    # -- the quarantine --------------------------------------------------------------------------

    def _look_at_quarantine(
        self, plan: BatchPlan
    ) -> tuple[TableView | None, Mapping[TaskRange, tuple[int, ...]]]:
        """The table, and per task what it has of the batch: an earlier attempt got that far."""
        if self._quarantine is None:
            return None, {}
        view = self._quarantine.look()
        known = view.progress
        if known is None or known.topic_id != plan.base.topic_id:
            raise CommitConflictError(f"{self._quarantine.name} is being made by somebody else")
        return view, {
            task: offsets_of(
                self._quarantine, view, known.topic_id, task.partition, task.start, task.end
            )
            for task in plan.tasks
            if known.offsets.get(task.partition, 0) > task.start
        }

    def _commit_quarantine(
        self, view: TableView | None, plan: BatchPlan, result: TaskResult
    ) -> None:
        if not result.quarantine_files:
            return
        assert view is not None
        assert view.progress is not None
        assert self._quarantine is not None
        self._quarantine.commit(
            view, QUARANTINE_SCHEMA, result.quarantine_files, view.progress.advanced(plan.ends())
        )


def _from(spans: Sequence[Span], start: int) -> list[Span]:
    """What of the spans is from an offset on."""
    wanted = []
    for span in spans:
        if span.end <= start:
            continue
        if span.start < start:
            size = span.size * (span.end - start) // (span.end - span.start)
            wanted.append(span._replace(start=start, size=size))
        else:
            wanted.append(span)
    return wanted
