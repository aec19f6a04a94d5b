"""Reconciliation of a keyed table with its log, which is folded again, bucket by bucket.

    log         read again, converted  ─> runs, sorted by key ─┐
    table       rows and deletions that the log has no more ───┴─> fold ─> rows that must be there
    table       files of the bucket ─────────────────────────────────────> rows that are there

    compared by   count; sum of hashes of key and coordinates; sum of hashes of all columns

Records that are in the quarantine are no part of the fold. What the log has no more (below its
start) is taken from the table and only counted: it is older than all the log has, unless its key
came by two partitions. Runs are made in a scratch folder of this machine, as large as the log.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.lake.batch.log_view import LogSource, TopicView
from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import ForeignTableError
from pipeline.lake.files.blocks import in_blocks
from pipeline.lake.files.data_file import NamedBucket, bucket_of
from pipeline.lake.files.stored_rows import stored_rows
from pipeline.lake.keyed.bucket_task import BucketMerge, RunRows, deleted_rows
from pipeline.lake.keyed.state import read_state
from pipeline.lake.keyed.table import groups_of
from pipeline.lake.reconcile.reconcile import RANGE_BYTES, hashes, ranges_of
from pipeline.lake.runs.row_order import NO_TIME, Numbers, OrderedRows, with_kind
from pipeline.lake.runs.run_file import Run
from pipeline.lake.runs.run_writer import RunWriter
from pipeline.lake.schemas.columns import ORDER_TIME
from pipeline.lake.schemas.spec import ConverterSpec
from pipeline.lake.sinks.base import Sink
from pipeline.lake.stores.table_store import TableStore
from pipeline.lake.values.converter import Converted, Converter
from pipeline.lake.work.job_parts import Columns
from pipeline.lake.work.task import ReadPiece

SCRATCH: Final = "runs/"

Filtered: TypeAlias = Iterator[pa.RecordBatch]


class ComparedBucket(NamedTuple):
    """A key bucket, and what was found of it.

    Attributes:
        bucket: Which.
        log_rows: Keys that have a row by the log.
        table_rows: Rows of the table.
        differs: In what: rows, coordinates, values; empty: in nothing.
    """

    bucket: int
    log_rows: int
    table_rows: int
    differs: tuple[str, ...]


class ReconciledKeys(NamedTuple):
    """Result of a comparison.

    Attributes:
        buckets: All, ascending.
        records: Of the log that were read.
        older: Rows of the table that the log has no more.
        beyond: Rows at or beyond the offsets of the table's own progress; there must be none.
    """

    buckets: tuple[ComparedBucket, ...]
    records: int
    older: int
    beyond: int

    @property
    def equal(self) -> bool:
        """Whether the table is what the log says."""
        return not self.beyond and not any(one.differs for one in self.buckets)


class KeyedReconciler:
    """Compares once; see the module."""

    def __init__(
        self,
        source: LogSource,
        sink: Sink,
        quarantine: Sink | None,
        columns: Columns,
        read_piece: ReadPiece,
        scratch: TableStore,
    ) -> None:
        """Nothing is read yet.

        Args:
            source: The log.
            sink: The table.
            quarantine: Its quarantine, if it has one.
            columns: What the table's columns are.
            read_piece: Rows of a piece of the log.
            scratch: For runs; the caller empties it.
        """
        self._source = source
        self._sink = sink
        self._quarantine = quarantine
        self._columns = columns
        self._read_piece = read_piece
        self._scratch = scratch
        self._records = 0

    def run(self, topic: TopicView, progress: Progress) -> ReconciledKeys:
        """Read log, table and quarantine, as far as the table says that it is.

        Args:
            topic: The log's view.
            progress: Of the table.

        Raises:
            ForeignTableError: A file of the table is not there or of no bucket, or the log has
                schemas that the table's columns do not hold.
        """
        view = self._sink.view()
        state = read_state(self._sink, progress)
        spec = self._columns.spec(view.schema)
        schema = Converter(spec).row_schema
        runs = self._runs(topic, progress, spec, state.buckets)
        files: dict[int, dict[str, NamedBucket]] = {}
        for key in self._sink.keys(view):
            named = bucket_of(key)
            if named is None:
                raise ForeignTableError(f"{self._sink.name}: {key} is no file of a key bucket")
            files.setdefault(named.bucket, {})[key] = named
        compared = []
        older = beyond = 0
        for bucket in range(state.buckets):
            keys = files.get(bucket, {})
            found = _Sums(spec.identity)
            for key in keys:
                for rows in stored_rows(self._sink.store, key, schema):
                    found.take(rows)
                    beyond += int((~_is_in(rows, progress.offsets)).sum())
                    older += int(_is_in(rows, _starts(topic)).sum())
            gone = state.deleted.get(bucket)
            base = [_older_rows(self._sink.store, some, schema, topic) for some in groups_of(keys)]
            if gone is not None:
                base.append(_older_deleted(self._sink.store, gone, schema, topic))
            wanted = _Sums(spec.identity)
            merge = BucketMerge(self._scratch, schema, spec.identity, f"{SCRATCH}{bucket}")
            with closing(merge):
                rows_there = merge.rows(base, runs.get(bucket, ()), lambda rows: None)
                for rows in rows_there:
                    wanted.take(rows)
            compared.append(
                ComparedBucket(bucket, wanted.rows, found.rows, tuple(wanted.differs(found)))
            )
        return ReconciledKeys(tuple(compared), self._records, older, beyond)

    def _runs(
        self, topic: TopicView, progress: Progress, spec: ConverterSpec, buckets: int
    ) -> Mapping[int, Sequence[RunRows]]:
        converter = Converter(spec)
        tasks = ranges_of(topic, progress, RANGE_BYTES)
        held = self._quarantined(progress)
        found: dict[int, list[RunRows]] = {}
        ordered: dict[int, OrderedRows] = {}
        for task, pieces in zip(tasks, self._source.pieces(tasks), strict=True):
            rows = ordered.setdefault(task.partition, OrderedRows())
            put_aside = held.get(task.partition, np.zeros(0, np.int64))
            writer = RunWriter(
                self._scratch, SCRATCH, task, buckets, spec.identity, converter.row_schema
            )
            with closing(_Discarded(writer)):
                batches = (batch for piece in pieces for batch in self._read_piece(piece))
                for run in self._written(writer, batches, converter, rows, put_aside):
                    for part in run.parts:
                        found.setdefault(part.bucket, []).append(RunRows(run.key, part, NO_TIME))
        return found

    def _written(
        self,
        writer: RunWriter,
        batches: Iterable[pa.RecordBatch],
        converter: Converter,
        ordered: OrderedRows,
        put_aside: Numbers,
    ) -> Sequence[Run]:
        for block in in_blocks(batches):
            self._records += block.num_rows
            rows = ordered.rows(block, _converted(converter, block))
            offsets = rows.column("offset").to_numpy()
            rows = rows.filter(pa.array(~np.isin(offsets, put_aside)))
            writer.write(rows, rows.nbytes)
        return writer.finish()

    def _quarantined(self, progress: Progress) -> Mapping[int, Numbers]:
        """Offsets that are in the quarantine, by partition."""
        found: dict[int, list[Numbers]] = {}
        if self._quarantine is None:
            return {}
        for key in self._quarantine.keys(self._quarantine.view()):
            data = self._quarantine.store.get(key)
            if data is None:
                raise ForeignTableError(f"{self._quarantine.name}: {key} is of it, and not there")
            rows = pq.read_table(pa.BufferReader(data), columns=["partition", "offset"])
            numbers = rows.column("partition").to_numpy()
            for partition in np.unique(numbers).tolist():
                offsets = rows.column("offset").to_numpy()[numbers == partition]
                found.setdefault(partition, []).append(offsets)
        return {number: np.concatenate(some) for number, some in found.items()}


class _Discarded:
    """Closes a writer of runs."""

    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer

    def close(self) -> None:
        self._writer.discard()


def _converted(converter: Converter, block: pa.RecordBatch) -> Converted:
    converted = converter.convert(block)
    if converted.behind:
        raise ForeignTableError(
            f"the log has schemas {sorted(converted.behind)} that the table's columns do not hold"
        )
    return converted


def _starts(topic: TopicView) -> Mapping[int, int]:
    return {number: partition.start for number, partition in topic.partitions.items()}


def _is_in(rows: pa.RecordBatch, ends: Mapping[int, int]) -> Numbers:
    """Which rows are below an offset of their partition."""
    below = np.zeros(rows.num_rows, bool)
    numbers, offsets = rows.column("partition").to_numpy(), rows.column("offset").to_numpy()
    for partition in np.unique(numbers).tolist():
        below |= (numbers == partition) & (offsets < ends.get(partition, 0))
    return below


def _older_rows(
    store: TableStore, keys: Iterable[str], schema: pa.Schema, topic: TopicView
) -> Filtered:
    for key in keys:
        for rows in stored_rows(store, key, schema):
            yield with_kind(rows.filter(pa.array(_is_in(rows, _starts(topic)))), 0)


def _older_deleted(store: TableStore, key: str, schema: pa.Schema, topic: TopicView) -> Filtered:
    for rows in deleted_rows(store, key, schema):
        yield rows.filter(pa.array(_is_in(rows, _starts(topic))))


class _Sums:
    """Counts and sums of hashes modulo 2**64, of rows that come in any order and any batches."""

    def __init__(self, identity: str) -> None:
        self._places = [identity, "partition", "offset", "timestamp"]
        self.rows = 0
        self.coordinates = np.uint64(0)
        self.values = np.uint64(0)

    def take(self, rows: pa.RecordBatch) -> None:
        self.rows += rows.num_rows
        named = [name for name in rows.schema.names if name not in ("topic", ORDER_TIME)]
        self.coordinates = _sum(self.coordinates, rows.select(self._places))
        self.values = _sum(self.values, rows.select(named))

    def differs(self, other: "_Sums") -> Iterator[str]:
        for name in ("rows", "coordinates", "values"):
            if getattr(self, name) != getattr(other, name):
                yield name


def _sum(so_far: np.uint64, rows: pa.RecordBatch) -> np.uint64:
    return np.uint64(np.add.reduce(hashes(rows), dtype=np.uint64, initial=so_far))
