"""Cutting a stream of record batches into blocks where only the rows decide where.

Readers give batches as chunks and answers happen to fall. What a task writes must not depend on
that: who repeats it makes the same bytes. So a block ends behind the row with which it has
`block_bytes` of keys and values or `block_rows` rows, wherever batches ended.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

BLOCK_BYTES: Final = 1024 * 1024
BLOCK_ROWS: Final = 32_768


def in_blocks(
    batches: Iterable[pa.RecordBatch],
    *,
    block_bytes: int = BLOCK_BYTES,
    block_rows: int = BLOCK_ROWS,
) -> Iterator[pa.RecordBatch]:
    """Blocks of the same rows in the same order; see the module. No block is empty.

    Args:
        batches: Of one schema, with columns key and value.
        block_bytes: Of keys and values; a row larger than that is in a block with those before it.
        block_rows: Most rows of a block.
    """
    held: list[pa.RecordBatch] = []
    filled = rows = 0
    for batch in batches:
        sizes = np.cumsum(row_bytes(batch))
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


def row_bytes(batch: pa.RecordBatch) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Bytes of key and value, per row."""
    total = np.zeros(batch.num_rows, np.int64)
    for name in ("key", "value"):
        if name in batch.schema.names:
            lengths = pc.fill_null(pc.binary_length(batch.column(name)), 0)
            total += lengths.to_numpy(zero_copy_only=False)
    return total


def _joined(held: list[pa.RecordBatch]) -> pa.RecordBatch:
    return held[0] if len(held) == 1 else pa.concat_batches(held)
