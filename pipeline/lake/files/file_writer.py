"""Rows into Parquet files: zstd, one folder per value the table is partitioned by, bounded memory.

    rows ─> per values a buffer ─ 8 MiB in all: the largest ─> a row group ─> scratch file
                                                                 `target_file_bytes` ─> published

A file is published whole when it has its size or when the task ends; one of a task that fails is
discarded. Where row groups and files end follows from the rows alone
(`pipeline.lake.files.blocks`).
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.lake.errors import TableUnavailableError
from pipeline.lake.files.data_file import DataFile, Names
from pipeline.lake.files.partition_values import split
from pipeline.lake.settings.config import PartitionField
from pipeline.lake.stores.table_store import TableStore

BUFFERED_BYTES: Final = 8 * 1024 * 1024
"""Rows of all buffers of one task."""

OPEN_FILES_MAX: Final = 16
"""Of one task; the one with the most bytes is published when another is needed."""

COMPRESSION: Final = "zstd"
COMPRESSION_LEVEL: Final = 1

Values: TypeAlias = tuple[tuple[str, str], ...]


class WriterOptions(NamedTuple):
    """Options of a table's files.

    Attributes:
        partition_by: Fields that files are partitioned by.
        keeps_partition_columns: Whether a file holds columns it is partitioned by (identity).
        target_file_bytes: A file ends with the row group that reaches it.
    """

    partition_by: tuple[PartitionField, ...] = ()
    keeps_partition_columns: bool = True
    target_file_bytes: int = 128 * 1024 * 1024


class _Buffer:
    """Rows that are in no row group yet."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.size = 0


class _OpenFile:
    """A scratch file and what is known of its rows."""

    def __init__(self, path: str, key: str, schema: pa.Schema) -> None:
        self.path = path
        self.key = key
        self.sink: Any = pa.OSFile(path, "wb")
        self.writer = pq.ParquetWriter(
            self.sink,
            schema,
            compression=COMPRESSION,
            compression_level=COMPRESSION_LEVEL,
            coerce_timestamps=None,
            write_statistics=True,
        )
        self.rows = 0
        self.offsets: tuple[int, int] | None = None
        self.times: tuple[int, int] | None = None

    def write(self, table: pa.Table, coordinates: pa.Table) -> None:
        self.writer.write_table(table, row_group_size=max(1, table.num_rows))
        self.rows += table.num_rows
        self.offsets = _range(coordinates.column("offset"), self.offsets)
        micros = coordinates.column("timestamp").cast(pa.int64())
        self.times = _range(micros, self.times)

    def close(self) -> None:
        self.writer.close()
        self.sink.close()


class FileWriter:
    """Writes the rows of one task; see the module. Ended by `finish` or `discard`."""

    def __init__(self, store: TableStore, names: Names, options: WriterOptions) -> None:
        self._store = store
        self._names = names
        self._options = options
        self._dropped = {
            field.name
            for field in options.partition_by
            if field.transform == "identity" and not options.keeps_partition_columns
        }
        self._buffers: dict[Values, _Buffer] = {}
        self._open: dict[Values, _OpenFile] = {}
        self._buffered = 0
        self._number = 0
        self._done: list[DataFile] = []

    def write(self, batch: pa.RecordBatch, weight: int) -> None:
        """Take rows, all of one schema; a later call may have another one.

        Args:
            batch: With the coordinates and all other columns of the table.
            weight: Bytes that the rows count for against `BUFFERED_BYTES`: as `row_width` and what
                was read say, not as Arrow counts them, since that depends on how it was read.
        """
        if batch.num_rows == 0:
            return
        for values, part in split(batch, self._options.partition_by):
            buffer = self._buffers.setdefault(values, _Buffer())
            if buffer.batches and buffer.batches[-1].schema != part.schema:
                self._flush(values)
                self._publish(values)
                buffer = self._buffers.setdefault(values, _Buffer())
            buffer.batches.append(part)
            size = weight * part.num_rows // batch.num_rows
            buffer.size += size
            self._buffered += size
        while self._buffered >= BUFFERED_BYTES:
            self._flush(max(self._buffers, key=lambda values: self._buffers[values].size))

    def _flush(self, values: Values) -> None:
        """One row group of what is buffered."""
        buffer = self._buffers.pop(values)
        self._buffered -= buffer.size
        # Chunk by chunk as blocks came, which the rows decide as well; joining would copy them.
        rows = pa.Table.from_batches(buffer.batches)
        table = rows.drop_columns([n for n in rows.column_names if n in self._dropped])
        file = self._open.get(values)
        if file is not None and file.writer.schema != table.schema:
            self._publish(values)
            file = None
        if file is None:
            file = self._begin(values, table.schema)
        with self._translated_errors():
            file.write(table, rows.select(["offset", "timestamp"]))
        if file.sink.tell() >= self._options.target_file_bytes:
            self._publish(values)

    def _begin(self, values: Values, schema: pa.Schema) -> _OpenFile:
        if len(self._open) >= OPEN_FILES_MAX:
            self._publish(max(self._open, key=lambda v: self._open[v].sink.tell()))
        key = self._names.key(values, self._number)
        self._number += 1
        path = self._store.scratch_path(key)
        try:
            with self._translated_errors():
                file = _OpenFile(path, key, schema)
        except TableUnavailableError:
            self._store.discard(path)
            raise
        self._open[values] = file
        return file

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """A scratch file that cannot be written: most often its disk is full."""
        try:
            yield
        except OSError as error:
            raise TableUnavailableError(f"{self._store.uri}: {error}") from error

    def _publish(self, values: Values) -> None:
        file = self._open.get(values)
        if file is None:
            return
        with self._translated_errors():
            file.close()
        size = self._store.publish(file.path, file.key)
        del self._open[values]
        assert file.offsets is not None
        assert file.times is not None
        self._done.append(
            DataFile(
                file.key,
                size,
                file.rows,
                self._names.partition,
                *file.offsets,
                *file.times,
                values,
            )
        )

    def finish(self) -> tuple[DataFile, ...]:
        """Publish what is left; all files of the task."""
        for values in list(self._buffers):
            self._flush(values)
        for values in list(self._open):
            self._publish(values)
        return tuple(self._done)

    def discard(self) -> None:
        """Remove scratch files; what was published stays, and is overwritten by a repeated task."""
        for file in self._open.values():
            # What it writes at its end goes to the scratch file, too.
            try:
                # One that failed to close before says so again, each library in its own way.
                with suppress(OSError, ValueError, pa.ArrowException):
                    file.close()
            finally:
                self._store.discard(file.path)
        self._open.clear()
        self._buffers.clear()


def row_width(schema: pa.Schema) -> int:
    """Bytes of a row in Arrow without strings and lists, which count with what was read."""
    return sum(_width(field.type) for field in schema)


def _width(kind: pa.DataType) -> int:
    if pa.types.is_struct(kind):
        return sum(_width(kind.field(index).type) for index in range(kind.num_fields))
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return 8


def _range(column: pa.ChunkedArray, before: tuple[int, int] | None) -> tuple[int, int]:
    found = pc.min_max(column)
    least, most = found["min"].as_py(), found["max"].as_py()
    if before is None:
        return least, most
    return min(least, before[0]), max(most, before[1])
