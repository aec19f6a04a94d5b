"""A job as a program: once, for ever, through failures, until it is told to stop."""

import threading
from pathlib import Path
from typing import cast

import pytest
from typing_extensions import override

from pipeline.lake.app.metrics import JobMetrics
from pipeline.lake.app.patience import PAUSE_MS
from pipeline.lake.app.service import JobService
from pipeline.lake.batch.log_view import TopicView
from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import LostOffsetsError, TableUnavailableError
from pipeline.lake.job.job import Batch, LakeJob
from tests.fakes.clock import ManualClock
from tests.fakes.lake.jobs import lake_job
from tests.fakes.lake.numbers_log import FakeLog, is_bad, rows_of
from tests.fakes.lake.tables import coordinates, read_table

LOG = {0: (0, 60), 1: (5, 33)}


class Waits(threading.Event):
    """Time that passes at once; what is waited for can be asked, and may do something."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self.clock = clock
        self.waited_ms: list[float] = []
        self.stop_after = 100

    @override
    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.waited_ms.append(timeout * 1000)
        self.clock.advance(timeout * 1000)
        if len(self.waited_ms) >= self.stop_after:
            self.set()
        return self.is_set()


def service(job: LakeJob, *, every_ms: int = 0, retries: int = 3) -> tuple[JobService, Waits]:
    clock = ManualClock()
    stop = Waits(clock)
    made = JobService(job, JobMetrics("job"), clock, every_ms=every_ms, retries=retries, stop=stop)
    return made, stop


def test_once_ends_when_the_table_has_what_there_was(tmp_path: Path) -> None:
    """And not later, though the log grows all the time."""
    log = FakeLog(LOG)

    class Growing(FakeLog):
        @override
        def view(self) -> TopicView:
            start, end = self.partitions[0]
            self.partitions[0] = (start, end + 2)
            return super().view()

    growing = Growing(log.partitions)
    made, _ = service(lake_job("parquet", tmp_path, growing, max_bytes=10**6))
    assert made.run() == 1


def test_a_table_that_has_all_takes_no_batch(tmp_path: Path) -> None:
    job = lake_job("parquet", tmp_path, FakeLog(LOG))
    assert service(job)[0].run() == 4
    assert service(job)[0].run() == 0
    found = coordinates(read_table("parquet", tmp_path))
    assert found == [one for one in rows_of(LOG) if not is_bad(one[1])]


def test_a_topic_without_records_is_done_at_once(tmp_path: Path) -> None:
    job = lake_job("parquet", tmp_path, FakeLog({0: (7, 7)}))
    assert service(job)[0].run() == 0


def test_every_minute_waits_only_when_there_is_nothing(tmp_path: Path) -> None:
    """What the log has is taken at once, batch after batch."""
    made, stop = service(lake_job("parquet", tmp_path, FakeLog(LOG)), every_ms=60_000)
    stop.stop_after = 2
    assert made.run() == 4
    assert stop.waited_ms == [60_000, 60_000]


def test_stopped_it_ends_after_the_batch_under_way(tmp_path: Path) -> None:
    job = lake_job("parquet", tmp_path, FakeLog(LOG))
    made, _ = service(job, every_ms=60_000)

    class Stopping(FakeLog):
        @override
        def view(self) -> TopicView:
            made.stop()
            return super().view()

    made._job = lake_job("parquet", tmp_path, Stopping(LOG))
    assert made.run() == 1


class Failing:
    """A job that fails so many times before each batch."""

    def __init__(self, job: LakeJob, error: Exception, times: int) -> None:
        self.job, self.error, self.times = job, error, times
        self.left = times

    def view(self) -> tuple[TopicView, Progress | None]:
        return self.job.view()

    def step(self) -> Batch | None:
        if self.left:
            self.left -= 1
            raise self.error
        self.left = self.times
        return self.job.step()


def test_what_another_try_mends_is_tried_again(tmp_path: Path) -> None:
    """With a pause that doubles, and from the shortest one again after a success."""
    job = lake_job("parquet", tmp_path, FakeLog(LOG))
    failing = Failing(job, TableUnavailableError("away"), 2)
    made, stop = service(cast("LakeJob", failing))
    assert made.run() == 4
    assert stop.waited_ms == [PAUSE_MS, 2 * PAUSE_MS] * 4


def test_what_stays_away_ends_the_job(tmp_path: Path) -> None:
    job = lake_job("parquet", tmp_path, FakeLog(LOG))
    made, stop = service(cast("LakeJob", Failing(job, TableUnavailableError("away"), 99)))
    with pytest.raises(TableUnavailableError):
        made.run()
    assert len(stop.waited_ms) == 3


def test_what_needs_a_person_is_not_tried_again(tmp_path: Path) -> None:
    job = lake_job("parquet", tmp_path, FakeLog(LOG))
    made, stop = service(cast("LakeJob", Failing(job, LostOffsetsError("t", 0, 1, 2), 1)))
    with pytest.raises(LostOffsetsError):
        made.run()
    assert stop.waited_ms == []
