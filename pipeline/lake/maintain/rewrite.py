"""One task of a compaction: the rows of some files in order, in one file or a few.

    file by file ─> rows with all columns of the table ─> sorted (`sorted_runs`) ─> `FileWriter`

Runs in an executor's Python worker, or in a process of this machine. A file is left out, with a
sentence, where it is not what the table says or has columns that the table has not. What comes out
is as many rows as went in, or an error.
"""

import tempfile
from collections.abc import Iterator
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.lake.errors import LakeError
from pipeline.lake.files.data_file import SEVERAL, CompactedNames, DataFile
from pipeline.lake.files.file_writer import FileWriter
from pipeline.lake.files.table_rows import shaped, without_place
from pipeline.lake.maintain.sort_order import SortBy
from pipeline.lake.maintain.sorted_runs import cut, merged
from pipeline.lake.sinks.base import TableFile
from pipeline.lake.stores.table_store import TableStore
from pipeline.lake.work.task import TableTarget

ROWS_AT_ONCE: Final = 8_192

WRITE_BYTES: Final = 2 * 1024 * 1024

READ_BUFFER: Final = 256 * 1024


class RowsLostError(LakeError):
    """The rows that came out are not those that went in: none of them may be committed."""


class RewriteTask(NamedTuple):
    """Files that one task rewrites. Pickled; holds no secret.

    Attributes:
        names: Of the new files.
        values: Of the fields the table is partitioned by; all rows have them.
        files: To put together.
    """

    names: CompactedNames
    values: tuple[tuple[str, str], ...]
    files: tuple[TableFile, ...]


class RewriteSpec(NamedTuple):
    """Settings that all tasks share. Pickled.

    Attributes:
        target: Where files are read and written; its writer's target is that of one task's output.
        schema: Of the table.
        sort_by: Order of rows.
    """

    target: TableTarget
    schema: pa.Schema
    sort_by: SortBy


class Rewritten(NamedTuple):
    """Result of a task.

    Attributes:
        files: Published, not committed.
        done: Keys of the files whose rows are in them.
        left_out: Of each other file a sentence, why.
    """

    files: tuple[DataFile, ...]
    done: tuple[str, ...]
    left_out: tuple[str, ...]


class _DamagedFileError(Exception):
    """A file that cannot be read to its end; rows of it are on their way already."""

    def __init__(self, key: str, error: Exception) -> None:
        super().__init__(f"{key} cannot be read: {error}")
        self.key = key


def rewrite(task: RewriteTask, spec: RewriteSpec) -> Rewritten:
    """Do it; again without each file that proves to be damaged.

    Raises:
        RowsLostError: Rows went missing on the way, or are of another part of the table.
        TableUnavailableError: The store does not answer.
    """
    left_out: tuple[str, ...] = ()
    while True:
        try:
            found = _attempt(task, spec)
        except _DamagedFileError as error:
            left_out += (str(error),)
            kept = tuple(file for file in task.files if file.key != error.key)
            task = task._replace(files=kept)
        else:
            return found._replace(left_out=left_out + found.left_out)


def _attempt(task: RewriteTask, spec: RewriteSpec) -> Rewritten:
    source = _Source(task, spec, spec.target.open_store())
    writer = FileWriter(source.store, task.names, spec.target.writer)
    try:
        with tempfile.TemporaryDirectory(prefix="varve-maintain-") as folder:
            for batch in merged(source.batches(), spec.sort_by, folder):
                for part in cut(batch, WRITE_BYTES):
                    writer.write(part, part.nbytes)
            files = writer.finish()
    finally:
        writer.discard()
    what = f"files of {task.names.attempt}"
    if sum(file.rows for file in files) != source.rows:
        raise RowsLostError(f"{what}: {source.rows} rows went in, others came out")
    if len({file.values for file in files}) > 1:
        raise RowsLostError(f"{what}: rows are of more than one part of the table")
    one = source.partitions.pop() if len(source.partitions) == 1 else SEVERAL
    return Rewritten(
        tuple(file._replace(partition=one) for file in files),
        tuple(source.done),
        tuple(source.left_out),
    )


class _Source:
    """Rows of a task's files, and what was found of them."""

    def __init__(self, task: RewriteTask, spec: RewriteSpec, store: TableStore) -> None:
        self.store = store
        self.rows = 0
        self.done: list[str] = []
        self.left_out: list[str] = []
        self.partitions: set[int] = set()
        self._task = task
        self._spec = spec
        self._known_values = dict(task.values)

    def batches(self) -> Iterator[pa.RecordBatch]:
        for file in self._task.files:
            with self.store.local(file.key) as path:
                if path is None:
                    # Another commit has replaced it, and it has expired: the commit would fail as
                    # well.
                    self.left_out.append(f"{file.key} is not there")
                    continue
                yield from self._file(file, path)

    def _file(self, file: TableFile, path: str) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._rows(file, path):
                rows = shaped(batch, self._spec.schema, self._known_values)
                self.rows += rows.num_rows
                self.partitions.update(pc.unique(rows.column("partition")).to_pylist())
                yield rows
        except (pa.ArrowException, OSError) as error:
            raise _DamagedFileError(file.key, error) from error

    def _rows(self, file: TableFile, path: str) -> Iterator[pa.RecordBatch]:
        with pa.OSFile(path, "rb") as source:
            found = pq.ParquetFile(source, buffer_size=READ_BUFFER, pre_buffer=False)
            stranger = without_place(found.schema_arrow, self._spec.schema)
            if stranger is not None:
                self.left_out.append(f"{file.key} has {stranger}, as the table has not")
            elif file.rows not in (-1, found.metadata.num_rows):
                self.left_out.append(
                    f"{file.key} has {found.metadata.num_rows} rows, the table says {file.rows}"
                )
            else:
                yield from found.iter_batches(ROWS_AT_ONCE, use_threads=False)
                self.done.append(file.key)
