"""The order of rows in files that are put together: by time, by key or by offset.

    timestamp   (timestamp, partition, offset)
    key         (key, partition, offset); of a key with fields, those that are plain values
    offset      (partition, offset)

No two rows of a topic are equal in it, so the same rows are in the same order whatever files they
came from. NaN comes behind numbers, null behind all. Texts and bytes order by their bytes.
"""

from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

SortBy: TypeAlias = Literal["timestamp", "key", "offset"]

Place: TypeAlias = tuple[tuple[Any, ...], ...]
"""Where a row belongs, in a form that Python compares as Arrow sorts."""

_NAN: Final[tuple[Any, ...]] = (1,)
_NULL: Final[tuple[Any, ...]] = (2,)

Keys: TypeAlias = list[pa.Array]


def sort_columns(rows: pa.RecordBatch, by: SortBy) -> Keys:
    """Columns by which rows are compared: plain arrays, the first one first."""
    keys: Keys = []
    if by == "timestamp":
        keys.append(rows.column("timestamp").cast(pa.int64()))
    elif by == "key" and "key" in rows.schema.names:
        keys.extend(_leaves(rows.column("key")))
    keys.append(rows.column("partition"))
    keys.append(rows.column("offset"))
    return keys


def _leaves(column: pa.Array) -> Iterator[pa.Array]:
    kind = column.type
    if pa.types.is_struct(kind):
        # `flatten` carries the struct's own nulls into its fields.
        for child in column.flatten():
            yield from _leaves(child)
    elif pa.types.is_temporal(kind):
        yield column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    elif not pa.types.is_nested(kind) and not pa.types.is_null(kind):
        yield column


def sorted_indices(keys: Keys) -> pa.Array:
    """Positions of the rows in ascending order."""
    names = [f"k{at}" for at in range(len(keys))]
    table = pa.Table.from_arrays(keys, names=names)
    order = [(name, "ascending") for name in names]
    return pc.sort_indices(table, sort_keys=order)


def place(keys: Keys, row: int) -> Place:
    """Of one row."""
    return tuple(_comparable(column[row].as_py()) for column in keys)


def _comparable(value: Any) -> tuple[Any, ...]:
    if value is None:
        return _NULL
    if value != value:  # NaN alone
        return _NAN
    return (0, value)


def in_order(rows: pa.RecordBatch, by: SortBy) -> pa.RecordBatch:
    """The same rows, ascending."""
    return rows.take(sorted_indices(sort_columns(rows, by)))


def rows_up_to(keys: Keys, start: int, bound: Place) -> int:
    """Number of rows of a sorted block, from `start` on, that are not beyond `bound`."""
    low, high = start, len(keys[-1])
    while low < high:
        middle = (low + high) // 2
        if place(keys, middle) <= bound:
            low = middle + 1
        else:
            high = middle
    return low - start
