"""The rows of a task into runs: sorted by bucket and key, the last record of each key, bounded.

    rows ─> 8 MiB ─>  sorted, older records of a key dropped ─┬─> at most half is left: continue
                                                               └─> a run is published

Where a run ends follows from the rows alone, so that a repeated task publishes the same bytes.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.lake.batch.batch_plan import TaskRange
from pipeline.lake.runs.row_order import Numbers, buckets_of, merging_schema
from pipeline.lake.runs.run_file import Run, RunFile, run_key
from pipeline.lake.stores.table_store import TableStore

BUFFERED_BYTES: Final = 8 * 1024 * 1024
"""Rows that are sorted at once: of one task."""

BLOCK_BYTES: Final = 512 * 1024
"""Rows of a run that a merge reads at once, about."""


class RunWriter:
    """Writes the runs of one task; see the module. Ended by `finish` or `discard`."""

    def __init__(
        self,
        store: TableStore,
        folder: str,
        task: TaskRange,
        buckets: int,
        identity: str,
        rows: pa.Schema,
        buffered_bytes: int = BUFFERED_BYTES,
    ) -> None:
        """Nothing is written yet.

        Args:
            store: Of the table.
            folder: Of the batch's runs.
            task: Whose rows they are: runs are named by it.
            buckets: Of the table.
            identity: The column of keys' bytes.
            rows: Columns of the table.
            buffered_bytes: See `BUFFERED_BYTES`.
        """
        self._store = store
        self._folder = folder
        self._task = task
        self._count = buckets
        self._identity = identity
        self._schema = merging_schema(rows)
        self._limit = buffered_bytes
        self._held: list[pa.RecordBatch] = []
        self._buckets: list[Numbers] = []
        self._size = 0
        self._runs: list[Run] = []
        self._file: RunFile | None = None

    def write(self, rows: pa.RecordBatch, weight: int) -> None:
        """Take rows with the column `_kind`, later records behind earlier ones.

        Args:
            rows: Of one partition, in the order of offsets over all calls.
            weight: Bytes they count for, by their rows and what was read.
        """
        if not rows.num_rows:
            return
        self._held.append(rows)
        self._buckets.append(buckets_of(rows.column(self._identity), self._count))
        self._size += weight
        if self._size < self._limit:
            return
        rows, buckets, size = self._sorted()
        if size <= self._limit // 2:
            self._held, self._buckets, self._size = [rows], [buckets], size
        else:
            self._publish(rows, buckets, size)

    def _sorted(self) -> tuple[pa.RecordBatch, Numbers, int]:
        """The last records of all that is held, their buckets and weight; nothing is held then."""
        rows = pa.concat_batches(self._held)
        buckets = np.concatenate(self._buckets)
        size, before = self._size, rows.num_rows
        self._held, self._buckets, self._size = [], [], 0
        keys = rows.column(self._identity).cast(pa.binary())
        # Both sorts keep the order of what is equal: the last record stays the last.
        order = pc.sort_indices(keys).to_numpy().astype(np.int64)
        order = order[np.argsort(buckets[order].astype(np.uint16), kind="stable")]
        ordered = keys.take(pa.array(order))
        last = np.ones(len(order), bool)
        last[:-1] = pc.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False)
        order = order[last]
        return rows.take(pa.array(order)), buckets[order], size * len(order) // before

    def _publish(self, rows: pa.RecordBatch, buckets: Numbers, size: int) -> None:
        key = run_key(self._folder, self._task, len(self._runs))
        self._file = RunFile(self._store, key)
        block = max(1, rows.num_rows * BLOCK_BYTES // max(size, 1))
        bounds = np.flatnonzero(np.diff(buckets, prepend=-1, append=-1))
        for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            part = rows.slice(start, end - start)
            self._file.write(int(buckets[start]), _blocks(part, block), self._schema)
        self._runs.append(self._file.publish())
        # What sorting took would stay with the allocator, and count against the worker.
        pa.default_memory_pool().release_unused()
        self._file = None

    def finish(self) -> tuple[Run, ...]:
        """Publish what is left; all runs of the task."""
        if self._held:
            self._publish(*self._sorted())
        return tuple(self._runs)

    def discard(self) -> None:
        """Remove a scratch file; runs that were published go with the batch's."""
        if self._file is not None:
            self._file.discard()
            self._file = None
        self._held, self._buckets = [], []


def _blocks(rows: pa.RecordBatch, count: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows.num_rows, count):
        yield rows.slice(start, count)
