"""Composition of a lake job from its settings: `run_job`, and `open_job` to inspect one.

Everything that a job meets is made here: stores and sinks, the planner, where tasks run. Bad
settings are reported before any of it is used.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pipeline.lake.app.job_columns import JobColumns
from pipeline.lake.app.locations import OpenTableStore, needed, open_sinks
from pipeline.lake.app.log_source import PlannedLog, source_options
from pipeline.lake.app.metrics import JobMetrics
from pipeline.lake.app.patience import Patience
from pipeline.lake.app.service import JobService
from pipeline.lake.batch.batch_plan import TaskRange
from pipeline.lake.errors import JobConfigError, LakeError
from pipeline.lake.files.file_writer import WriterOptions
from pipeline.lake.job.job import Batch, LakeJob
from pipeline.lake.keyed.table import KeyedTable
from pipeline.lake.maintain.histories import history_of
from pipeline.lake.maintain.shape import shape_of
from pipeline.lake.schemas.spec import ConverterSpec
from pipeline.lake.settings.config import JobConfig, small_file_bytes
from pipeline.lake.sinks.base import Sink
from pipeline.lake.work.job_parts import JobSettings, Runner
from pipeline.lake.work.local_runner import LocalRunner
from pipeline.lake.work.task import TableTarget, TaskSpec
from pipeline.plan.errors import OptionsError
from pipeline.plan.piece import Piece
from pipeline.read.piece.piece_rows import ReadOptions, read_piece
from pipeline.source.executor import read_options
from pipeline.source.planner import Planner
from storage.environment.clock import Clock, SystemClock
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SystemRandomness

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from pipeline.lake.work.spark_runner import SparkRunner

LOGGER = logging.getLogger(__name__)

SAMPLE_RECORDS: Final = 2_000
"""Of each partition, until there are enough to infer columns from."""

SHAPE_EVERY_MS: Final = 600_000
"""At most so often: it reads all of a table's metadata."""

SPARK_DEFAULTS: Final = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
}


class ReadPieces(NamedTuple):
    """Reads pieces where it is called; pickled to executors, its text has no secret."""

    options: ReadOptions

    def __call__(self, piece: Piece) -> "Iterator[pa.RecordBatch]":
        """Rows of one piece."""
        return read_piece(piece, self.options)


class OpenJob(NamedTuple):
    """A job and what it is made of."""

    job: LakeJob
    log: PlannedLog
    sink: Sink
    quarantine: Sink | None
    columns: JobColumns
    targets: Callable[[ConverterSpec], TaskSpec]
    reading: ReadPieces
    keyed: KeyedTable | None


@contextmanager
def open_job(
    config: JobConfig,
    runner: Runner | None = None,
    *,
    new_incarnation: bool = False,
    new_quarantine: bool = False,
) -> Iterator[OpenJob]:
    """A job, ready to be inspected; with a `runner`, to be run.

    Raises:
        JobConfigError: What the settings' own check could not see.
        MissingExtraError: A library that the sink needs is not installed.
    """
    try:
        options = source_options(config)
    except OptionsError as error:
        raise JobConfigError([f"source: {mistake}" for mistake in error.mistakes]) from error
    with ExitStack() as held:
        sink, quarantine = open_sinks(config)
        planner = held.enter_context(Planner(options))
        log = PlannedLog(options, planner)
        reading = ReadPieces(read_options(options))
        columns = JobColumns(config, LocalFilesystem(), _Sample(log, reading))
        targets = _Targets(config, sink, quarantine)
        job = LakeJob(
            job_settings(config, new_incarnation=new_incarnation, new_quarantine=new_quarantine),
            log,
            sink,
            quarantine,
            targets,
            columns,
            runner or LocalRunner(reading),
            SystemClock(),
            SystemRandomness(),
        )
        yield OpenJob(job, log, sink, quarantine, columns, targets, reading, job.keyed)


def job_settings(
    config: JobConfig, *, new_incarnation: bool = False, new_quarantine: bool = False
) -> JobSettings:
    """The settings that decide how batches are made."""
    return JobSettings(
        config.job_name,
        config.source.start,
        config.batch.max_bytes,
        config.sink.target_file_bytes,
        config.source.fail_on_data_loss,
        new_incarnation,
        config.mode,
        config.sink.buckets,
        {
            "isolation": config.source.isolation,
            "partition_by": repr(config.sink.partition_by),
            "target_file_bytes": str(config.sink.target_file_bytes),
            "quarantine": config.errors.quarantine,
            **({} if config.mode == "append" else {"buckets": str(config.sink.buckets)}),
        },
        new_quarantine=new_quarantine,
    )


class _Targets:
    """The targets of tasks; resolved once the tables exist."""

    def __init__(self, config: JobConfig, sink: Sink, quarantine: Sink | None) -> None:
        self._config = config
        self._sink = sink
        self._quarantine = quarantine

    def __call__(self, converter: ConverterSpec) -> TaskSpec:
        options = self._config.sink
        writer = WriterOptions(
            options.partition_by, self._sink.keeps_partition_columns, options.target_file_bytes
        )
        put_aside = None
        if self._quarantine is not None:
            put_aside = self._target(
                self._quarantine, WriterOptions(target_file_bytes=options.target_file_bytes)
            )
        buckets = 0 if self._config.mode == "append" else options.buckets
        return TaskSpec(self._target(self._sink, writer), put_aside, converter, buckets)

    def _target(self, sink: Sink, writer: WriterOptions) -> TableTarget:
        opener = OpenTableStore(sink.store.uri, self._config.sink_store)
        return TableTarget(opener, sink.folder, writer)


