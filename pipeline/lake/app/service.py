"""Service loop of a lake job: batch after batch, once or for ever, until it is stopped.

once         until the table has what the log had when the job began
every 60 s   a batch; when the table has all, the rest of the time is waited

stop         after the batch under way; what is killed instead is repeated by the next run
failure      what another try may mend is tried again (`patience`); the rest ends the job
"""

import logging
import threading
from collections.abc import Callable

from pipeline.lake.app.metrics import JobMetrics
from pipeline.lake.app.patience import Patience, may_pass
from pipeline.lake.batch.log_view import TopicView
from pipeline.lake.batch.progress import Progress
from pipeline.lake.job.job import Batch, LakeJob
from storage.environment.clock import Clock

LOGGER = logging.getLogger(__name__)


class JobService:
    """Runs one job; see the module."""

    def __init__(
        self,
        job: LakeJob,
        metrics: JobMetrics,
        clock: Clock,
        *,
        every_ms: int,
        retries: int,
        give_up_after_ms: float = 0,
        stop: threading.Event | None = None,
        on_batch: Callable[[Batch], None] | None = None,
    ) -> None:
        """Nothing is run yet.

        Args:
            job: Which.
            metrics: Updated after every batch.
            clock: For when the next batch is due.
            every_ms: 0: once.
            retries: In a row; see `Patience`.
            give_up_after_ms: See there.
            stop: Set to end the loop (by a signal).
            on_batch: Called with every committed batch.
        """
        self._job = job
        self._metrics = metrics
        self._clock = clock
        self._every_ms = every_ms
        self.stopped = stop or threading.Event()
        self._patience = Patience(
            clock, self.stopped, retries=retries, give_up_after_ms=give_up_after_ms
        )
        self._on_batch = on_batch

    def stop(self) -> None:
        """End after the batch under way; may be called from anywhere."""
        self.stopped.set()

    def run(self) -> int:
        """Until it is done or stopped; how many batches were committed.

        Raises:
            JobStopError: A person has to decide.
            TableUnavailableError, TaskFailedError, StoreUnavailableError, BrokerError: Still,
                after all tries.
        """
        batches = 0
        wanted: TopicView | None = None
        while not self.stopped.is_set():
            began_ms = self._clock.monotonic_ms()
            try:
                topic, progress = self._job.view()
                wanted = wanted or topic
                self._metrics.behind(topic, progress)
                if self._every_ms == 0 and _has(wanted, progress):
                    return batches
                batch = self._job.step()
            except Exception as error:
                if not may_pass(error):
                    raise
                self._metrics.failed()
                self._patience.failed(error)
                continue
            self._patience.succeeded()
            if batch is not None:
                batches += 1
                self._report(batch, topic)
            elif self._every_ms == 0:
                return batches
            else:
                passed_ms = self._clock.monotonic_ms() - began_ms
                self._wait(max(0.0, self._every_ms - passed_ms))
        return batches

    def _report(self, batch: Batch, topic: TopicView) -> None:
        self._metrics.committed(batch)
        if self._on_batch is not None:
            self._on_batch(batch)
        self._metrics.behind(topic, batch.progress)
        LOGGER.info(
            "batch %d: %d rows, %d in quarantine, %d files, %.1f s work, %.2f s commit",
            batch.progress.batch,
            batch.rows,
            batch.quarantined,
            batch.files,
            batch.work_ms / 1000,
            batch.commit_ms / 1000,
        )

    def _wait(self, duration_ms: float) -> None:
        self.stopped.wait(duration_ms / 1000)


def _has(topic: TopicView, progress: Progress | None) -> bool:
    """Whether the table has all that the log had then."""
    if progress is None or progress.topic_id != topic.topic_id:
        return False
    return all(
        progress.offsets.get(number, partition.start) >= partition.end
        for number, partition in topic.partitions.items()
    )
