"""Planning of a batch: the table's offsets, the log beyond them, and the plan that is stored.

A log that does not continue the table is refused here, before anything is read.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from pipeline.lake.batch.batch_plan import (
    BatchPlan,
    PlanShelf,
    Span,
    TaskRange,
    choose_tasks,
    fingerprint_of,
)
from pipeline.lake.batch.first_offsets import FirstOffsets
from pipeline.lake.batch.log_view import LogSource, PartitionView, TopicView
from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import (
    CommitConflictError,
    ForeignTableError,
    LogBehindTableError,
    LostOffsetsError,
)
from pipeline.lake.schemas.spec import ConverterSpec
from pipeline.lake.sinks.base import Sink
from pipeline.lake.work.job_parts import JobSettings
from storage.environment.randomness import Randomness

LOGGER = logging.getLogger(__name__)

WRITER_VERSION: Final = 1
"""Goes up when the same rows would become other bytes: part of the fingerprint."""


class BatchPlanner:
    """Plans batches of one job; see the module."""

    def __init__(
        self,
        settings: JobSettings,
        source: LogSource,
        sink: Sink,
        first: FirstOffsets,
        randomness: Randomness,
    ) -> None:
        """Makes no request yet."""
        self._randomness = randomness
        self._settings = settings
        self._source = source
        self._sink = sink
        self._first = first

    def next_tasks(self, topic: TopicView, progress: Progress | None) -> tuple[TaskRange, ...]:
        """Tasks of the next batch, where no plan is stored.

        Raises:
            LostOffsetsError, LogBehindTableError: The log does not continue the table.
        """
        spans = {}
        offsets = {} if progress is None else progress.offsets
        for number, partition in topic.partitions.items():
            reached = offsets.get(number)
            if progress is None:
                start = self._first.of(topic)[number]
            else:
                start = self._start(topic, number, partition, reached)
            if wanted := _from(partition.spans, start):
                self._check_gaps(topic, number, partition, start)
                spans[number] = wanted
        return choose_tasks(
            spans, max_bytes=self._settings.max_bytes, task_bytes=self._settings.task_bytes
        )

    def _start(
        self, topic: TopicView, number: int, partition: PartitionView, reached: int | None
    ) -> int:
        if reached is None:
            # A partition that came later: whatever the job began with, of it nothing is left out.
            return partition.start
        if reached > partition.end:
            raise LogBehindTableError(topic.topic, number, partition.end, reached)
        if reached < partition.start:
            self._lost(topic, number, reached, partition.start)
            return partition.start
        return reached

    def _check_gaps(
        self, topic: TopicView, number: int, partition: PartitionView, start: int
    ) -> None:
        reached = start
        for span in (*partition.spans, Span(partition.end, partition.end, 0)):
            if span.end < start:
                continue
            if span.start > reached:
                self._lost(topic, number, reached, span.start)
            reached = max(reached, span.end)

    def _lost(self, topic: TopicView, number: int, start: int, end: int) -> None:
        error = LostOffsetsError(topic.topic, number, start, end)
        if self._settings.fail_on_data_loss:
            raise error
        LOGGER.warning("%s", error)

    def plan(self, topic: TopicView, progress: Progress, spec: ConverterSpec) -> BatchPlan | None:
        """The stored plan, or a new one, which is stored; None: the table has all.

        Raises:
            CommitConflictError: The batch has been committed by another job.
            ForeignTableError: The stored plan goes beyond the log.
            LostOffsetsError, LogBehindTableError: The log does not continue the table.
        """
        fingerprint = fingerprint_of(
            {
                **self._settings.facts,
                **self._attempt(),
                "writer": str(WRITER_VERSION),
                "pyarrow": pa.__version__,
                "converter": repr(spec),
            }
        )
        shelf = PlanShelf(self._sink.store)
        stored = shelf.find(fingerprint, progress)
        if stored is not None:
            self._check_stored(topic, stored)
            return stored
        tasks = self.next_tasks(topic, progress)
        if not tasks:
            return None
        plan = shelf.put(BatchPlan(fingerprint, progress, tuple(self._source.aligned(tasks))))
        if self._sink.view().progress != progress:
            # Plans of a batch are removed behind its commit. One that is put later, by a job that
            # slept in between, may have other ranges: its files would stand beside the table's.
            shelf.forget(progress)
            raise CommitConflictError(
                f"{self._sink.name}: batch {progress.batch + 1} was committed while it was planned"
            )
        return plan

    def _attempt(self) -> Mapping[str, str]:
        """Identity of an attempt at a batch, where another attempt may find fewer rows.

        A chunk that could be read a moment ago may be lost now, and is then left out: the same
        tasks give other bytes. Under a name of their own they meet no file of another attempt that
        was earlier, and whose commit counts.
        """
        if self._settings.fail_on_data_loss:
            return {}
        return {"attempt": self._randomness.uuid4().hex}

    def _check_stored(self, topic: TopicView, plan: BatchPlan) -> None:
        for number, end in plan.ends().items():
            partition = topic.partitions.get(number)
            if partition is None or partition.end < end:
                found = 0 if partition is None else partition.end
                raise ForeignTableError(
                    f"{topic.topic}-{number}: batch {plan.base.batch + 1} is planned up to offset "
                    f"{end}, and the log ends at {found}: it was cut or restored. Remove "
                    f"{self._sink.store.uri}/{plan.key()} to plan it again"
                )


def _from(spans: Sequence[Span], start: int) -> list[Span]:
    """What of the spans is from an offset on."""
    wanted = []
    for span in spans:
        if span.end <= start:
            continue
        if span.start < start:
            size = span.size * (span.end - start) // (span.end - span.start)
            wanted.append(span._replace(start=start, size=size))
        else:
            wanted.append(span)
    return wanted
