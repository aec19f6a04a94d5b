"""A run: rows of one task, sorted by key within each bucket, and where each bucket's are.

    <table>/_varve/keyed/runs/<topic id>-<batch>-<fingerprint>/<partition>-<start>-<end>-<n>

    one Arrow IPC stream (lz4) after the other, ascending by bucket, none for a bucket without rows

Where they begin is not in the file: the task that wrote it reports it to the commit, which lets
each merge read the part of its bucket. A run is no part of the table: names below `_varve/` are no
table's data to Delta, Iceberg and Spark, and it is removed when its batch is committed.

    topic id      8 hexadecimal digits
    batch         20 digits
    start, end    of the task, 20 digits each
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa

from pipeline.lake.batch.batch_plan import TaskRange
from pipeline.lake.stores.stored_bytes import StoredBytes
from pipeline.lake.stores.table_store import TableStore

FOLDER: Final = "_varve/keyed/runs/"

OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)


class RunPart(NamedTuple):
    """Rows of one bucket in a run: `length` bytes from `start` on."""

    bucket: int
    start: int
    length: int


class Run(NamedTuple):
    """A run that was published; travels from its task to the commit."""

    key: str
    parts: tuple[RunPart, ...]


def runs_folder(topic_id_start: str, batch: int, fingerprint: str) -> str:
    """Of all runs of a batch."""
    return f"{FOLDER}{topic_id_start}-{batch:020d}-{fingerprint}/"


def run_key(folder: str, task: TaskRange, number: int) -> str:
    """Of a task's run `number`."""
    return f"{folder}{task.partition}-{task.start:020d}-{task.end:020d}-{number:05d}"


def read_part(store: TableStore, key: str, part: RunPart) -> Iterator[pa.RecordBatch]:
    """Rows of one bucket, block by block."""
    source = StoredBytes(store, key, part.start, part.length)
    with pa.ipc.open_stream(pa.PythonFile(source, mode="r")) as reader:
        yield from reader


class RunFile:
    """A run that is being written to a scratch file; ended by `publish` or `discard`."""

    def __init__(self, store: TableStore, key: str) -> None:
        self._store = store
        self._key = key
        self._path = store.scratch_path(key)
        self._sink: Any = pa.OSFile(self._path, "wb")
        self._parts: list[RunPart] = []

    def write(self, bucket: int, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        """All rows of a bucket; buckets ascend."""
        start = self._sink.tell()
        with pa.ipc.new_stream(self._sink, schema, options=OPTIONS) as writer:
            for batch in batches:
                writer.write_batch(batch)
        self._parts.append(RunPart(bucket, start, self._sink.tell() - start))

    def publish(self) -> Run:
        """Let it appear whole."""
        self._sink.close()
        self._store.publish(self._path, self._key)
        return Run(self._key, tuple(self._parts))

    def discard(self) -> None:
        """Remove the scratch file."""
        self._sink.close()
        self._store.discard(self._path)
