"""Periodic maintenance of logs: flush, checkpoints, retention, compaction, producer id expiration.

Each has its own timer.

Logs belong to the loop's thread: what changes a log is done there, for a millisecond or two at a
time; what only takes time (fsync, writing checkpoints, removing files, compaction, finding out how
old a segment is) is done in threads.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from storage.errors import DiskError, StorageError
from storage.index.reads import CachedReads, Reads, WouldBlockError

if TYPE_CHECKING:
    from broker.replicas.partition import Partition
    from broker.replicas.replica_manager import ReplicaManager
    from broker.runtime.disk import Disk
    from config.broker import BrokerConfig
    from storage.environment.environment import Environment
    from storage.manager.log_manager import LogManager

LOGGER = logging.getLogger(__name__)

CHECKPOINT_MS = 5_000.0
"""Recovery points are written at least this often, whatever Kafka's one minute says."""

FLUSH_CHECK_MS = 250.0
"""Interval of checking `flush.ms`, and of flushing rolled segments: that bounds how much a restart
must recover."""

FLUSH_CHECK_PAUSE = 250.0
"""The pause after a check, in times that it took: thousands of logs are checked less often."""

LOOKED_AT = 64
"""Logs that are checked for unflushed records between two reads of the clock."""

REMOVE_DELETED_MS = 5_000.0

ROOM_CHECK_MS = 2_000.0
"""How soon a full directory releases its reserve, and accepts records again when it has room."""

SLICE_MS = 2.0
"""Work on logs before the event loop goes on with requests."""


