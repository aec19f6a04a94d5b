"""One task of a commit by key: the files of a bucket merged with a batch's runs into new files.

    files of the bucket  ──────────────┐
    keys deleted before  ──────────────┤
    runs of the batch    ─> 16 at once ┴─> merge ─┬─> rows: new files, cut at `target_file_bytes`
                             (in rounds)          └─> keys that are deleted: one file

All are sorted by key and read block by block, so memory does not depend on the bucket's size. The
names of new files come from bucket, batch and fingerprint, and what is in them from the rows alone:
a repeated task writes the same bytes.

Deleted keys are kept for ever, below `_varve/`, with what orders their records: an older record may
still come by another partition or out of the quarantine, and must not bring its row back.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.lake.files.blocks import column_bytes, in_blocks
from pipeline.lake.files.data_file import BucketNames, DataFile
from pipeline.lake.files.file_writer import FileWriter
from pipeline.lake.files.stored_rows import stored_rows
from pipeline.lake.keyed.merge import merged
from pipeline.lake.runs.row_order import (
    DELETES,
    kinds_of,
    merging_schema,
    with_kind,
    without_kind,
)
from pipeline.lake.runs.run_file import OPTIONS, RunPart, read_part
from pipeline.lake.schemas.columns import ORDER_TIME, TIMESTAMP
from pipeline.lake.stores.table_store import TableStore
from pipeline.lake.work.task import TableTarget

WAYS: Final = 16
"""Streams that are merged at once; more runs are merged in rounds, on this machine's disk."""

ROUND_ROWS: Final = 4_096
"""Rows of a block between rounds, at most."""


class RunRows(NamedTuple):
    """Rows of one bucket in one run.

    Attributes:
        key, part: Where.
        order_time: The order time before the first record of the run's task.
    """

    key: str
    part: RunPart
    order_time: int


class BucketTask(NamedTuple):
    """Files and runs to merge. Pickled; holds no secret.

    Attributes:
        names: Of new files.
        deleted_key: Of the new file of deleted keys.
        files: Of the bucket, in groups that are sorted each.
        deleted: File of keys deleted before; empty: none.
        runs: Of the batch.
    """

    names: BucketNames
    deleted_key: str
    files: tuple[tuple[str, ...], ...]
    deleted: str
    runs: tuple[RunRows, ...]


class BucketSpec(NamedTuple):
    """Settings that all tasks of a commit share. Pickled.

    Attributes:
        target: The table.
        rows: Its columns.
        identity: The column of keys' bytes.
    """

    target: TableTarget
    rows: pa.Schema
    identity: str


class BucketResult(NamedTuple):
    """Result of a task.

    Attributes:
        bucket: Which.
        files: Published, not committed.
        deleted_file: Of deleted keys; empty: there are none.
        upserted: Keys whose row is new.
        deleted: Rows of the table that are gone.
    """

    bucket: int
    files: tuple[DataFile, ...]
    deleted_file: str
    upserted: int
    deleted: int


def run_bucket_task(task: BucketTask, spec: BucketSpec) -> BucketResult:
    """Do it.

    Raises:
        TaskFailedError: A file is gone: another job has committed.
        ForeignTableError: Files of the bucket are not sorted.
    """
    store = spec.target.open_store()
    writer = FileWriter(store, task.names, spec.target.writer)
    with ExitStack() as held:
        held.callback(writer.discard)
        deleted = held.enter_context(_DeletedKeys(store, task.deleted_key, spec))
        present = [_present(store, keys, spec.rows) for keys in task.files]
        if task.deleted:
            present.append(deleted_rows(store, task.deleted, spec.rows))
        merge = BucketMerge(store, spec.rows, spec.identity, task.deleted_key)
        held.callback(merge.close)
        rows = merge.rows(present, task.runs, deleted.write)
        for block in in_blocks(rows, sizes_of=column_bytes):
            writer.write(block, int(column_bytes(block).sum()))
        return BucketResult(
            task.names.bucket, writer.finish(), deleted.finish(), merge.upserted, merge.deleted
        )


