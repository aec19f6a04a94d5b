"""Lake jobs over made-up logs, with tables in a directory; also as a program to be killed.

python -m tests.fakes.lake_jobs KIND ROOT END [SECONDS]    keeps the table behind END offsets
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.lake.config import parse_partition_field
from pipeline.lake.file_writer import WriterOptions
from pipeline.lake.job import JobSettings, LakeJob, LogSource, Runner
from pipeline.lake.local_runner import LocalRunner
from pipeline.lake.sinks.base import Sink
from pipeline.lake.task import ReadPiece, TableTarget, TaskSpec
from pipeline.lake.values.spec import ConverterSpec, FieldSpec
from pipeline.plan.piece import Piece
from storage.clock import SystemClock, sleep_ms
from tests.fakes.lake_log import FakeLog, read_rows
from tests.fakes.lake_tables import OpenDirectory, open_sink

FIELDS = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])

SPEC = ConverterSpec(FieldSpec("json", fields=FIELDS), FieldSpec("raw"))


class FixedColumns:
    """A table whose columns never change."""

    def __init__(self, spec: ConverterSpec = SPEC) -> None:
        self.fixed = spec

    def spec(self, table: pa.Schema | None) -> ConverterSpec:
        return self.fixed

    def evolved(self, spec: ConverterSpec, behind: frozenset[int]) -> ConverterSpec:
        raise AssertionError("nothing is behind")


def lake_job(
    kind: str,
    root: Path,
    log: LogSource,
    *,
    partition_by: Sequence[str] = (),
    quarantine: bool = True,
    runner: Runner | None = None,
    read_piece: ReadPiece = read_rows,
    spec: ConverterSpec = SPEC,
    wrap: Callable[[Sink], Sink] = lambda sink: sink,
    **settings: Any,
) -> LakeJob:
    """A job with small batches and tasks: 100 bytes an offset, 10 offsets a task, 25 a batch."""
    sink = wrap(open_sink(kind, root, partition_by=partition_by))
    bad = open_sink(kind, root, name="orders_quarantine") if quarantine else None
    fields = tuple(parse_partition_field(one) for one in partition_by)

    def task_spec(converter: ConverterSpec) -> TaskSpec:
        target = TableTarget(
            OpenDirectory(sink.store.uri),
            sink.folder,
            WriterOptions(fields, sink.keeps_partition_columns),
        )
        if bad is None:
            return TaskSpec(target, None, converter)
        put_aside = TableTarget(OpenDirectory(bad.store.uri), bad.folder, WriterOptions())
        return TaskSpec(target, put_aside, converter)

    given = {"max_bytes": 2500, "task_bytes": 1000, **settings}
    return LakeJob(
        JobSettings("orders-lake", **given),
        log,
        sink,
        bad,
        task_spec,
        FixedColumns(spec),
        runner or LocalRunner(read_piece),
        SystemClock(),
    )


def run(job: LakeJob) -> int:
    """Until the table has all; how many batches that took."""
    batches = 0
    while job.step() is not None:
        batches += 1
    return batches


def slowly(seconds: float, piece: Piece) -> Iterator[pa.RecordBatch]:
    """A reader that leaves time to be killed in."""
    for batch in read_rows(piece):
        sleep_ms(seconds * 1000)
        yield batch


def ranges(end: int) -> Mapping[int, tuple[int, int]]:
    """Partitions of the log that the program below reads."""
    return {0: (0, end), 1: (5, end // 2)}


def main(kind: str, root: str, end: str, seconds: str = "0", workers: str = "0") -> None:
    """See the module."""
    reader = partial(slowly, float(seconds)) if float(seconds) else read_rows
    runner = LocalRunner(reader, int(workers))
    run(lake_job(kind, Path(root), FakeLog(ranges(int(end))), runner=runner))
    runner.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
