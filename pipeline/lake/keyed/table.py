"""A table by key on the driver: what of it a batch touches, and what its one commit has to hold.

    runs of all tasks ─> buckets that have any ─> a task each ─> new files
    files of these buckets                                       leave in the same commit

The state of the table is put before the commit that names it: see `pipeline.lake.keyed.state`.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from pipeline.lake.batch.batch_plan import BatchPlan, fingerprint_of
from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import ForeignTableError
from pipeline.lake.files.data_file import BucketNames, DataFile, NamedBucket, bucket_of
from pipeline.lake.keyed.bucket_task import (
    BucketResult,
    BucketSpec,
    BucketTask,
    RunRows,
    run_bucket_task,
)
from pipeline.lake.keyed.state import (
    KeyedState,
    deleted_key,
    encode_state,
    read_state,
    state_key,
)
from pipeline.lake.runs.row_order import NO_TIME
from pipeline.lake.runs.run_file import Run, RunPart
from pipeline.lake.schemas.spec import ConverterSpec
from pipeline.lake.sinks.base import Sink, TableView
from pipeline.lake.values.converter import Converter
from pipeline.lake.work.job_parts import Runner
from pipeline.lake.work.task import TableTarget, TaskResult


class TableChange(NamedTuple):
    """Changes of a batch to a keyed table.

    Attributes:
        files: To add.
        remove: Keys of files that they replace.
        keys: All files of the table at its view, if the commit is valid for these alone.
        progress: With the batch in it; its state is put.
        upserted: Keys whose row is new.
        deleted: Rows that are gone.
    """

    files: tuple[DataFile, ...]
    remove: tuple[str, ...]
    keys: frozenset[str] | None
    progress: Progress
    upserted: int
    deleted: int


def plan_digest(plan: BatchPlan) -> str:
    """8 hexadecimal digits in the names of all that a plan makes.

    It is of the state that the plan continues, too: from another one the same records become
    other files.
    """
    return fingerprint_of({"plan": plan.key(), "tasks": repr(plan.tasks)})


class KeyedTable:
    """One table; see the module."""

    def __init__(self, sink: Sink, runner: Runner, mode: str, buckets: int) -> None:
        """Makes no request yet."""
        self._sink = sink
        self._runner = runner
        self._mode = mode
        self._buckets = buckets

    def state(self, progress: Progress, spec: ConverterSpec) -> KeyedState:
        """As the table's last commit names it; of a table that begins, an empty one.

        Raises:
            ForeignTableError: The table is kept in another way, or its state is gone.
        """
        mine = KeyedState(self._mode, self._buckets, spec.identity, {}, {})
        if not progress.keyed:
            if progress.batch:
                raise ForeignTableError(
                    f"{self._sink.name} has every record (mode: append), the job says mode: "
                    f"{self._mode}: name a new table in sink.table, which begins at the log's start"
                )
            return mine
        found = read_state(self._sink, progress)
        for name, there, said in (
            ("mode", found.mode, self._mode),
            ("sink.buckets", str(found.buckets), str(self._buckets)),
        ):
            if there != said:
                raise ForeignTableError(
                    f"{self._sink.name} is kept with {name}: {there}, the job says {said}: set it "
                    "back, or name a new table in sink.table, which begins at the log's start"
                )
        if found.identity != spec.identity:
            raise ForeignTableError(
                f"{self._sink.name} identifies its rows by the column {found.identity}, with "
                "key.format "
                f"as it is now it would be {spec.identity}: set it back, or name a new table in "
                "sink.table"
            )
        return found

    def begun(self, progress: Progress, spec: ConverterSpec) -> Progress:
        """Of a table that begins with offsets and no rows; its state is put."""
        return self._put(progress, fingerprint_of({"begun": "1"}), self.state(_new(progress), spec))

    def _put(self, progress: Progress, fingerprint: str, state: KeyedState) -> Progress:
        after = progress._replace(keyed=fingerprint)
        self._sink.store.put(state_key(after), encode_state(state))
        return after

    def merge(
        self,
        view: TableView,
        plan: BatchPlan,
        results: Sequence[TaskResult],
        spec: ConverterSpec,
        target: TableTarget,
    ) -> TableChange:
        """Work the runs of a batch into the buckets they touch.

        Args:
            view: The table, at the plan's base.
            plan: The batch.
            results: Of its tasks, in the plan's order.
            spec: With which they were made.
            target: Where files are written.

        Raises:
            ForeignTableError: See `state`; or a file of the table is none of a bucket, or rows of
                it were deleted without rewriting it (delete files, deletion vectors).
            TaskFailedError: Worth another try.
        """
        state = self.state(plan.base, spec)
        starts, times = _order_times(plan, results, state.order_times)
        runs = _by_bucket([result.runs for result in results], starts)
        after = plan.base.advanced(plan.ends())
        state = state._replace(order_times=times)
        return self._change(view, after, plan_digest(plan), state, runs, spec, target)

    def replay(
        self,
        view: TableView,
        progress: Progress,
        digest: str,
        runs: Sequence[Run],
        spec: ConverterSpec,
        target: TableTarget,
    ) -> TableChange:
        """Work records into the table that came out of the quarantine; its offsets stay.

        Args:
            view: The table.
            progress: Its own.
            digest: Of the records, and of all that decides what they become.
            runs: Of them; their order times are their own times.
            spec: With which they were made.
            target: Where files are written.

        Raises:
            ForeignTableError, TaskFailedError: See `merge`.
        """
        found = _by_bucket([runs], [NO_TIME])
        state = self.state(progress, spec)
        return self._change(view, progress, digest, state, found, spec, target)

    def _change(
        self,
        view: TableView,
        after: Progress,
        digest: str,
        state: KeyedState,
        runs: Mapping[int, tuple[RunRows, ...]],
        spec: ConverterSpec,
        target: TableTarget,
    ) -> TableChange:
        keys = self._keys(view)
        present = self._present(keys)
        topic_id_start = after.topic_id.hex[:8]
        tasks = [
            BucketTask(
                BucketNames(
                    self._sink.folder, after.topic, after.topic_id, bucket, after.batch, digest
                ),
                deleted_key(topic_id_start, bucket, after.batch, digest),
                groups_of(present.get(bucket, {})),
                state.deleted.get(bucket, ""),
                some,
            )
            for bucket, some in sorted(runs.items())
        ]
        bucket_spec = BucketSpec(target, Converter(spec).row_schema, spec.identity)
        made: Sequence[BucketResult] = ()
        if tasks:
            made = self._runner.map(partial(run_bucket_task, spec=bucket_spec), tasks)
        deleted = dict(state.deleted)
        for one in made:
            deleted.pop(one.bucket, None)
            if one.deleted_file:
                deleted[one.bucket] = one.deleted_file
        return TableChange(
            tuple(file for one in made for file in one.files),
            tuple(key for task in tasks for group in task.files for key in group),
            keys,
            self._put(after, digest, state._replace(deleted=deleted)),
            sum(one.upserted for one in made),
            sum(one.deleted for one in made),
        )

    def _keys(self, view: TableView) -> frozenset[str]:
        """Of all files; rows that something else deleted would come back with the next merge."""
        files = self._sink.files(view)
        for file in files:
            if file.sealed:
                raise ForeignTableError(
                    f"{self._sink.name}: {file.key}: {file.sealed}, by something else than a job: "
                    "take that change back, or name a new table in sink.table, which begins at the "
                    "log's start"
                )
        return frozenset(file.key for file in files)

    def _present(self, keys: frozenset[str]) -> Mapping[int, Mapping[str, NamedBucket]]:
        present: dict[int, dict[str, NamedBucket]] = {}
        for key in keys:
            named = bucket_of(key)
            if named is None or named.bucket >= self._buckets:
                raise ForeignTableError(
                    f"{self._sink.name}: {key} is no file of a key bucket: something else has "
                    "written to the table, or put its files together"
                )
            present.setdefault(named.bucket, {})[key] = named
        return present


def _new(progress: Progress) -> Progress:
    return progress._replace(batch=0, keyed="")


def groups_of(files: Mapping[str, NamedBucket]) -> tuple[tuple[str, ...], ...]:
    """Files of one bucket by their writer, each group ascending by key."""
    groups: dict[tuple[int, str], list[str]] = {}
    for key, named in sorted(files.items(), key=lambda one: one[1][2:]):
        groups.setdefault((named.batch, named.fingerprint), []).append(key)
    return tuple(tuple(some) for some in groups.values())


def _order_times(
    plan: BatchPlan, results: Sequence[TaskResult], before: Mapping[int, int]
) -> tuple[list[int], dict[int, int]]:
    """The order time before each task, and that of each partition after all of them."""
    times = dict(before)
    starts = [NO_TIME] * len(plan.tasks)
    for at in sorted(range(len(plan.tasks)), key=lambda n: plan.tasks[n]):
        partition = plan.tasks[at].partition
        starts[at] = times.get(partition, NO_TIME)
        if (newest := max(starts[at], results[at].newest_us)) > NO_TIME:
            times[partition] = newest
    return starts, times


def _by_bucket(
    runs: Sequence[Sequence[Run]], starts: Sequence[int]
) -> dict[int, tuple[RunRows, ...]]:
    found: dict[int, list[RunRows]] = {}
    for some, start in zip(runs, starts, strict=True):
        for run in some:
            for part in run.parts:
                found.setdefault(part.bucket, []).append(RunRows(run.key, RunPart(*part), start))
    return {bucket: tuple(runs) for bucket, runs in found.items()}
