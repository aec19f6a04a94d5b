"""Replay of quarantined records after a fix: `varve pipeline replay-quarantine`.

For each file of the quarantine, with offsets that the table's own progress has passed:

    read ─> convert with the columns as they are now ─┬─> rows that fit: commit to the table
                                                      └─> the others: commit to the quarantine,
                                                          in place of the file

The table's commit comes first and leaves its offsets as they are. A replay that is killed between
the two leaves rows in both tables; the next replay finds them in the table, by the names of the
files that replays write, and only clears the quarantine. So the table never has a row twice. Rows
of a batch that is not committed yet stay: the job itself has still to do with them.

Of a table by key the records are merged with the buckets they touch: a row or a deletion of their
key that is newer stays, an older row is replaced. Their order time is not known any more, so
against records of other partitions they count by their own times. Replayed twice they change
nothing.

Headers are not in the quarantine: of a table with headers, replayed rows have none.
"""

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.lake.batch.batch_plan import TaskRange, fingerprint_of
from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import CommitConflictError, ForeignTableError
from pipeline.lake.files.data_file import (
    TOPIC_CHARACTERS,
    DataFile,
    FileNames,
    NamedRange,
    range_of,
)
from pipeline.lake.files.file_writer import FileWriter, row_width
from pipeline.lake.keyed.leftovers import remove_runs
from pipeline.lake.keyed.table import KeyedTable
from pipeline.lake.runs.row_order import new_kinds, with_kind
from pipeline.lake.runs.run_file import Run, runs_folder
from pipeline.lake.runs.run_writer import RunWriter
from pipeline.lake.schemas.columns import HEADERS, QUARANTINE_SCHEMA
from pipeline.lake.schemas.spec import ConverterSpec
from pipeline.lake.sinks.base import Sink, TableView
from pipeline.lake.values.converter import Converted, Converter
from pipeline.lake.work.job_parts import Columns
from pipeline.lake.work.task import TableTarget, TaskSpec

LOGGER = logging.getLogger(__name__)

CONFLICTS_MAX: Final = 20
"""Commits of others in a row, for one file."""

EVOLUTIONS_MAX: Final = 10

ROWS_AT_ONCE: Final = 1_024
"""Quarantined records may be large."""

REASONS_MAX: Final = 20
"""Distinct in a result; a value that is part of a reason makes them many."""

_MARK: Final = "replay-"
"""Before the topic in a file's name: rows that came out of the quarantine."""


def is_replayed(key: str) -> bool:
    """Whether a file of the table came out of the quarantine; replays find it by its name."""
    return key.rpartition("/")[2].startswith(f"part-{_MARK}") and range_of(key) is not None


class Replayed(NamedTuple):
    """Result of a replay.

    Attributes:
        rows: In the table now.
        left: In the quarantine still.
        reasons: Why, with counts; at most `REASONS_MAX`, the most frequent ones.
    """

    rows: int
    left: int
    reasons: Mapping[str, int]


class _Part(NamedTuple):
    """A file of the quarantine, converted.

    Attributes:
        rows, left: Files that were published, not committed.
        runs: Instead of rows, of a table that is kept by key.
        fitted: Rows in the table once this is committed, those of an earlier replay too.
        reasons: Of those that are left.
        spec: With which it was done.
        behind: Schemas that the spec's columns lack something of: nothing may be committed.
    """

    rows: tuple[DataFile, ...]
    left: tuple[DataFile, ...]
    fitted: int
    reasons: Counter[str]
    behind: frozenset[int] = frozenset()
    runs: tuple[Run, ...] = ()
    digest: str = ""


