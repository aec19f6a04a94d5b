"""Cutting a stream of record batches into blocks where only the rows decide where.

Readers give batches as chunks and answers happen to fall. What a task writes must not depend on
that: a repeated task makes the same bytes. So a block ends behind the row with which it has
`block_bytes` of keys and values or `block_rows` rows, wherever batches ended.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Sizes: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]

BLOCK_BYTES: Final = 1024 * 1024
BLOCK_ROWS: Final = 32_768


def in_blocks(
    batches: Iterable[pa.RecordBatch],
    *,
    block_bytes: int = BLOCK_BYTES,
    block_rows: int = BLOCK_ROWS,
    sizes_of: Callable[[pa.RecordBatch], Sizes] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Blocks of the same rows in the same order; see the module. No block is empty.

    Args:
        batches: Of one schema, with columns key and value, or as `sizes_of` wants them.
        block_bytes: Of keys and values; a row larger than that is in a block with those before it.
        block_rows: Most rows of a block.
        sizes_of: Bytes of each row; none: `row_bytes`. They follow from the row alone.
    """
    sizes_of = sizes_of or row_bytes
    held: list[pa.RecordBatch] = []
    filled = rows = 0
    for batch in batches:
        sizes = np.cumsum(sizes_of(batch))
        position = 0
        taken = 0
        while position < batch.num_rows:
            by_bytes = int(np.searchsorted(sizes, taken + block_bytes - filled, side="left")) + 1
            end = min(batch.num_rows, by_bytes, position + block_rows - rows)
            held.append(batch.slice(position, end - position))
            filled += int(sizes[end - 1]) - taken
            rows += end - position
            taken = int(sizes[end - 1])
            position = end
            if filled >= block_bytes or rows >= block_rows:
                yield _joined(held)
                held, filled, rows = [], 0, 0
    if held:
        yield _joined(held)


def row_bytes(batch: pa.RecordBatch) -> Sizes:
    """Bytes of key and value, per row."""
    total = np.zeros(batch.num_rows, np.int64)
    for name in ("key", "value"):
        if name in batch.schema.names:
            lengths = pc.fill_null(pc.binary_length(batch.column(name)), 0)
            total += lengths.to_numpy(zero_copy_only=False)
    return total


def value_bytes(column: pa.Array) -> Sizes:
    """Bytes of each value of a column, of any type, whatever form Arrow gives it."""
    kind = column.type
    if pa.types.is_struct(kind):
        total = np.ones(len(column), np.int64)
        for part in column.flatten():
            total += value_bytes(part)
        return total
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        ends = np.cumsum(lengths, dtype=np.int64)
        inner = np.concatenate(([0], np.cumsum(value_bytes(column.flatten()))))
        return np.asarray(inner[ends] - inner[ends - lengths] + 4)
    if pa.types.is_binary(kind) or pa.types.is_string(kind):
        lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
        return np.asarray(lengths.astype(np.int64) + 4)
    return np.full(len(column), max(1, kind.bit_width // 8), np.int64)


def column_bytes(batch: pa.RecordBatch) -> Sizes:
    """Bytes of all columns, per row."""
    total = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        total += value_bytes(column)
    return total


def _joined(held: list[pa.RecordBatch]) -> pa.RecordBatch:
    return held[0] if len(held) == 1 else pa.concat_batches(held)
