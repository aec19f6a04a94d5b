"""Rows of a table's Parquet file, block by block, with all columns that the table has by now."""

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.lake.files.table_rows import shaped
from pipeline.lake.stores.stored_bytes import StoredBytes
from pipeline.lake.stores.table_store import TableStore

BLOCK_BYTES: Final = 1024 * 1024
"""Size of the rows that are read at once, by a row group's mean row."""

BLOCK_ROWS: Final = 32_768

BUFFER_BYTES: Final = 1024 * 1024
"""Of each column, that are read at once: a row group of others may have hundreds of MB."""


def stored_rows(
    store: TableStore, key: str, schema: pa.Schema, block_bytes: int = BLOCK_BYTES
) -> Iterator[pa.RecordBatch]:
    """Rows of a file in its order: of a row group no more than its bytes and a block are held.

    Args:
        store: Of the table.
        key: Of the file.
        schema: Of the table: see `shaped`.
        block_bytes: See `BLOCK_BYTES`.

    Raises:
        TaskFailedError: The file is not there.
    """
    source = pa.PythonFile(StoredBytes(store, key), mode="r")
    with pq.ParquetFile(source, buffer_size=BUFFER_BYTES) as file:
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            rows = max(1, group.num_rows)
            at_once = max(1, min(BLOCK_ROWS, block_bytes * rows // max(1, group.total_byte_size)))
            for batch in file.iter_batches(at_once, row_groups=[number], use_threads=False):
                yield shaped(batch, schema, {})
