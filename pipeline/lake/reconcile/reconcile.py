"""Reconciliation of a table with its log: counts, offsets and checksums, range by range.

    log          read again and converted:  every record            rows that fit
    table        its files                  every row        +      every row
    quarantine   its files                  every record     +      those that would fit now
                                            ------------            ---------------------
    compared by  count, least and greatest  sum of hashes of        sum of hashes of all
                 offset                     offset and timestamp    columns

Each record of the log must be in the table or in the quarantine, once; and what fits must have
the columns that the log gives now. Sums do not depend on the order of rows, and a row that is
there twice counts twice. Ranges are as tasks are cut, some `RANGE_BYTES` of the log. Columns that
were added later differ for rows that were written before.

What the log has no more (below its start, or in a gap) cannot be compared and is only counted. All
is read in this process, file by file; hashes are polars' and mean something within one run only.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.lake.batch.batch_plan import Span, TaskRange, choose_tasks
from pipeline.lake.batch.log_view import LogSource, TopicView
from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import ForeignTableError
from pipeline.lake.files.data_file import incarnation_of
from pipeline.lake.files.table_rows import shaped
from pipeline.lake.schemas.columns import HEADERS, QUARANTINE_SCHEMA
from pipeline.lake.sinks.base import Sink
from pipeline.lake.values.converter import Converter
from pipeline.lake.work.job_parts import Columns
from pipeline.lake.work.task import ReadPiece

RANGE_BYTES: Final = 64 * 1024 * 1024
"""Of the log, in a range that is compared at once."""

MAX_RANGES: Final = 5_000
"""Ranges are larger where there would be more."""

ROWS_AT_ONCE: Final = 8_192

Numbers: TypeAlias = np.ndarray[tuple[int], np.dtype[Any]]


class ComparedRange(NamedTuple):
    """Offsets of one partition, exclusive end, and what was found of them.

    Attributes:
        log_rows: Records of the log.
        table_rows: Rows of the table.
        quarantined: Records of the quarantine.
        differs: In what: rows, offsets, coordinates, values; empty: in nothing.
    """

    partition: int
    start: int
    end: int
    log_rows: int
    table_rows: int
    quarantined: int
    differs: tuple[str, ...]


class Reconciled(NamedTuple):
    """Result of a comparison.

    Attributes:
        ranges: All that were compared, ascending.
        older: Rows of table and quarantine that the log has no more.
        beyond: Rows at or beyond the offsets of the table's own progress; there must be none.
    """

    ranges: tuple[ComparedRange, ...]
    older: int
    beyond: int

    @property
    def equal(self) -> bool:
        """Whether the table is what the log says."""
        return not self.beyond and not any(one.differs for one in self.ranges)


class Reconciler:
    """Compares once; see the module."""

    def __init__(
        self,
        source: LogSource,
        sink: Sink,
        quarantine: Sink | None,
        columns: Columns,
        read_piece: ReadPiece,
        range_bytes: int = RANGE_BYTES,
    ) -> None:
        """Nothing is read yet.

        Args:
            source: The log.
            sink: The table.
            quarantine: Its quarantine, if it has one.
            columns: What the table's columns are.
            read_piece: Rows of a piece of the log.
            range_bytes: See `RANGE_BYTES`.
        """
        self._source = source
        self._sink = sink
        self._quarantine = quarantine
        self._columns = columns
        self._read_piece = read_piece
        self._range_bytes = range_bytes

    def run(self, topic: TopicView, progress: Progress) -> Reconciled:
        """Read log, table and quarantine, as far as the table says that it is.

        Args:
            topic: The log's view.
            progress: Of the table.

        Raises:
            ForeignTableError: A file of the table is not there, or the log has schemas that the
                table's columns do not hold.
        """
        converter = Converter(self._columns.spec(self._sink.view().schema))
        tasks = ranges_of(topic, progress, self._range_bytes)
        log, table, bad = (_Sums(tasks, progress) for _ in range(3))
        for task, pieces in zip(tasks, self._source.pieces(tasks), strict=True):
            for piece in pieces:
                for batch in self._read_piece(piece):
                    log.take(task.partition, batch)
                    log.take_values(task.partition, _fitting(converter, batch))
        for partition, batch in _rows(self._sink, progress, converter.row_schema):
            table.take(partition, batch)
            table.take_values(partition, batch)
        if self._quarantine is not None:
            for partition, batch in _rows(self._quarantine, progress, QUARANTINE_SCHEMA):
                bad.take(partition, batch)
                table.take_values(partition, _fitting(converter, _records(batch)))
        return Reconciled(
            tuple(_compared(tasks, log, table, bad)),
            table.older + bad.older,
            table.beyond + bad.beyond,
        )


def ranges_of(topic: TopicView, progress: Progress, range_bytes: int) -> tuple[TaskRange, ...]:
    """Ranges of the log that a table has, of about so many bytes each."""
    spans: dict[int, list[Span]] = {}
    for number, partition in topic.partitions.items():
        reached = progress.offsets.get(number, 0)
        for span in partition.spans:
            end = min(span.end, reached)
            if span.start < end:
                size = span.size * (end - span.start) // (span.end - span.start)
                spans.setdefault(number, []).append(Span(span.start, end, max(1, size)))
    total = sum(span.size for some in spans.values() for span in some)
    largest = max(range_bytes, total // MAX_RANGES + 1)
    return choose_tasks(spans, max_bytes=total + 1, task_bytes=largest)


class _Sums:
    """Counts and sums of hashes per range, of rows that come in any order."""

    def __init__(self, tasks: Sequence[TaskRange], progress: Progress) -> None:
        self._first: dict[int, int] = {}
        bounds: dict[int, list[TaskRange]] = {}
        for at, task in enumerate(tasks):
            self._first.setdefault(task.partition, at)
            bounds.setdefault(task.partition, []).append(task)
        self._starts = {n: np.array([t.start for t in some]) for n, some in bounds.items()}
        self._ends = {n: np.array([t.end for t in some]) for n, some in bounds.items()}
        self._progress = progress
        count = len(tasks)
        self.rows = np.zeros(count, np.int64)
        self.least = np.full(count, np.iinfo(np.int64).max)
        self.most = np.full(count, -1, np.int64)
        self.coordinates = np.zeros(count, np.uint64)
        self.values = np.zeros(count, np.uint64)
        self.older = 0
        self.beyond = 0

    def take(self, partition: int, batch: pa.RecordBatch) -> None:
        """Rows with offset and timestamp."""
        offsets = batch.column("offset").to_numpy()
        inside, at = self._places(partition, offsets)
        reached = self._progress.offsets.get(partition, 0)
        beyond = int((offsets >= reached).sum())
        self.beyond += beyond
        self.older += len(offsets) - len(at) - beyond
        kept = offsets[inside]
        np.add.at(self.rows, at, 1)
        np.minimum.at(self.least, at, kept)
        np.maximum.at(self.most, at, kept)
        found = hashes(batch.select(["offset", "timestamp"]))
        np.add.at(self.coordinates, at, found[inside])

    def take_values(self, partition: int, rows: pa.RecordBatch) -> None:
        """Whole rows of the table."""
        inside, at = self._places(partition, rows.column("offset").to_numpy())
        named = [name for name in rows.schema.names if name not in ("topic", "partition")]
        np.add.at(self.values, at, hashes(rows.select(named))[inside])

    def _places(self, partition: int, offsets: Numbers) -> tuple[Numbers, Numbers]:
        """Which rows are in a range, and in which."""
        if partition not in self._first or not len(offsets):
            return np.zeros(len(offsets), bool), np.zeros(0, np.int64)
        found = np.searchsorted(self._starts[partition], offsets, "right") - 1
        inside = (found >= 0) & (offsets < self._ends[partition][found])
        return inside, self._first[partition] + found[inside]


def _compared(
    tasks: Sequence[TaskRange], log: _Sums, table: _Sums, bad: _Sums
) -> Iterator[ComparedRange]:
    alike = {
        "rows": log.rows == table.rows + bad.rows,
        "offsets": (log.least == np.minimum(table.least, bad.least))
        & (log.most == np.maximum(table.most, bad.most)),
        "coordinates": log.coordinates == table.coordinates + bad.coordinates,
        "values": log.values == table.values,
    }
    for at, task in enumerate(tasks):
        differs = tuple(name for name, equal in alike.items() if not equal[at])
        found, kept, put_aside = (int(sums.rows[at]) for sums in (log, table, bad))
        yield ComparedRange(*task, found, kept, put_aside, differs)


def hashes(batch: pa.RecordBatch) -> Numbers:
    """One for each row; the same for the same values, whatever form Arrow gives them."""
    if not batch.num_rows:
        return np.zeros(0, np.uint64)
    frame = pl.from_arrow(batch)
    assert isinstance(frame, pl.DataFrame)
    return np.asarray(frame.hash_rows(seed=1).to_numpy())


def _fitting(converter: Converter, batch: pa.RecordBatch) -> pa.RecordBatch:
    converted = converter.convert(batch)
    if converted.behind:
        raise ForeignTableError(
            f"the log has schemas {sorted(converted.behind)} that the table's columns do not hold"
        )
    return converted.rows


def _records(held: pa.RecordBatch) -> pa.RecordBatch:
    """Quarantined records as a reader of the log gives them, without headers."""
    columns = {name: held.column(name) for name in QUARANTINE_SCHEMA.names[:6]}
    return pa.RecordBatch.from_pydict({**columns, "headers": pa.nulls(held.num_rows, HEADERS)})


def _rows(
    sink: Sink, progress: Progress, schema: pa.Schema
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Rows of a table's files of this incarnation, by partition."""
    for key in sink.keys(sink.view()):
        if incarnation_of(key) not in (None, progress.topic_id.hex[:8]):
            continue
        data = sink.store.get(key)
        if data is None:
            raise ForeignTableError(f"{sink.name}: {key} is of the table, and is not there")
        for batch in pq.ParquetFile(pa.BufferReader(data)).iter_batches(ROWS_AT_ONCE):
            rows = shaped(batch, schema, _folder_values(key))
            numbers = rows.column("partition").to_numpy()
            for partition in np.unique(numbers).tolist():
                yield partition, rows.filter(pa.array(numbers == partition))


def _folder_values(key: str) -> dict[str, str]:
    return dict(re.findall(r"(?:^|/)(topic|partition)=([^/]+)/", key))


def differing(ranges: Iterable[ComparedRange]) -> list[ComparedRange]:
    """Those that differ and need an operator."""
    return [one for one in ranges if one.differs]
