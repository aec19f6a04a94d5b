"""Order of the records of a key, and the bucket that a key belongs to.

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

from pipeline.lake.schemas.columns import ORDER_TIME, TIMESTAMP
from pipeline.lake.values.converter import Converted

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
    """The kinds that `with_kind` added."""
    return np.asarray(rows.column(KIND).to_numpy())


def without_kind(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of the table."""
    return rows.drop_columns([KIND])


class OrderedRows:
    """Gives the rows of a partition, block by block, their order time and kind.

    Attributes:
        newest_us: The greatest timestamp so far, microseconds.
    """

    def __init__(self) -> None:
        self.newest_us = NO_TIME

    def rows(self, block: pa.RecordBatch, converted: Converted) -> pa.RecordBatch:
        """The rows of a block, with `_kind`.

        Args:
            block: All its records, ascending by offset.
            converted: What they became.
        """
        if not block.num_rows:
            return with_kind(converted.rows, 0)
        times = block.column("timestamp").cast(pa.int64()).to_numpy()
        times = np.maximum(np.maximum.accumulate(times), self.newest_us)
        self.newest_us = int(times[-1])
        rows = converted.rows
        at = np.searchsorted(block.column("offset").to_numpy(), rows.column("offset").to_numpy())
        column = rows.schema.get_field_index(ORDER_TIME)
        ordered = pa.array(times[at]).cast(TIMESTAMP)
        rows = rows.set_column(column, rows.schema.field(column), ordered)
        return with_kind(rows, new_kinds(converted))


def new_kinds(converted: Converted) -> Numbers:
    """Of records of a batch."""
    assert converted.deletes is not None
    return np.where(converted.deletes, NEW | DELETES, NEW)
