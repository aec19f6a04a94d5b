"""One task of a batch: reads pieces, converts, writes files, and returns what a commit needs.

Runs in an executor's Python worker, or in a process of this machine. Rows stay here; what goes
back is a `TaskResult`.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from pipeline.lake.batch.batch_plan import TaskRange
from pipeline.lake.errors import LakeError
from pipeline.lake.files.blocks import BLOCK_BYTES, BLOCK_ROWS, in_blocks, row_bytes
from pipeline.lake.files.data_file import DataFile, FileNames
from pipeline.lake.files.file_writer import FileWriter, WriterOptions, row_width
from pipeline.lake.runs.row_order import NO_TIME, OrderedRows
from pipeline.lake.runs.run_file import Run
from pipeline.lake.runs.run_writer import RunWriter
from pipeline.lake.schemas.columns import QUARANTINE_SCHEMA
from pipeline.lake.schemas.spec import ConverterSpec
from pipeline.lake.stores.table_store import TableStore
from pipeline.lake.values.converter import Converted, Converter
from pipeline.plan.piece import Piece

COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp")
"""What is read of a record."""


class ReadPiece(Protocol):
    """Reads a piece; pickled to where it is done."""

    def __call__(self, piece: Piece, /) -> Iterator[pa.RecordBatch]:
        """Rows, ascending by offset."""
        ...


class RowOrderError(LakeError):
    """A reader gave rows outside of its range, or twice: the task must not be committed."""


class QuarantinedError(LakeError):
    """A record does not fit, and the job says that it ends then."""


class OpenStore(Protocol):
    """Opens the store of a table where the task runs; pickled with it."""

    def __call__(self) -> TableStore:
        """A store of its own."""
        ...


class TableTarget(NamedTuple):
    """Store and options for the files of one table. Pickled; its store may hold secrets."""

    open_store: OpenStore
    folder: str
    writer: WriterOptions


class TaskSpec(NamedTuple):
    """Settings that all tasks of a batch share. Pickled.

    Attributes:
        rows: The table.
        quarantine: The table of records that do not fit; None: the first one ends the job.
        converter: How a record becomes a row.
        buckets: Of a table that is kept by key; 0: every record is a row.
    """

    rows: TableTarget
    quarantine: TableTarget | None
    converter: ConverterSpec
    buckets: int = 0


class Task(NamedTuple):
    """Offsets of a partition, and the pieces to read them from. Pickled; holds no secret.

    Attributes:
        names, quarantine_names: Of the files, with the offsets.
        pieces: Ascending.
        skipped: Ascending offsets that the quarantine has already: an earlier attempt at the batch
            has committed it, with other settings maybe.
        runs: Folder of the batch's runs, for a table that is kept by key.
    """

    names: FileNames
    quarantine_names: FileNames
    pieces: tuple[Piece, ...]
    skipped: tuple[int, ...] = ()
    runs: str = ""


class TaskResult(NamedTuple):
    """Result of a task.

    Attributes:
        files, quarantine_files: Published, not committed.
        rows, quarantined: Records of either kind.
        read_bytes: Of keys and values.
        behind: Ids of schemas that the converter's columns lack something of: the files must not
            be committed.
        runs: Of a table that is kept by key, instead of files.
        newest_us: The greatest timestamp of all records, microseconds; `NO_TIME`: there were none.
    """

    files: tuple[DataFile, ...]
    quarantine_files: tuple[DataFile, ...]
    rows: int
    quarantined: int
    read_bytes: int
    behind: frozenset[int] = frozenset()
    runs: tuple[Run, ...] = ()
    newest_us: int = NO_TIME


class _RowFiles:
    """Every record is a row of a file."""

    def __init__(self, task: Task, spec: TaskSpec) -> None:
        self._writer = FileWriter(spec.rows.open_store(), task.names, spec.rows.writer)

    def take(self, block: pa.RecordBatch, converted: Converted) -> pa.RecordBatch:
        return converted.rows

    def write(self, rows: pa.RecordBatch, weight: int) -> None:
        self._writer.write(rows, weight)

    def finish(self, result: TaskResult) -> TaskResult:
        return result._replace(files=self._writer.finish())

    def discard(self) -> None:
        self._writer.discard()


class _Runs:
    """Records are sorted by key; their order time is the greatest timestamp up to them."""

    def __init__(self, task: Task, spec: TaskSpec, rows: pa.Schema) -> None:
        self._ordered = OrderedRows()
        names = task.names
        self._writer = RunWriter(
            spec.rows.open_store(),
            task.runs,
            TaskRange(names.partition, names.start, names.end),
            spec.buckets,
            spec.converter.identity,
            rows,
        )

    def take(self, block: pa.RecordBatch, converted: Converted) -> pa.RecordBatch:
        return self._ordered.rows(block, converted)

    def write(self, rows: pa.RecordBatch, weight: int) -> None:
        self._writer.write(rows, weight)

    def finish(self, result: TaskResult) -> TaskResult:
        return result._replace(runs=self._writer.finish(), newest_us=self._ordered.newest_us)

    def discard(self) -> None:
        self._writer.discard()


def run_task(task: Task, spec: TaskSpec, read_piece: ReadPiece) -> TaskResult:
    """Do it.

    Args:
        task: What.
        spec: How.
        read_piece: Rows of a piece, ascending by offset.

    Raises:
        RowOrderError: The reader gave what it should not have.
        QuarantinedError: A record does not fit and there is no quarantine.
    """
    converter = Converter(spec.converter)
    width = row_width(converter.row_schema)
    block_rows = max(1, min(BLOCK_ROWS, 4 * BLOCK_BYTES // max(1, width)))
    writer = _Runs(task, spec, converter.row_schema) if spec.buckets else _RowFiles(task, spec)
    bad: FileWriter | None = None
    rows = quarantined = read_bytes = 0
    behind: frozenset[int] = frozenset()
    try:
        batches = _checked(task, read_piece)
        for block in in_blocks(batches, block_rows=block_rows):
            size = int(row_bytes(block).sum())
            read_bytes += size
            converted = converter.convert(block)
            behind |= converted.behind
            if behind:
                # The rest shows what else is missing; none of it will be committed.
                continue
            good = _without(writer.take(block, converted), task.skipped)
            writer.write(good, _weight(good, block, size, width))
            rows += good.num_rows
            misfits = _without(converted.quarantined, task.skipped)
            if misfits.num_rows == 0:
                continue
            if spec.quarantine is None:
                raise QuarantinedError(_first(misfits))
            if bad is None:
                bad = FileWriter(
                    spec.quarantine.open_store(), task.quarantine_names, spec.quarantine.writer
                )
            bad.write(misfits, _weight(misfits, block, size, row_width(QUARANTINE_SCHEMA)))
            quarantined += misfits.num_rows
        if behind:
            return TaskResult((), (), rows, quarantined, read_bytes, behind)
        put_aside = () if bad is None else bad.finish()
        return writer.finish(TaskResult((), put_aside, rows, quarantined, read_bytes))
    finally:
        writer.discard()
        if bad is not None:
            bad.discard()


def _weight(part: pa.RecordBatch, block: pa.RecordBatch, size: int, width: int) -> int:
    """What some rows of a block count for in a writer's memory."""
    rows = int(part.num_rows)
    return size * rows // int(block.num_rows) + width * rows


