"""Rows of many files in one order, in bounded memory: sorted runs on the local disk, then merged.

    rows ─ `RUN_BYTES` ─> sorted ─> run file (Arrow IPC, LZ4), blocks of `BLOCK_BYTES`
                                        │ at most `FAN_IN` at once, else merged into longer runs
                                        └─> merged ─> batches in order

Rows that fit one run never touch the disk. Otherwise the disk takes about what the rows take in
Arrow, twice where runs are merged into longer ones.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from pipeline.lake.maintain.sort_order import (
    Keys,
    SortBy,
    in_order,
    place,
    rows_up_to,
    sort_columns,
)

RUN_BYTES: Final = 16 * 1024 * 1024
"""Of rows that are sorted at once; sorting holds them twice."""

BLOCK_BYTES: Final = 256 * 1024

MERGE_BYTES: Final = 24 * 1024 * 1024
"""Of the blocks that a merge holds at once, where single rows are not larger."""

FAN_IN: Final = 32


class _Run(NamedTuple):
    """A file of rows in order; `largest_block` in bytes."""

    path: str
    largest_block: int


def merged(
    batches: Iterable[pa.RecordBatch],
    by: SortBy,
    folder: str,
    *,
    run_bytes: int = RUN_BYTES,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[pa.RecordBatch]:
    """All rows in order, in batches of about `block_bytes` up to `MERGE_BYTES`.

    Args:
        batches: Of one schema, in any order.
        by: The order.
        folder: A local folder for run files; the caller removes it.
        run_bytes: See `RUN_BYTES`.
        block_bytes: See `BLOCK_BYTES`.
    """
    runs: list[_Run] = []
    held: list[pa.RecordBatch] = []
    size = 0
    numbers = iter(range(1 << 62))

    def path() -> str:
        return str(Path(folder) / f"run-{next(numbers)}.arrow")

    for batch in batches:
        for piece in cut(batch, run_bytes // 4):
            if held and size + piece.nbytes > run_bytes:
                runs.append(_write(path(), _sorted(held, by, block_bytes), block_bytes))
                held, size = [], 0
            held.append(piece)
            size += piece.nbytes
    if not runs:
        yield from _sorted(held, by, block_bytes)
        return
    if held:
        runs.append(_write(path(), _sorted(held, by, block_bytes), block_bytes))
    held = []
    while len(runs) > (many := _fan_in(runs)):
        some, runs = runs[:many], runs[many:]
        runs.append(_write(path(), _merge(some, by), block_bytes))
        for one in some:
            Path(one.path).unlink()
    yield from _merge(runs, by)


def _fan_in(runs: Sequence[_Run]) -> int:
    largest = max(run.largest_block for run in runs)
    return max(2, min(FAN_IN, MERGE_BYTES // max(1, largest)))


def cut(batch: pa.RecordBatch, most: int) -> Iterator[pa.RecordBatch]:
    """A batch in parts of at most `most` bytes, or of one row."""
    if batch.num_rows == 0:
        return
    if batch.num_rows == 1 or batch.nbytes <= most:
        yield batch
        return
    half = batch.num_rows // 2
    yield from cut(batch.slice(0, half), most)
    yield from cut(batch.slice(half), most)


def _sorted(held: list[pa.RecordBatch], by: SortBy, block_bytes: int) -> Iterator[pa.RecordBatch]:
    if held:
        rows = pa.concat_batches(held)
        held.clear()
        yield from cut(in_order(rows, by), block_bytes)


def _write(path: str, batches: Iterable[pa.RecordBatch], block_bytes: int) -> _Run:
    largest = 0
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with ExitStack() as held:
        sink = held.enter_context(pa.OSFile(path, "wb"))
        writer: Any = None
        for batch in batches:
            for block in cut(batch, block_bytes):
                if writer is None:
                    writer = held.enter_context(
                        pa.ipc.new_stream(sink, block.schema, options=options)
                    )
                writer.write_batch(block)
                largest = max(largest, block.nbytes)
    return _Run(path, largest)


class _Cursor:
    """Position of a merge in one run."""

    def __init__(self, source: Iterator[pa.RecordBatch], by: SortBy) -> None:
        self._source = source
        self._by: SortBy = by
        self._next: pa.RecordBatch | None = next(source, None)
        self.rows: pa.RecordBatch | None = None
        self.keys: Keys = []
        self.start = 0
        self.load()

    def load(self) -> None:
        """The next block, if the last one is used up."""
        while self.rows is None or self.start == self.rows.num_rows:
            if self._next is None:
                self.rows = None
                return
            self.rows, self.start = self._next, 0
            self.keys = sort_columns(self.rows, self._by)
            self._next = next(self._source, None)

    @property
    def has_more(self) -> bool:
        """Whether there is a block behind this one."""
        return self._next is not None

    def take(self, count: int) -> pa.RecordBatch:
        assert self.rows is not None
        taken = self.rows.slice(self.start, count)
        self.start += count
        return taken


def _merge(runs: Sequence[_Run], by: SortBy) -> Iterator[pa.RecordBatch]:
    """Rows up to the least last row of all blocks are complete: they are sorted and given out."""
    with ExitStack() as held:
        cursors = []
        for run in runs:
            source = held.enter_context(pa.OSFile(run.path, "rb"))
            reader = held.enter_context(pa.ipc.open_stream(source))
            cursors.append(_Cursor(iter(reader), by))
        while cursors := [cursor for cursor in cursors if cursor.rows is not None]:
            bounds = [place(one.keys, len(one.keys[-1]) - 1) for one in cursors if one.has_more]
            parts = []
            for cursor in cursors:
                assert cursor.rows is not None
                count = cursor.rows.num_rows - cursor.start
                if bounds:
                    count = rows_up_to(cursor.keys, cursor.start, min(bounds))
                if count:
                    parts.append(cursor.take(count))
                cursor.load()
            if len(parts) == 1:
                yield parts[0]
            else:
                yield in_order(pa.concat_batches(parts), by)