def _present(store: TableStore, keys: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for key in keys:
        for rows in stored_rows(store, key, schema):
            yield with_kind(rows, 0)


def deleted_rows(store: TableStore, key: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """A file of deleted keys, as a stream to merge."""
    for rows in stored_rows(store, key, schema):
        yield with_kind(rows, DELETES)


class BucketMerge:
    """All streams of a bucket as one, and what is counted of it.

    Attributes:
        upserted, deleted: See `BucketResult`.
    """

    def __init__(
        self, store: TableStore, schema: pa.Schema, identity: str, scratch_key: str
    ) -> None:
        """Nothing is read yet.

        Args:
            store: Where runs are, and scratch files can be.
            schema: Of the table.
            identity: The column of keys' bytes.
            scratch_key: After which scratch files are named.
        """
        self._store = store
        self._schema = schema
        self._identity = identity
        self._scratch_key = f"{scratch_key}.round"
        self._scratch: list[str] = []
        self.upserted = 0
        self.deleted = 0

    def close(self) -> None:
        """Remove scratch files."""
        for path in self._scratch:
            self._store.discard(path)

    def rows(
        self,
        present: Sequence[Iterator[pa.RecordBatch]],
        runs: Sequence[RunRows],
        on_deleted: Callable[[pa.RecordBatch], None],
    ) -> Iterator[pa.RecordBatch]:
        """Rows that the bucket has now, ascending by key; deleted keys are given to `on_deleted`.

        Args:
            present: Sorted streams of what the table has.
            runs: Of a batch.
            on_deleted: Takes rows of deleted keys, ascending by key.
        """
        streams = self._rounds(runs, max(1, WAYS - len(present)))
        for part in merged([*present, *streams], self._identity):
            self.upserted += part.upserted
            self.deleted += part.deleted
            gone = (kinds_of(part.rows) & DELETES) != 0
            if gone.any():
                on_deleted(part.rows.filter(pa.array(gone)))
                yield without_kind(part.rows.filter(pa.array(~gone)))
            else:
                yield without_kind(part.rows)

    def _run(self, run: RunRows) -> Iterator[pa.RecordBatch]:
        for rows in read_part(self._store, run.key, run.part):
            yield _not_before(rows, run.order_time)

    def _rounds(self, runs: Sequence[RunRows], ways: int) -> list[Iterator[pa.RecordBatch]]:
        """At most `ways` streams of all runs: where there are more, some are merged first."""
        waiting = [self._run(run) for run in runs]
        while len(waiting) > ways:
            some, waiting = waiting[:WAYS], waiting[WAYS:]
            waiting.append(self._aside(some))
        return waiting

    def _aside(self, streams: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        path = self._store.scratch_path(self._scratch_key)
        self._scratch.append(path)
        schema = merging_schema(self._schema)
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, schema, options=OPTIONS) as out:
            rows = (part.rows for part in merged(streams, self._identity))
            for block in in_blocks(rows, block_rows=ROUND_ROWS, sizes_of=column_bytes):
                out.write_batch(block)
        return _read_round(path)


def _read_round(path: str) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(path, "rb") as source, pa.ipc.open_stream(source) as reader:
        yield from reader


def _not_before(rows: pa.RecordBatch, order_time: int) -> pa.RecordBatch:
    """Rows of a run, whose order times are those of its task alone, put behind earlier tasks'."""
    at = rows.schema.get_field_index(ORDER_TIME)
    times = rows.column(at).cast(pa.int64()).to_numpy()
    later = pa.array(np.maximum(times, order_time)).cast(TIMESTAMP)
    return rows.set_column(at, rows.schema.field(at), later)


class _DeletedKeys:
    """Writes the keys that are deleted, and what orders their records."""

    def __init__(self, store: TableStore, key: str, spec: BucketSpec) -> None:
        names = dict.fromkeys((spec.identity, ORDER_TIME, "partition", "offset"))
        self._schema = pa.schema([spec.rows.field(name) for name in names])
        self._store = store
        self._key = key
        self._path = ""
        self._writer: pq.ParquetWriter | None = None
        self._held: list[pa.RecordBatch] = []
        self._rows = 0

    def __enter__(self) -> "_DeletedKeys":
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()
            self._store.discard(self._path)

    def write(self, rows: pa.RecordBatch) -> None:
        """Ascending by key over all calls."""
        self._held.append(rows.select(self._schema.names))
        self._rows += rows.num_rows
        if self._rows >= ROUND_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._writer is None:
            self._path = self._store.scratch_path(self._key)
            self._writer = pq.ParquetWriter(self._path, self._schema, compression="zstd")
        self._writer.write_table(pa.Table.from_batches(self._held, self._schema))
        self._held, self._rows = [], 0

    def finish(self) -> str:
        """Its key; empty: nothing was written."""
        if self._held:
            self._flush()
        if self._writer is None:
            return ""
        self._writer.close()
        self._writer = None
        self._store.publish(self._path, self._key)
        return self._key