class _Sample:
    """The first values, or keys, of a log."""

    def __init__(self, log: PlannedLog, reading: ReadPieces) -> None:
        self._log = log
        self._reading = reading

    def __call__(self, side: str) -> Iterable[bytes | None]:
        topic = self._log.view()
        for number, partition in sorted(topic.partitions.items()):
            if partition.start < partition.end:
                wanted = TaskRange(number, partition.start, partition.end)
                yield from self._first(wanted, side)

    def _first(self, wanted: TaskRange, side: str) -> Iterator[bytes | None]:
        count = 0
        for piece in self._log.pieces([wanted])[0]:
            for batch in self._reading(piece):
                values = batch.column(side).slice(0, SAMPLE_RECORDS - count)
                count += len(values)
                yield from values.to_pylist()
                if count >= SAMPLE_RECORDS:
                    return


@contextmanager
def open_runner(
    config: JobConfig, session: "SparkSession | None" = None
) -> Iterator["LocalRunner | SparkRunner"]:
    """The runner of tasks: Spark, in a session that is there or is made, or processes here.

    Raises:
        MissingExtraError: PySpark is not installed.
        JavaMissingError: Spark needs a Java, and there is none it can use.
    """
    reading = ReadPieces(read_options(source_options(config)))
    if config.runner.type == "local":
        runner = LocalRunner(reading, config.runner.workers)
        try:
            yield runner
        finally:
            runner.close()
        return
    needed("pyspark", "lake")
    from pipeline.lake.work.spark_runner import SparkRunner

    if session is not None:
        yield SparkRunner(session, reading)
        return
    made = start_session(config)
    try:
        yield SparkRunner(made, reading)
    finally:
        made.stop()


def start_session(config: JobConfig) -> "SparkSession":
    """A session with the job's settings over Varve's defaults; `spark-submit` has set the rest."""
    import os
    import sys

    from pyspark.sql import SparkSession

    from pipeline.source.java import find_java

    find_java(os.environ)
    # Workers must be the Python that has everything installed, unless the environment names one.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: Any = SparkSession.builder.appName(config.job_name)
    for name, text in {**SPARK_DEFAULTS, **config.runner.conf}.items():
        builder = builder.config(name, text)
    session: SparkSession = builder.getOrCreate()
    return session


def run_job(
    config: JobConfig,
    session: "SparkSession | None" = None,
    *,
    stop: threading.Event | None = None,
    new_incarnation: bool = False,
    new_quarantine: bool = False,
    on_batch: Callable[[Batch], None] | None = None,
) -> int:
    """Run a job until it is done or stopped; how many batches were committed.

    Args:
        config: See `pipeline.lake.settings.config.parse_job`.
        session: Of Spark, if there is one already; it stays.
        stop: Set from elsewhere, it ends the job after the batch under way.
        new_incarnation: Continue with a topic that was deleted and recreated.
        new_quarantine: Go on where the quarantine has lost records.
        on_batch: Called with every committed batch.

    Raises:
        LakeError: See `pipeline.lake.errors`.
        PlanError, ReadError, TieredError: What the log's bucket or broker did not do.
    """
    stop = stop or threading.Event()
    batch = config.batch
    opening = partial(open_job, new_incarnation=new_incarnation, new_quarantine=new_quarantine)

    def first_view() -> None:
        with opening(config) as opened:
            opened.job.view()

    # First without a runner: mistakes are reported before a session is started. A job that runs
    # once reports an outage, too; one that runs for ever begins when it is over.
    if batch.every_ms == 0:
        first_view()
    else:
        Patience(
            SystemClock(), stop, retries=batch.retries, give_up_after_ms=batch.give_up_after_ms
        ).call(first_view)
    if stop.is_set():
        return 0
    with ExitStack() as held:
        runner = held.enter_context(open_runner(config, session))
        opened = held.enter_context(opening(config, runner))
        metrics = JobMetrics(config.job_name)
        if config.metrics.port:
            held.callback(metrics.serve(config.metrics.host, config.metrics.port))
        service = JobService(
            opened.job,
            metrics,
            SystemClock(),
            every_ms=batch.every_ms,
            retries=batch.retries,
            give_up_after_ms=batch.give_up_after_ms if batch.every_ms else 0,
            stop=stop,
            on_batch=_Shaping(opened.sink, config, metrics, SystemClock(), on_batch),
        )
        return service.run()


class _Shaping:
    """Measures the table's files after a batch, at intervals; then reports the batch."""

    def __init__(
        self,
        sink: Sink,
        config: JobConfig,
        metrics: JobMetrics,
        clock: Clock,
        on_batch: Callable[[Batch], None] | None,
    ) -> None:
        self._sink = sink
        self._small_bytes = small_file_bytes(config)
        # Without metrics nothing is measured.
        self._metrics = metrics if config.metrics.port else None
        self._clock = clock
        self._on_batch = on_batch
        self._due_ms = 0.0

    def __call__(self, batch: Batch) -> None:
        now_ms = self._clock.monotonic_ms()
        if self._metrics is not None and now_ms >= self._due_ms:
            self._due_ms = now_ms + SHAPE_EVERY_MS
            try:
                shape = shape_of(self._sink, history_of(self._sink), self._small_bytes)
                self._metrics.shaped(shape)
            except LakeError as error:
                LOGGER.info("%s; table metrics are not updated", error)
        if self._on_batch is not None:
            self._on_batch(batch)