class Replay:
    """Replays a quarantine once; see the module."""

    def __init__(
        self,
        sink: Sink,
        quarantine: Sink,
        columns: Columns,
        task_spec: Callable[[ConverterSpec], TaskSpec],
        keyed: KeyedTable | None = None,
    ) -> None:
        """Nothing is done yet.

        Args:
            sink: The table.
            quarantine: Its quarantine.
            columns: What the table's columns are now.
            task_spec: Where files of both are written.
            keyed: The table, where it is kept by key.
        """
        self._sink = sink
        self._quarantine = quarantine
        self._columns = columns
        self._task_spec = task_spec
        self._keyed = keyed

    def run(self) -> Replayed:
        """Try all records again.

        Raises:
            ForeignTableError: There is no table, or others commit all the time.
        """
        rows = left = 0
        reasons: Counter[str] = Counter()
        view = self._sink.view()
        if view.progress is None:
            raise ForeignTableError(f"{self._sink.name} has nothing: run the job first")
        for key in sorted(self._quarantine.keys(self._quarantine.view())):
            named = range_of(key)
            if named is None or named.topic_id_start != view.progress.topic_id.hex[:8]:
                LOGGER.warning(
                    "%s: %s belongs to another topic, left in the quarantine",
                    self._quarantine.name,
                    key,
                )
                continue
            part = self._replay(key, named)
            rows += part.fitted
            left += part.reasons.total()
            reasons += part.reasons
        return Replayed(rows, left, dict(reasons.most_common(REASONS_MAX)))

    def _replay(self, key: str, named: NamedRange) -> _Part:
        """One file; repeated where another commit came in between."""
        for _ in range(CONFLICTS_MAX):
            view, bad = self._sink.view(), self._quarantine.view()
            if key not in self._quarantine.keys(bad):
                return _Part((), (), 0, Counter())
            try:
                return self._attempt(key, named, view, bad)
            except CommitConflictError as error:
                LOGGER.info("%s; reading the table again", error)
        raise ForeignTableError(f"{self._sink.name} is changed all the time by another writer")

    def _attempt(self, key: str, named: NamedRange, view: TableView, bad: TableView) -> _Part:
        progress = view.progress
        assert progress is not None
        assert bad.progress is not None
        spec = self._columns.spec(view.schema)
        for _ in range(EVOLUTIONS_MAX):
            part = self._convert(key, named, view, progress, spec)
            if not part.behind:
                break
            spec = self._columns.evolved(spec, part.behind)
        else:
            raise ForeignTableError(
                f"{self._sink.name}: its columns still do not hold the records after several "
                "schema changes"
            )
        schema = Converter(spec).row_schema
        if part.rows:
            self._sink.commit(view, schema, part.rows, progress)
        if self._keyed is not None and part.runs:
            target = self._task_spec(spec).rows
            change = self._keyed.replay(view, progress, part.digest, part.runs, spec, target)
            self._sink.commit(view, schema, change.files, change.progress, change.remove)
            remove_runs(self._sink.store, progress)
        if part.fitted:
            self._quarantine.commit(bad, QUARANTINE_SCHEMA, part.left, bad.progress, [key])
        return part

    def _convert(
        self,
        key: str,
        named: NamedRange,
        view: TableView,
        progress: Progress,
        spec: ConverterSpec,
    ) -> _Part:
        there: frozenset[int] = frozenset()
        if self._keyed is None:
            there = self._there(view, progress, named)
        passed = progress.offsets.get(named.partition, 0)
        facts = {
            "replay": key,
            "converter": repr(spec),
            "passed": str(passed),
            "there": str(sorted(there)),
            "keyed": progress.keyed,
        }
        digest = fingerprint_of(facts)
        names = FileNames(
            "",
            progress.topic,
            progress.topic_id,
            named.partition,
            named.start,
            named.end,
            digest,
        )
        targets = self._task_spec(spec)
        assert targets.quarantine is not None
        marked = _MARK + progress.topic[: TOPIC_CHARACTERS - len(_MARK)]
        converter = Converter(spec)
        with _Writer(targets.quarantine, names) as left:
            if self._keyed is not None:
                folder = runs_folder(progress.topic_id.hex[:8], progress.batch, digest)
                with _Runs(targets, folder, names, converter) as runs:
                    part = self._sort(key, converter, passed, there, runs, left)
                    if part.behind or not part.fitted:
                        return part
                    return part._replace(runs=runs.runs(), digest=digest)
            with _Writer(targets.rows, names._replace(topic=marked)) as rows:
                return self._sort(key, converter, passed, there, rows, left)

    def _sort(
        self,
        key: str,
        converter: Converter,
        passed: int,
        there: frozenset[int],
        rows: "_Writer | _Runs",
        left: "_Writer",
    ) -> _Part:
        reasons: Counter[str] = Counter()
        behind: frozenset[int] = frozenset()
        fitted = 0
        for held in self._read(key):
            offsets = held.column("offset")
            done = pc.is_in(offsets, pa.array(there, pa.int64()))
            fitted += pc.sum(done).as_py() or 0
            wanted = held.filter(pc.and_(pc.less(offsets, passed), pc.invert(done)))
            waiting = held.filter(pc.greater_equal(offsets, passed))
            converted = converter.convert(_records(wanted))
            behind |= converted.behind
            if behind:
                continue
            rows.take(converted)
            fitted += converted.rows.num_rows
            for misfits in (converted.quarantined, waiting):
                left.write(misfits)
                reasons.update(misfits.column("reason").to_pylist())
        if behind or not fitted:
            return _Part((), (), 0, reasons, behind)
        return _Part(rows.finish(), left.finish(), fitted, reasons)

    def _read(self, key: str) -> "list[pa.RecordBatch]":
        data = self._quarantine.store.get(key)
        if data is None:
            raise ForeignTableError(f"{self._quarantine.name}: {key} is of it, and is not there")
        file = pq.ParquetFile(pa.BufferReader(data))
        batches: list[pa.RecordBatch] = [
            batch.select(QUARANTINE_SCHEMA.names).cast(QUARANTINE_SCHEMA)
            for batch in file.iter_batches(ROWS_AT_ONCE)
        ]
        return batches

    def _there(self, view: TableView, progress: Progress, named: NamedRange) -> frozenset[int]:
        """Offsets of the range that an earlier replay has brought into the table."""
        prefix = f"part-{_MARK}{progress.topic[: TOPIC_CHARACTERS - len(_MARK)]}-"
        found: set[int] = set()
        for key in self._sink.keys(view):
            other = range_of(key)
            if (
                not key.rpartition("/")[2].startswith(prefix)
                or other is None
                or other[:2] != named[:2]
                or other.end <= named.start
                or other.start >= named.end
            ):
                continue
            data = self._sink.store.get(key)
            if data is None:
                raise ForeignTableError(f"{self._sink.name}: {key} is of it, and is not there")
            rows = pq.read_table(pa.BufferReader(data), columns=["offset"])
            found.update(rows.column("offset").to_pylist())
        return frozenset(found)