class Background:
    """See the module."""

    def __init__(
        self,
        *,
        settings: "Callable[[], BrokerConfig]",
        environment: "Environment",
        log_manager: "LogManager",
        replicas: "ReplicaManager",
        disk: "Disk",
        create_unmade: Callable[[], Awaitable[None]],
        after_cleaning: Callable[[], None] = lambda: None,
    ) -> None:
        """Do nothing until `start`.

        Args:
            settings: Returns the current settings.
            environment: Clock and timer.
            log_manager: Has the logs.
            replicas: Serves the logs.
            disk: Threads of each log directory.
            create_unmade: Creates the logs that could not be created for lack of room.
            after_cleaning: Called in a thread when no log is dirty any more.
        """
        self._after_cleaning = after_cleaning
        self._create_unmade = create_unmade
        self._settings = settings
        self._log_manager = log_manager
        self._replicas = replicas
        self._disk = disk
        self._timer = environment.timer
        self._clock = environment.clock
        self._flush_check_ms = FLUSH_CHECK_MS
        self._stopped = False
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Start the timers; each task first runs one period from now."""
        settings = self._settings()
        manager = self._log_manager
        self._every(lambda: self._flush_check_ms, self._flush_due)
        self._every(
            min(float(settings.replica_high_watermark_checkpoint_interval_ms), CHECKPOINT_MS),
            lambda: self._disk.run(manager.checkpoints.write_high_watermarks),
        )
        self._every(
            min(float(settings.log_flush_offset_checkpoint_interval_ms), CHECKPOINT_MS),
            lambda: self._disk.run(manager.checkpoints.write_recovery_points),
        )
        self._every(
            float(settings.log_flush_start_offset_checkpoint_interval_ms),
            lambda: self._disk.run(manager.checkpoints.write_log_start_offsets),
        )
        self._every(
            float(settings.log_retention_check_interval_ms),
            self._retention,
            first_ms=float(settings.log_initial_task_delay_ms),
        )
        self._every(
            float(settings.producer_id_expiration_check_interval_ms), self._expire_producers
        )
        self._every(ROOM_CHECK_MS, self._room)
        self._every(REMOVE_DELETED_MS, lambda: self._disk.run(manager.deletion.remove_deleted))
        self._every(lambda: float(self._settings().log_cleaner_backoff_ms), self._clean)

    def _every(
        self,
        period_ms: float | Callable[[], float],
        duty: Callable[[], Awaitable[object]],
        *,
        first_ms: float | None = None,
    ) -> None:
        """Run `duty` repeatedly, `period_ms` after its last end.

        A period that may change while the broker runs is a function.
        """

        def pause_ms() -> float:
            return period_ms() if callable(period_ms) else period_ms

        async def once() -> None:
            try:
                await duty()
            except DiskError as error:
                LOGGER.error("periodic task failed error=%s", error)
            except Exception:
                LOGGER.exception("periodic task failed")
            if not self._stopped:
                self._timer.call_later_ms(pause_ms(), begin)

        def begin() -> None:
            if not self._stopped:
                task = asyncio.get_running_loop().create_task(once())
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

        self._timer.call_later_ms(pause_ms() if first_ms is None else first_ms, begin)

    async def stop(self) -> None:
        """Wait for running tasks; no further one starts."""
        self._stopped = True
        self._log_manager.cleaning.abort_all()
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    async def _each(self, act: Callable[["Partition", Reads], object]) -> None:
        """Act on every partition, with event loop iterations in between.

        What `act` would have to wait for the disk for is read by a thread, then it is done again;
        one directory's logs do not wait for those of another.
        """
        by_directory: dict[str, list[Partition]] = {}
        for partition in self._replicas.partitions():
            directory = partition.log.directory.rpartition("/")[0]
            by_directory.setdefault(directory, []).append(partition)
        await asyncio.gather(
            *(self._each_of(partitions, act) for partitions in by_directory.values())
        )

    async def _each_of(
        self, partitions: list["Partition"], act: Callable[["Partition", Reads], object]
    ) -> None:
        end_ms = self._clock.monotonic_ms() + SLICE_MS
        for partition in partitions:
            if not partition.is_truncating:
                await self._do(partition, act)
            if self._clock.monotonic_ms() >= end_ms:
                await asyncio.sleep(0)
                end_ms = self._clock.monotonic_ms() + SLICE_MS

    async def _do(
        self, partition: "Partition", act: Callable[["Partition", Reads], object]
    ) -> None:
        reads = CachedReads()
        while self._replicas.replica_of(*partition.topic_partition) is partition:
            try:
                act(partition, reads)
            except WouldBlockError as need:
                try:
                    found = await self._disk.of(partition.log.directory).run(need.work)
                except StorageError as error:
                    reads.keep(need.key, None, error)
                else:
                    reads.keep(need.key, found)
                if not self._stopped:
                    continue
            except DiskError as error:
                self._replicas.disk_failed(partition, error)
            return

    async def _flush_due(self) -> None:
        """Flush what is due; of thousands of logs nearly all have nothing that is not on disk."""
        began_ms = end_ms = self._clock.monotonic_ms()
        end_ms += SLICE_MS
        used_ms = 0.0
        partitions = tuple(self._replicas.partitions())
        for first in range(0, len(partitions), LOOKED_AT):
            for partition in partitions[first : first + LOOKED_AT]:
                log = partition.log
                if log.log_end_offset > log.recovery_point and not partition.is_truncating:
                    await self._do(partition, _flush)
            now_ms = self._clock.monotonic_ms()
            if now_ms >= end_ms:
                used_ms += now_ms - began_ms
                await asyncio.sleep(0)
                began_ms = self._clock.monotonic_ms()
                end_ms = began_ms + SLICE_MS
        used_ms += self._clock.monotonic_ms() - began_ms
        self._flush_check_ms = max(FLUSH_CHECK_MS, used_ms * FLUSH_CHECK_PAUSE)

    def make_room(self) -> None:
        """A directory has just become full: release its reserve now."""
        if not self._stopped:
            task = asyncio.get_running_loop().create_task(self._room())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _room(self) -> None:
        await self._disk.run(self._log_manager.room.check)
        await self._create_unmade()

    async def _retention(self) -> None:
        cleaning = self._log_manager.cleaning
        if any(
            log.durable_log_start_offset < log.log_start_offset
            or (log.remote_storage and log.durable_remote_offset < log.highest_remote_offset)
            for log in (partition.log for partition in self._replicas.partitions())
            if log.has_remote_part
        ):
            # A tiered log deletes nothing that would become a hole after a crash, nor what would
            # look as if it had never been copied.
            await self._disk.run(self._log_manager.checkpoints.write_log_start_offsets)

        def delete_old(partition: "Partition", reads: Reads) -> None:
            if cleaning.try_pause(partition.topic_partition):
                try:
                    partition.log.retention.delete_old_segments(reads)
                    partition.pump()
                finally:
                    cleaning.resume(partition.topic_partition)

        await self._each(delete_old)

    async def _expire_producers(self) -> None:
        now_ms = self._clock.now_ms()
        await self._each(lambda partition, _: partition.log.producer_state.remove_expired(now_ms))

    async def _clean(self) -> None:
        """Compact logs, `log.cleaner.threads` at a time."""

        async def clean() -> None:
            while not self._stopped:
                if await self._disk.run(self._log_manager.compaction.clean_dirtiest) is None:
                    return

        await asyncio.gather(
            *(clean() for _ in range(max(self._settings().log_cleaner_threads, 1)))
        )
        await self._disk.run(self._after_cleaning)


def _flush(partition: "Partition", _reads: Reads) -> None:
    target = partition.log.flusher.flush_target()
    if target is None:
        return
    if target >= partition.log.log_end_offset:
        partition.commit.request()
    else:
        # Not the active segment: it will have grown by the time it is needed on disk.
        partition.commit.request_rolled()
