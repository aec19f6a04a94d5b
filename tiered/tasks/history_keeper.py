"""History keeper: schedules the writes of the history objects of all partitions led here.

    keep ──> idle ──a check finds a change─────────────> queued ──a place──> writing ──> idle
              ^    ──a caller waits (`without`)────────> queued, before others   │
              │                                                                  │
              └───────── backing off <────────────── failed ─────────────────────┘

Each partition is checked three times in an interval (`tier.history.interval.ms`), a few at each
tick, by a few numbers; nothing else is done for one that has not changed. A partition is written at
most once in an interval, unless a caller waits for it: a segment's objects are about to go, or
DeleteRecords is to be answered. One write serves all callers that waited before it began, so a
retention pass over many segments waits for one.

At most `TASKS` are written at a time, and `URGENT_TASKS` more of those that are waited for.

What a leadership writes first may be written over: by a write of the leader before, which was on
its way when that was replaced, or by an own one that was given up and is applied all the same. So
the object is read once more `LATE_MS` later, and put right.
"""

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from config.tier import TierConfig
from storage.environment.environment import Environment
from storage.environment.repeated_line import RepeatedLine
from storage.environment.timer import TimerHandle
from storage.errors import StorageError
from tiered.deadline import Deadline, sleep_ms
from tiered.errors import (
    RemoteStorageNotReadyError,
    StoreTimeoutError,
    StoreUnavailableError,
    TieredError,
    TierProcessError,
)
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import RemoteLogSegmentMetadata, SegmentState, TopicIdPartition
from tiered.tasks.history_view import Signature, signature_of, was_ever_copied
from tiered.tasks.history_writer import NO_OBJECT, HistoryWriter, WrittenHistory
from tiered.tasks.led_partition import LedPartition
from tiered.tasks.task_pool import Job, TaskPool

_log = logging.getLogger(__name__)

TASKS: Final = 4
URGENT_TASKS: Final = 8

CHECKS_PER_INTERVAL: Final = 3

TICK_MS: Final = 1_000.0
"""Between two ticks, at most; with 10,000 partitions and the default interval each has 1,000."""

WORK_PER_TICK_MS: Final = 5.0
"""No further check after so long; those left over are checked in the next tick."""

RING_SLACK: Final = 100
"""Dropped partitions that may still be in the ring."""

BACKOFF_MS: Final = 1_000.0
"""After the first failure; doubled with each up to the interval."""

PUBLISH_AGAIN_MS: Final = 200.0
"""Before a write is tried again that DeleteRecords waits for."""

LATE_MS: Final = 600_000.0
"""By then what was on its way to the store has come there: ten times what a call may take."""

_PASSING = (StoreUnavailableError, TierProcessError)

LOG_INTERVAL_MS: Final = 60_000.0
"""Between two lines about failures: a bucket that is away fails for every partition."""


class KeptPartition:
    """One partition that is led here.

    Attributes:
        led: The leadership.
        written: What the bucket has, as far as this leadership has written it.
        seen: What was current when that was written.
        behind_since_ms: Since when the object is known to lag behind, on the monotonic clock.
        wrote_ms, retry_ms: When the last write worked; when one may be tried again that failed. No
            check leads to a write before the latter, or within the interval of the former.
        failures: Since one worked.
        is_doubted: An older write than the next one may be applied after it.
        compare_ms: When the object is to be read once more, on the monotonic clock.
        job: Queued or running.
        waiters: Of a write that has not begun.
        is_dropped: It is not led any more.
    """

    __slots__ = (
        "behind_since_ms",
        "compare_ms",
        "failures",
        "is_doubted",
        "is_dropped",
        "is_running",
        "job",
        "led",
        "retry_ms",
        "seen",
        "waiters",
        "written",
        "wrote_ms",
    )

    def __init__(self, led: LedPartition) -> None:
        self.led = led
        self.written: WrittenHistory | None = None
        self.seen: Signature | None = None
        self.behind_since_ms: float | None = None
        self.wrote_ms = float("-inf")
        self.retry_ms = float("-inf")
        self.failures = 0
        self.is_doubted = True
        self.compare_ms = float("inf")
        self.job: Job | None = None
        self.is_running = False
        self.waiters: list[asyncio.Future[None]] = []
        self.is_dropped = False