def _without(batch: pa.RecordBatch, skipped: Sequence[int]) -> pa.RecordBatch:
    if not skipped or not batch.num_rows:
        return batch
    offsets = batch.column("offset").to_numpy()
    return batch.filter(pa.array(~np.isin(offsets, np.asarray(skipped, np.int64))))


def _checked(task: Task, read_piece: ReadPiece) -> Iterator[pa.RecordBatch]:
    """Rows of all pieces; each offset once and of the task, or an error."""
    names = task.names
    reached = names.start
    for piece in task.pieces:
        for batch in read_piece(piece):
            if not batch.num_rows:
                continue
            offsets = batch.column("offset").to_numpy()
            if (
                int(offsets[0]) < reached
                or int(offsets[-1]) >= names.end
                or not bool((np.diff(offsets) > 0).all())
            ):
                raise RowOrderError(
                    f"{names.topic}-{names.partition}: rows at offsets {offsets[0]} to "
                    f"{offsets[-1]} came where {reached} to {names.end - 1} were to come"
                )
            reached = int(offsets[-1]) + 1
            yield batch


def _first(quarantined: pa.RecordBatch) -> str:
    row = quarantined.slice(0, 1).drop_columns(["key", "value"]).to_pylist()[0]
    return (
        f"{row['topic']}-{row['partition']} at offset {row['offset']}: {row['reason']}; with "
        "errors.quarantine: table such records are put aside and the rest flows"
    )


def results_of(results: Sequence[TaskResult]) -> TaskResult:
    """All of a batch together."""
    return TaskResult(
        tuple(file for one in results for file in one.files),
        tuple(file for one in results for file in one.quarantine_files),
        sum(one.rows for one in results),
        sum(one.quarantined for one in results),
        sum(one.read_bytes for one in results),
        frozenset().union(*(one.behind for one in results)),
        tuple(run for one in results for run in one.runs),
        max((one.newest_us for one in results), default=NO_TIME),
    )
