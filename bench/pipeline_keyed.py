"""What upserts into a table by key cost: `python -m bench.pipeline_keyed [--rows 1000000]`.

A Parquet table of so many rows is made, in one process and without Spark; then a batch of upserts
of keys spread over all of it. Records are made of noise that zstd cannot press. Printed are CPU
seconds of this process, making the records aside, and per million upserts; and its memory.
"""

import argparse
import resource
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

import numpy as np
import pyarrow as pa

from pipeline.lake.app.locations import OpenTableStore, open_table_store
from pipeline.lake.batch.batch_plan import Span, TaskRange
from pipeline.lake.batch.log_view import PartitionView, TopicView
from pipeline.lake.files.file_writer import WriterOptions
from pipeline.lake.job.job import LakeJob
from pipeline.lake.schemas.spec import ConverterSpec, FieldSpec
from pipeline.lake.settings.config import StoreConfig
from pipeline.lake.sinks.parquet import ParquetSink
from pipeline.lake.work.job_parts import JobSettings
from pipeline.lake.work.local_runner import LocalRunner
from pipeline.lake.work.task import TableTarget, TaskSpec
from pipeline.plan.piece import BrokerPiece, PartitionName, Piece
from storage.environment.clock import SystemClock
from storage.environment.randomness import SystemRandomness

TOPIC: Final = "orders"
TOPIC_ID: Final = UUID(int=9)

BATCH_ROWS: Final = 8_192
"""Of what a reader gives at once."""

SPEC: Final = ConverterSpec(FieldSpec(), FieldSpec(), mode="upsert")

BUCKETS: Final = 16
"""As many as a table has by default."""


class Upserts:
    """A log that is made while it is read: record `n` is of key `n` of a permutation."""

    def __init__(self, rows: int, size: int) -> None:
        self.rows = rows
        self.size = size
        self.end = rows

    def view(self) -> TopicView:
        """One partition."""
        span = Span(0, self.end, self.end * (self.size + 40))
        return TopicView(TOPIC, TOPIC_ID, {0: PartitionView(0, self.end, (span,))})

    def offset_for_time(self, partition: int, time_ms: int) -> int | None:
        """Unused."""
        return None

    def aligned(self, tasks: Sequence[TaskRange]) -> Sequence[TaskRange]:
        """As they are."""
        return tasks

    def pieces(self, tasks: Sequence[TaskRange]) -> list[tuple[Piece, ...]]:
        """One each."""
        name = PartitionName(TOPIC, TOPIC_ID, 0)
        return [(BrokerPiece(name, -1, task.start, task.end),) for task in tasks]

    def read(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """Records of a piece."""
        for start in range(piece.start_offset, piece.end_offset, BATCH_ROWS):
            yield self._batch(start, min(start + BATCH_ROWS, piece.end_offset))

    def _batch(self, start: int, end: int) -> pa.RecordBatch:
        count = end - start
        offsets = np.arange(start, end)
        keys = offsets * 7_368_787 % self.rows
        noise = np.random.default_rng(start).bytes(count * self.size)
        bounds = np.arange(count + 1, dtype=np.int32) * self.size
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(noise)]
        return pa.record_batch(
            {
                "key": pa.array([b"user-%012d" % key for key in keys.tolist()], pa.binary()),
                "value": pa.Array.from_buffers(pa.binary(), count, buffers),
                "topic": pa.array([TOPIC] * count),
                "partition": pa.array(np.zeros(count, np.int32)),
                "offset": pa.array(offsets),
                "timestamp": pa.array(offsets).cast(pa.timestamp("us", tz="UTC")),
            }
        )


class _Fixed:
    """Columns that never change."""

    def spec(self, table: pa.Schema | None) -> ConverterSpec:
        return SPEC

    def evolved(self, spec: ConverterSpec, behind: frozenset[int]) -> ConverterSpec:
        raise AssertionError("raw values have no schema")


def keyed_job(log: Upserts, folder: Path) -> LakeJob:
    """A job without a quarantine; a batch has all there is."""
    store = open_table_store(str(folder), StoreConfig())
    sink = ParquetSink(store, "bench", SystemRandomness())
    target = TableTarget(OpenTableStore(str(folder), StoreConfig()), "", WriterOptions())
    return LakeJob(
        JobSettings("bench", max_bytes=1 << 40, mode="upsert", buckets=BUCKETS),
        log,
        sink,
        None,
        lambda converter: TaskSpec(target, None, converter, BUCKETS),
        _Fixed(),
        LocalRunner(log.read),
        SystemClock(),
        SystemRandomness(),
    )


def cpu_seconds() -> float:
    """Of this process, those of the kernel for it too."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(rows: int, upserts: int, size: int, folder: Path) -> str:
    """One row of the result."""
    log = Upserts(rows, size)
    job = keyed_job(log, folder)
    began = cpu_seconds()
    while job.step() is not None:
        pass
    made = cpu_seconds() - began
    log.end += upserts
    began = cpu_seconds()
    batch = job.step()
    took = cpu_seconds() - began
    assert batch is not None
    assert batch.upserted == min(upserts, rows)
    reading = cpu_seconds()
    for _ in log.read(BrokerPiece(PartitionName(TOPIC, TOPIC_ID, 0), -1, rows, rows + upserts)):
        pass
    took -= cpu_seconds() - reading
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"| {rows:,} | {size} | {upserts:,} | {made:.1f} | {took:.1f} "
        f"| {took * 1e6 / upserts:.1f} | {peak:.0f} |"
    )


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--upserts", type=int, default=1_000_000)
    parser.add_argument("--bytes", type=int, nargs="+", default=[1024, 100])
    args = parser.parse_args()
    print("| rows | bytes | upserts | making, s | upserting, s | s per million | peak MiB |")
    print("|---|---|---|---|---|---|---|")
    for rows in args.rows:
        for size in args.bytes:
            folder = Path(tempfile.mkdtemp(prefix="varve-keyed-"))
            try:
                print(measure(rows, args.upserts, size, folder), flush=True)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