class HistoryKeeper:
    """See the module. Touched on the loop's thread only.

    Attributes:
        writer: Does it.
        pool, urgent_pool: For their gauges.
        writes, written_bytes: Objects put.
        failures: Writes that failed.
        late_answers: DeleteRecords that were answered before the object was written.
    """

    def __init__(
        self,
        *,
        writer: HistoryWriter,
        metadata: RemoteLogMetadataManager,
        environment: Environment,
        settings: Callable[[], TierConfig],
    ) -> None:
        """Nothing runs before `start`."""
        self.writer = writer
        self.pool = TaskPool("history", TASKS)
        self.urgent_pool = TaskPool("history-urgent", URGENT_TASKS)
        self.writes = 0
        self.written_bytes = 0
        self.failures = 0
        self.late_answers = 0
        self._metadata = metadata
        self._clock = environment.clock
        self._timer = environment.timer
        self._settings = settings
        self._kept: dict[TopicIdPartition, KeptPartition] = {}
        self._ring: deque[KeptPartition] = deque()
        # Of partitions that were dropped while they were written.
        self._ending: dict[TopicIdPartition, int] = {}
        self._handle: TimerHandle | None = None
        self._is_started = False
        self._failure_line = RepeatedLine(environment.clock, LOG_INTERVAL_MS)

    # -- life ------------------------------------------------------------------------------------

    @property
    def _interval_ms(self) -> float:
        """0: nothing is written."""
        return float(self._settings().tier_history_interval_ms)

    def start(self) -> None:
        """Start checking."""
        self._is_started = True
        self._arm()

    def update(self) -> None:
        """The settings have changed."""
        for kept in self._kept.values():
            if not self._interval_ms:
                kept.behind_since_ms = None
        self._arm()

    async def flush(self, deadline_ms: float) -> None:
        """Write what has changed, as far as time and store allow; then nothing runs any more.

        Raises:
            TieredError: Not all of it was written.
        """
        self._is_started = False
        self._arm()
        waiting = [
            self._request(kept)
            for kept in self._kept.values()
            if self._interval_ms and self._has_changed(kept)
        ]
        try:
            async with Deadline(self._timer, deadline_ms, "writing the histories of partitions"):
                # A store that is away need not be asked for each of them.
                await asyncio.gather(*waiting)
        finally:
            for kept in list(self._kept.values()):
                self.drop(kept.led.tiered.partition)
            await self.pool.close()
            await self.urgent_pool.close()

    # -- the manager's calls ---------------------------------------------------------------------

    def keep(self, led: LedPartition) -> None:
        """A leadership has begun."""
        partition = led.tiered.partition
        self.drop(partition)
        kept = self._kept[partition] = KeptPartition(led)
        self._ring.append(kept)
        if len(self._ring) > 2 * len(self._kept) + RING_SLACK:
            # Checks are what removes dropped ones, and there may be no checks.
            self._ring = deque(self._kept.values())

    def drop(self, partition: TopicIdPartition) -> None:
        """It is over: a write under way is cancelled, and `is_busy` until it has ended."""
        kept = self._kept.pop(partition, None)
        if kept is None:
            return
        kept.is_dropped = True
        job, kept.job = kept.job, None
        if job is not None:
            if kept.is_running:
                self._ending[partition] = self._ending.get(partition, 0) + 1
            job.cancel()
        self._answer(kept.waiters, RemoteStorageNotReadyError(f"{partition} is not led any more"))
        kept.waiters = []

    def is_busy(self, partition: TopicIdPartition) -> bool:
        """A write of a past leadership has not ended yet."""
        return partition in self._ending

    def touch(self, partition: TopicIdPartition) -> None:
        """Note a change that no check covers: of the number of partitions, say."""
        kept = self._kept.get(partition)
        if kept is not None:
            kept.seen = None

    def overrule(self) -> None:
        """An operator says that this broker goes on: what greater leader epochs wrote is past."""
        self.writer.overruled = True
        for kept in self._kept.values():
            kept.seen = None
            kept.wrote_ms = kept.retry_ms = float("-inf")

    def doubt(self) -> None:
        """Compare every object again: the bucket was another one, and may have got some of them."""
        for kept in self._kept.values():
            kept.seen = None
            kept.written = None
            kept.wrote_ms = float("-inf")

    async def without(self, segment: RemoteLogSegmentMetadata) -> None:
        """Return when the bucket's history has no such segment: its objects are about to go.

        Their deletion has been published before, so that no history that begins now has it.

        Raises:
            TieredError: That could not be made so; the objects must stay.
        """
        kept = self._kept.get(segment.partition)
        # Of a topic that is being deleted the object says that and no more.
        if kept is None or not self._interval_ms:
            return
        if segment.state is SegmentState.COPY_SEGMENT_STARTED:
            # It was never finished, and so never in one.
            return
        if kept.written is None or kept.written.holds(segment.id):
            await self._request(kept)

    async def publish_log_starts(
        self, partitions: Iterable[TopicIdPartition], limit_ms: float
    ) -> list[TopicIdPartition]:
        """Write the new log starts of deleted records, before DeleteRecords is answered.

        Args:
            partitions: With raised log starts.
            limit_ms: No longer than that; the objects follow when they can.

        Returns:
            Those of which the bucket may not know yet.
        """
        left = list(partitions)
        late: list[TopicIdPartition] = []
        try:
            async with Deadline(self._timer, limit_ms, "publishing log starts to the bucket"):
                while left:
                    left = await self._try_publish(left, late)
                    if left:
                        # A store that stumbled once may be there in a moment.
                        await sleep_ms(self._timer, PUBLISH_AGAIN_MS)
        except StoreTimeoutError:
            late += [partition for partition in left if partition not in late]
        if late:
            self.late_answers += len(late)
            _log.warning(
                "DeleteRecords answered before varve-history was updated: %d partitions, "
                "the first %s",
                len(late),
                late[0],
            )
        return late

    async def _try_publish(
        self, partitions: Iterable[TopicIdPartition], late: list[TopicIdPartition]
    ) -> list[TopicIdPartition]:
        """Those that may be tried again at once; adds those that may not to `late`."""
        waiting: dict[TopicIdPartition, asyncio.Future[None]] = {}
        for partition in partitions:
            kept = self._kept.get(partition)
            if kept is not None and self._interval_ms and self._has_changed(kept):
                waiting[partition] = self._request(kept)
        again = []
        try:
            if waiting:
                await asyncio.wait(waiting.values())
        finally:
            # Also when the time is up, or the client has left: nothing else cancels them.
            for partition, future in waiting.items():
                future.cancel()
                error = None if future.cancelled() else future.exception()
                if isinstance(error, _PASSING):
                    again.append(partition)
                elif error is not None:
                    late.append(partition)
        return again

    # -- what there is ---------------------------------------------------------------------------

    @property
    def kept(self) -> int:
        """Partitions whose object is kept up to date."""
        return len(self._kept)

    @property
    def behind(self) -> int:
        """Partitions whose object is known to lag behind."""
        return sum(kept.behind_since_ms is not None for kept in self._kept.values())

    @property
    def oldest_behind_ms(self) -> float:
        """For how long the one has lagged that has lagged longest; 0: none does."""
        since = [k.behind_since_ms for k in self._kept.values() if k.behind_since_ms is not None]
        return self._clock.monotonic_ms() - min(since) if since else 0.0

    # -- checks ----------------------------------------------------------------------------------

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._is_started and self._interval_ms:
            self._handle = self._timer.call_later_ms(self._tick_ms, self._tick)

    @property
    def _tick_ms(self) -> float:
        return min(TICK_MS, max(self._interval_ms / CHECKS_PER_INTERVAL, 1.0))

    def _tick(self) -> None:
        self._arm()
        part = self._tick_ms * CHECKS_PER_INTERVAL / self._interval_ms
        until_ms = self._clock.monotonic_ms() + WORK_PER_TICK_MS
        for _ in range(min(math.ceil(len(self._ring) * part), len(self._ring))):
            kept = self._ring.popleft()
            if kept.is_dropped:
                continue
            self._ring.append(kept)
            self._check(kept)
            if self._clock.monotonic_ms() >= until_ms:
                break

    def _check(self, kept: KeptPartition) -> None:
        if kept.job is not None:
            return
        now_ms = self._clock.monotonic_ms()
        is_due = self._has_changed(kept) and now_ms >= kept.wrote_ms + self._interval_ms
        if now_ms >= kept.compare_ms:
            # What is there is read.
            kept.written = None
            is_due = True
        if is_due and now_ms >= kept.retry_ms and kept.led.tiered.may_change():
            self._submit(kept, self.pool)

    def _has_changed(self, kept: KeptPartition) -> bool:
        """Whether the object may lag behind; remembers since when."""
        if not self._metadata.is_ready(kept.led.tiered.partition):
            return False
        present = signature_of(kept.led, self._metadata)
        if present == kept.seen:
            return False
        if (
            kept.written is None
            and not present.log_start_offset
            and not was_ever_copied(kept.led, self._metadata)
        ):
            # Nothing was copied, and no epoch of a copy can have been forgotten: idle partitions,
            # of which there are thousands, cost no request.
            kept.seen = present
            return False
        if kept.behind_since_ms is None:
            kept.behind_since_ms = self._clock.monotonic_ms()
        return True

    # -- writing ---------------------------------------------------------------------------------

    def _request(self, kept: KeptPartition) -> "asyncio.Future[None]":
        """Done when a write has worked that begins from now on."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        kept.waiters.append(future)
        if kept.job is not None and not kept.is_running:
            # Before those without a waiter.
            job, kept.job = kept.job, None
            job.cancel()
        if kept.job is None:
            self._submit(kept, self.urgent_pool)
        return future

    def _submit(self, kept: KeptPartition, pool: TaskPool) -> None:
        job: Job | None = None

        async def work() -> None:
            await self._write(kept)

        def ended(error: BaseException | None) -> None:
            if kept.job is job:
                kept.job = None
            if kept.is_running:
                kept.is_running = False
                self._ended(kept, error)

        job = kept.job = pool.submit(work, ended)

    async def _write(self, kept: KeptPartition) -> None:
        kept.is_running = True
        served, kept.waiters = kept.waiters, []
        compares = kept.written is None and self._clock.monotonic_ms() >= kept.compare_ms
        try:
            written = await self.writer.write(kept.led, kept.written)
        except (TieredError, StorageError) as error:
            self._answer(served, error)
            raise
        except BaseException:
            self._answer(served, RemoteStorageNotReadyError("the history was not written"))
            raise
        kept.written = written
        kept.seen = written.signature
        kept.behind_since_ms = None
        kept.failures = 0
        kept.wrote_ms = self._clock.monotonic_ms()
        if kept.is_doubted and written.digest != NO_OBJECT:
            kept.is_doubted = False
            kept.compare_ms = kept.wrote_ms + LATE_MS
        elif compares:
            kept.compare_ms = math.inf
        if written.size:
            self.writes += 1
            self.written_bytes += written.size
        self._answer(served, None)

    def _ended(self, kept: KeptPartition, error: BaseException | None) -> None:
        partition = kept.led.tiered.partition
        if kept.is_dropped:
            count = self._ending.pop(partition) - 1
            if count:
                self._ending[partition] = count
            return
        if error is not None and not isinstance(error, asyncio.CancelledError):
            self._failed(kept, error)
        if kept.waiters and kept.job is None:
            self._submit(kept, self.urgent_pool)

    def _failed(self, kept: KeptPartition, error: BaseException) -> None:
        self.failures += 1
        now_ms = self._clock.monotonic_ms()
        if kept.behind_since_ms is None:
            kept.behind_since_ms = now_ms
        # The object may have been written, though the answer was lost, or be written later.
        kept.seen = None
        kept.written = None
        kept.is_doubted = True
        delay_ms = min(BACKOFF_MS * 2 ** min(kept.failures, 20), max(self._interval_ms, BACKOFF_MS))
        kept.failures += 1
        kept.retry_ms = now_ms + delay_ms
        if not isinstance(error, (TieredError, StorageError)):
            _log.error(
                "%s: varve-history cannot be written", kept.led.tiered.partition, exc_info=error
            )
        elif self._failure_line.is_due():
            _log.warning(
                "%s: varve-history cannot be written (%d partitions are behind): %s",
                kept.led.tiered.partition,
                self.behind,
                error,
            )

    @staticmethod
    def _answer(waiters: "list[asyncio.Future[None]]", error: Exception | None) -> None:
        for future in waiters:
            if future.done():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
