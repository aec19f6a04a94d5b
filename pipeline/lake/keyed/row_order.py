"""Which record of a key is the last, and in which bucket a key is.

A key is its bytes, as for Kafka's own compaction: what decodes alike and differs in bytes is two
keys. A bucket is CRC-32 of the bytes, modulo their number.

Records are in one order, which depends on the log alone and not on how it was cut into batches:

    order time   the greatest timestamp of the partition's records up to this one
    partition    the higher number is the later one
    offset

Within a partition that is the order of offsets. Where a key stands in two partitions (the topic has
grown), the later time decides.

While rows are merged they have one more column, `_kind`:

    bit 0   1: of the batch that is made, 0: of the table
    bit 1   1: the record deletes its key, and has no columns but those that order it
"""

import zlib
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

KIND: Final = "_kind"
NEW: Final = 1
DELETES: Final = 2

NO_TIME: Final = -(1 << 63)
"""Before the first record of a partition."""

Numbers: TypeAlias = np.ndarray[tuple[int], np.dtype[Any]]


def buckets_of(keys: pa.Array, count: int) -> Numbers:
    """The bucket of each key; none is null."""
    sums = map(zlib.crc32, keys.cast(pa.binary()).to_pylist())
    return (np.fromiter(sums, np.uint32, len(keys)) % np.uint32(count)).astype(np.int32)


def merging_schema(rows: pa.Schema) -> pa.Schema:
    """Columns of a table with the one that rows have while they are merged."""
    return rows.append(pa.field(KIND, pa.int8()))


def with_kind(rows: pa.RecordBatch, kinds: Numbers | int) -> pa.RecordBatch:
    """Rows with their column `_kind`: one number for each, or one for all."""
    numbers = np.full(rows.num_rows, kinds, np.int8) if isinstance(kinds, int) else kinds
    column = pa.array(numbers.astype(np.int8, copy=False))
    return pa.RecordBatch.from_arrays([*rows.columns, column], schema=merging_schema(rows.schema))


def kinds_of(rows: pa.RecordBatch) -> Numbers:
    """What `with_kind` gave them."""
    return np.asarray(rows.column(KIND).to_numpy())


def without_kind(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of the table."""
    return rows.drop_columns([KIND])
