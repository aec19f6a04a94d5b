"""Lake jobs over made-up logs, with tables in a directory; also in a process to be killed."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.lake.batch.log_view import LogSource
from pipeline.lake.errors import TableUnavailableError
from pipeline.lake.files.file_writer import WriterOptions
from pipeline.lake.job.job import LakeJob
from pipeline.lake.schemas.spec import ConverterSpec, FieldSpec
from pipeline.lake.settings.config import parse_partition_field
from pipeline.lake.sinks.base import Sink
from pipeline.lake.work.job_parts import Columns, JobSettings, Runner
from pipeline.lake.work.local_runner import LocalRunner
from pipeline.lake.work.task import OpenStore, ReadPiece, TableTarget, TaskSpec
from pipeline.plan.piece import Piece
from storage.environment.clock import SystemClock, sleep_ms
from storage.environment.randomness import SystemRandomness
from tests.fakes.lake.hooks import Hook, HookedSink, OpenHooked
from tests.fakes.lake.numbers_log import FakeLog, read_rows
from tests.fakes.lake.tables import OpenDirectory, open_sink

FIELDS = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])

SPEC = ConverterSpec(FieldSpec("json", fields=FIELDS), FieldSpec("raw"))


BUCKETS = 4
"""Of keys, in tables that are kept by key."""


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
    hook: Hook | None = None,
    columns: Columns | None = None,
    **settings: Any,
) -> LakeJob:
    """A job with small batches and tasks: 100 bytes an offset, 10 offsets a task, 25 a batch."""
    sink = wrap(open_sink(kind, root, partition_by=partition_by))
    bad = open_sink(kind, root, name="orders_quarantine") if quarantine else None
    if hook is not None:
        sink = HookedSink(sink, hook)
        bad = None if bad is None else HookedSink(bad, hook)
    fields = tuple(parse_partition_field(one) for one in partition_by)

    def opener(sink: Sink) -> OpenStore:
        plain = OpenDirectory(sink.store.uri)
        return plain if hook is None else OpenHooked(plain, hook)

    def task_spec(converter: ConverterSpec) -> TaskSpec:
        target = TableTarget(
            opener(sink),
            sink.folder,
            WriterOptions(fields, sink.keeps_partition_columns),
        )
        buckets = 0 if converter.mode == "append" else BUCKETS
        if bad is None:
            return TaskSpec(target, None, converter, buckets)
        put_aside = TableTarget(opener(bad), bad.folder, WriterOptions())
        return TaskSpec(target, put_aside, converter, buckets)

    keyed = {"mode": spec.mode, "buckets": BUCKETS}
    given = {"max_bytes": 2500, "task_bytes": 1000, **keyed, **settings}
    return LakeJob(
        JobSettings("orders-lake", **given),
        log,
        sink,
        bad,
        task_spec,
        columns or FixedColumns(spec),
        runner or LocalRunner(read_piece),
        SystemClock(),
        SystemRandomness(),
    )


def run(job: LakeJob) -> int:
    """Until the table has all; how many batches that took."""
    batches = 0
    while job.step() is not None:
        batches += 1
    return batches


def ranges(end: int) -> dict[int, tuple[int, int]]:
    """Partitions of the log that the process below reads."""
    return {0: (0, end), 1: (5, 5 + end // 2)}


class Deadly:
    """Sends its own process a signal at a step: SIGKILL, as if the plug had been pulled there."""

    def __init__(self, steps: int, number: int) -> None:
        self.left = steps
        self.number = number

    def __call__(self, *_: object) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), self.number)


def slowly(hook: Deadly, pause_ms: float, piece: Piece) -> Iterator[pa.RecordBatch]:
    """A reader whose every batch is a step, too, and takes its time."""
    for batch in read_rows(piece):
        hook()
        sleep_ms(pause_ms)
        yield batch


def keep(
    kind: str,
    root: str,
    end: int,
    steps: int,
    pause_ms: float = 0,
    number: int = signal.SIGKILL,
) -> None:
    """What the process does: keep the table behind the log, and die at a step; 0: do not.

    `number`: the signal that it sends itself there; SIGSTOP: it sleeps until somebody wakes it.
    """
    hook = Deadly(steps, number)
    job = lake_job(
        kind,
        Path(root),
        FakeLog(ranges(end)),
        read_piece=partial(slowly, hook, pause_ms),
        hook=hook,
    )
    for _ in range(1000):
        try:
            if job.step() is None:
                return
        except TableUnavailableError:
            # SQLite's lock is with another process.
            sleep_ms(5)
    raise AssertionError("the table is never reached")