class _Writer:
    """Files of one of both tables; whatever is not finished is discarded."""

    def __init__(self, target: TableTarget, names: FileNames) -> None:
        self._writer = FileWriter(
            target.open_store(), names._replace(folder=target.folder), target.writer
        )

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.discard()

    def take(self, converted: Converted) -> None:
        self.write(converted.rows)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write(batch, batch.num_rows * row_width(batch.schema) + batch.nbytes)

    def finish(self) -> tuple[DataFile, ...]:
        return self._writer.finish()


class _Runs:
    """Runs of a table by key; in order by the records' own times."""

    def __init__(
        self, targets: TaskSpec, folder: str, names: FileNames, converter: Converter
    ) -> None:
        self._writer = RunWriter(
            targets.rows.open_store(),
            folder,
            TaskRange(names.partition, names.start, names.end),
            targets.buckets,
            converter.spec.identity,
            converter.row_schema,
        )

    def __enter__(self) -> "_Runs":
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.discard()

    def take(self, converted: Converted) -> None:
        rows = with_kind(converted.rows, new_kinds(converted))
        self._writer.write(rows, rows.num_rows * row_width(rows.schema) + rows.nbytes)

    def finish(self) -> tuple[DataFile, ...]:
        """No files: see `runs`."""
        return ()

    def runs(self) -> tuple[Run, ...]:
        return self._writer.finish()


def _records(held: pa.RecordBatch) -> pa.RecordBatch:
    """As a reader of the log gives them, without headers."""
    columns = {name: held.column(name) for name in QUARANTINE_SCHEMA.names[:6]}
    return pa.RecordBatch.from_pydict({**columns, "headers": pa.nulls(held.num_rows, HEADERS)})
