"""What the broker does by itself, now and then, each on its own timer.

Logs belong to the loop's thread: what changes a log is done there, a few logs at a time; what only
takes time (fsync, writing checkpoints, removing files, compaction) is done in threads.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from storage.errors import DiskError

if TYPE_CHECKING:
    from broker.disk import Disk
    from broker.partition import Partition
    from broker.replica_manager import ReplicaManager
    from broker.timer import Timer
    from config.broker import BrokerConfig
    from storage.clock import Clock
    from storage.log_manager import LogManager

LOGGER = logging.getLogger(__name__)

CHECKPOINT_MS = 5_000.0
"""Recovery points are written at least this often, whatever Kafka's one minute says."""

FLUSH_CHECK_MS = 250.0
"""How soon `flush.ms` is noticed, and how soon after a roll the rolled segment is flushed: that
bounds what a restart must read again."""

REMOVE_DELETED_MS = 5_000.0

ROOM_CHECK_MS = 2_000.0
"""How soon a full directory gives its reserve up, and takes records again when there is room."""

LOGS_PER_TURN = 100


class Background:
    """See the module."""

    def __init__(
        self,
        *,
        settings: "BrokerConfig",
        log_manager: "LogManager",
        replicas: "ReplicaManager",
        disk: "Disk",
        timer: "Timer",
        clock: "Clock",
        create_unmade: Callable[[], Awaitable[None]],
        current: "Callable[[], BrokerConfig] | None" = None,
    ) -> None:
        """Do nothing yet.

        Args:
            settings: Those it starts with.
            log_manager: Whose logs.
            replicas: Who serves them.
            disk: Threads.
            timer: For every duty.
            clock: For the wall clock.
            create_unmade: Makes the logs that could not be made for want of room.
            current: The settings that count now; default: those it starts with.
        """
        self._create_unmade = create_unmade
        self._current = current or (lambda: settings)
        self._settings = settings
        self._log_manager = log_manager
        self._replicas = replicas
        self._disk = disk
        self._timer = timer
        self._clock = clock
        self._stopped = False
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin; the first turn of each duty comes one period from now."""
        settings = self._settings
        manager = self._log_manager
        self._every(FLUSH_CHECK_MS, self._flush_due)
        self._every(
            min(float(settings.replica_high_watermark_checkpoint_interval_ms), CHECKPOINT_MS),
            lambda: self._disk.run(manager.checkpoint_high_watermarks),
        )
        self._every(
            min(float(settings.log_flush_offset_checkpoint_interval_ms), CHECKPOINT_MS),
            lambda: self._disk.run(manager.checkpoint_recovery_points),
        )
        self._every(
            float(settings.log_flush_start_offset_checkpoint_interval_ms),
            lambda: self._disk.run(manager.checkpoint_log_start_offsets),
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
        self._every(REMOVE_DELETED_MS, lambda: self._disk.run(manager.remove_deleted))
        self._every(lambda: float(self._current().log_cleaner_backoff_ms), self._clean)

    def _every(
        self,
        period_ms: float | Callable[[], float],
        duty: Callable[[], Awaitable[object]],
        *,
        first_ms: float | None = None,
    ) -> None:
        """Do `duty` again and again, `period_ms` after its last end.

        A period that may change while the broker runs is a function.
        """

        def pause_ms() -> float:
            return period_ms() if callable(period_ms) else period_ms

        async def once() -> None:
            try:
                await duty()
            except DiskError as error:
                LOGGER.error("background duty failed error=%s", error)
            except Exception:
                LOGGER.exception("background duty failed")
            if not self._stopped:
                self._timer.call_later_ms(pause_ms(), begin)

        def begin() -> None:
            if not self._stopped:
                task = asyncio.get_running_loop().create_task(once())
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

        self._timer.call_later_ms(pause_ms() if first_ms is None else first_ms, begin)

    async def stop(self) -> None:
        """Let running duties end; none begins any more."""
        self._stopped = True
        self._log_manager.cleaning.abort_all()
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    async def _each(self, act: Callable[["Partition"], object]) -> None:
        """Do something with every partition, letting the loop turn in between."""
        for count, partition in enumerate(list(self._replicas.partitions()), 1):
            try:
                act(partition)
            except DiskError as error:
                self._replicas.disk_failed(partition, error)
            if count % LOGS_PER_TURN == 0:
                await asyncio.sleep(0)

    async def _flush_due(self) -> None:
        def flush(partition: "Partition") -> None:
            target = partition.log.flush_target()
            if target is None:
                return
            if target >= partition.log.log_end_offset:
                partition.commit.request()
            else:
                # Not the active segment: it will have grown by the time it is needed on disk.
                partition.commit.request_rolled()

        await self._each(flush)

    def make_room(self) -> None:
        """A directory has just become full: give its reserve up now."""
        if not self._stopped:
            task = asyncio.get_running_loop().create_task(self._room())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _room(self) -> None:
        await self._disk.run(self._log_manager.room_pass)
        await self._create_unmade()

    async def _retention(self) -> None:
        cleaning = self._log_manager.cleaning
        if any(
            partition.log.durable_log_start_offset < partition.log.log_start_offset
            for partition in self._replicas.partitions()
            if partition.log.remote_storage
        ):
            # Of a tiered log nothing is given up that a crash would bring back as a hole.
            await self._disk.run(self._log_manager.checkpoint_log_start_offsets)

        def delete_old(partition: "Partition") -> None:
            if cleaning.try_pause(partition.topic_partition):
                try:
                    partition.log.delete_old_segments()
                finally:
                    cleaning.resume(partition.topic_partition)

        await self._each(delete_old)

    async def _expire_producers(self) -> None:
        now_ms = self._clock.now_ms()
        await self._each(lambda partition: partition.log.producer_state.remove_expired(now_ms))

    async def _clean(self) -> None:
        while not self._stopped:
            if await self._disk.run(self._log_manager.clean_dirtiest) is None:
                return
