"""Sorted streams of rows made one, of each key the last record: never more than a block of each.

    stream a   [b d f] [h k] ...      rows up to the least of the last keys (f) are taken of all,
    stream b   [a c g z] ...          sorted, and of equal keys the last in order is kept
                                      (`pipeline.lake.runs.row_order`)

A stream has each key once, ascending by bytes.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.lake.errors import ForeignTableError
from pipeline.lake.runs.row_order import DELETES, NEW, Numbers, kinds_of
from pipeline.lake.schemas.columns import ORDER_TIME

RELEASE_EVERY: Final = 4
"""Rounds after which the allocator gives back what blocks took: it would keep tens of MB."""


class Merged(NamedTuple):
    """Rows of one round.

    Attributes:
        rows: The last record of each key, ascending by key.
        upserted: How many of them are new.
        deleted: Rows of the table that a new record deletes.
    """

    rows: pa.RecordBatch
    upserted: int
    deleted: int


class _Stream:
    """A stream and what was read of it and not taken yet."""

    def __init__(self, batches: Iterable[pa.RecordBatch], identity: str) -> None:
        self._batches = iter(batches)
        self._identity = identity
        self._last: bytes | None = None
        self.rows: pa.RecordBatch | None = None
        self.keys: pa.Array = pa.array([], pa.binary())
        self.advance()

    def advance(self) -> None:
        """Read on where nothing is left; `rows` is None at the end."""
        while self.rows is None or not self.rows.num_rows:
            self.rows = next(self._batches, None)
            if self.rows is None:
                return
            self.keys = self.rows.column(self._identity).cast(pa.binary())
            self._check()

    def _check(self) -> None:
        if not len(self.keys):
            return
        rising = pc.less(self.keys[:-1], self.keys[1:])
        first: bytes = self.keys[0].as_py()
        if (self._last is not None and first <= self._last) or not pc.all(
            rising, min_count=0
        ).as_py():
            raise ForeignTableError("files of a key bucket are not sorted by key any more")
        self._last = self.keys[-1].as_py()

    @property
    def end(self) -> bytes:
        """The last key that was read."""
        assert self._last is not None
        return self._last

    def taken(self, bound: bytes) -> pa.RecordBatch:
        """Rows up to a key; they are gone from here then."""
        assert self.rows is not None
        if bound >= self.end:
            end = self.rows.num_rows
        else:
            end = pc.search_sorted(self.keys, pa.scalar(bound, pa.binary()), side="right").as_py()
        rows = self.rows.slice(0, end)
        self.rows, self.keys = self.rows.slice(end), self.keys[end:]
        return rows


def merged(streams: Sequence[Iterable[pa.RecordBatch]], identity: str) -> Iterator[Merged]:
    """All streams as one; see the module.

    Args:
        streams: Of one schema, with the column `_kind`.
        identity: The column of keys' bytes.

    Raises:
        ForeignTableError: A stream is not sorted.
    """
    open_streams = [_Stream(batches, identity) for batches in streams]
    for number in count(1):
        if number % RELEASE_EVERY == 0:
            pa.default_memory_pool().release_unused()
        open_streams = [stream for stream in open_streams if stream.rows is not None]
        if not open_streams:
            return
        bound = min(stream.end for stream in open_streams)
        parts = [rows for stream in open_streams if (rows := stream.taken(bound)).num_rows]
        yield _last_of_each(parts, identity)
        for stream in open_streams:
            stream.advance()


def _last_of_each(parts: list[pa.RecordBatch], identity: str) -> Merged:
    if len(parts) == 1:
        kinds = kinds_of(parts[0])
        return Merged(parts[0], int((kinds == NEW).sum()), 0)
    rows = pa.concat_batches(parts)
    keys = rows.column(identity).cast(pa.binary())
    order = pc.sort_indices(keys).to_numpy()
    ordered = keys.take(pa.array(order))
    begins = np.ones(len(order), bool)
    begins[1:] = pc.not_equal(ordered[1:], ordered[:-1]).to_numpy(zero_copy_only=False)
    kinds = kinds_of(rows)
    deleted = 0
    if not begins.all():
        order, begins = _in_order(rows, order, begins)
        group = np.cumsum(begins) - 1
        lasts = order[np.append(begins[1:], True)]
        had_row = np.zeros(len(lasts), bool)
        had_row[group[kinds[order] == 0]] = True
        deleted = int((had_row & (kinds[lasts] == NEW | DELETES)).sum())
        order = lasts
    upserted = int((kinds[order] == NEW).sum())
    return Merged(rows.take(pa.array(order)), upserted, deleted)


def _in_order(rows: pa.RecordBatch, order: Numbers, begins: Numbers) -> tuple[Numbers, Numbers]:
    """Rows of equal keys put into their order; they are few, so only these are sorted."""
    ends = np.append(begins[1:], True)
    several = np.flatnonzero(~(begins & ends))
    group = (np.cumsum(begins) - 1)[several]
    at = order[several]
    times = rows.column(ORDER_TIME).cast(pa.int64()).to_numpy()[at]
    partitions = rows.column("partition").to_numpy()[at]
    offsets = rows.column("offset").to_numpy()[at]
    times = _not_falling(times, partitions, offsets, group)
    sorted_order = order.copy()
    sorted_order[several] = at[np.lexsort((offsets, partitions, times, group))]
    return sorted_order, begins


def _not_falling(times: Numbers, partitions: Numbers, offsets: Numbers, group: Numbers) -> Numbers:
    """Order times that do not fall within a partition; those of rows out of a quarantine may.

    They are these records' own times, which are at most their order times.
    """
    by_offset = np.lexsort((offsets, partitions, group))
    same = np.diff(group[by_offset]) == 0
    same &= np.diff(partitions[by_offset]) == 0
    if not (same & (np.diff(times[by_offset]) < 0)).any():
        return times
    risen = times.copy()
    for before, after in zip(
        by_offset[:-1][same].tolist(), by_offset[1:][same].tolist(), strict=True
    ):
        risen[after] = max(risen[after], risen[before])
    return risen
