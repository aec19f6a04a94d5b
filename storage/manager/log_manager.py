"""The log manager: all logs of a broker, by partition, and the log directories they are in.

    open_directories ─> claim ─> load_jobs ─> jobs run, one log after the other serves
                                                  │
              creation, deletion, ...        <────┘
                                                  │
                                              shutdown

Several log directories (`log.dirs`): a new partition goes to the one with the fewest. A directory
whose disk fails goes offline, its partitions with it; the others serve. Without any left the
broker must stop.

Synchronous. `get` and `logs` may be called anywhere; all else touches disks and belongs in a
thread, where calls may overlap: one lock guards the map of logs, held only for moments. A log that
serves belongs to one thread, though, the loop's; what changes it goes there through `on_owner`, in
small steps, and only the slow part (fdatasync, reading and writing for compaction, removing) stays.

It is composed. It is its own state (`log_table`), and has one object for each duty; a part gets the
state and the parts that it calls:

    startup       open directories, load the logs             log_startup     at start
    creation      find or make a log                          log_creation    for new partitions
    deletion      delete logs, remove directories             log_deletion    for topics deleted
    checkpoints   write offset checkpoints                    log_checkpoints at intervals
    compaction    compact the dirtiest log                    log_compaction  at intervals
    truncation    cut logs that follow a leader               log_truncations when logs diverge
    moves         move a log to another directory             log_moves       AlterReplicaLogDirs
    room          bring full directories back                 log_room        at intervals

    truncation ──> checkpoints, compaction
    moves ──> checkpoints        room ──> startup ──┐
      └──────────────────> opener <── creation      ├──> deletion ──> state
                              ^─────────────────────┘

Source: Kafka, LogManager.scala.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from storage.checkpoints.checkpoint_files import RECOVERY_POINT_CHECKPOINT
from storage.environment.alerts import Alerts
from storage.environment.environment import Environment
from storage.errors import DiskError
from storage.log.log import Log
from storage.manager.cut_segments import CutSegments
from storage.manager.log_checkpoints import LogCheckpoints
from storage.manager.log_compaction import LogCompaction
from storage.manager.log_creation import LogCreation
from storage.manager.log_deletion import LogDeletion
from storage.manager.log_jobs import CLOSING_THREADS, Run, run_in_threads, run_one_by_one
from storage.manager.log_moves import LogMoves
from storage.manager.log_opener import LogOpener
from storage.manager.log_room import LogRoom
from storage.manager.log_startup import LogStartup
from storage.manager.log_table import LogManagerSettings, LogTable
from storage.manager.log_truncations import LogTruncations
from storage.manager.set_aside_alerts import SetAsideAlerts
from storage.types.owner import OnOwner, in_this_thread

__all__ = ["LogManager", "LogManagerSettings"]


def _unthrottled(_size: int, _check_done: Callable[[], None]) -> None:
    pass


class LogManager(LogTable):
    """See the module; look-up, failures and settings are described at `LogTable`.

    It owns its parts, shutdown, and changes of settings that concern all logs.

    Attributes:
        startup: See the module; likewise the others.
        creation: See there.
        deletion: See there.
        checkpoints: See there.
        compaction: See there.
        truncation: See there.
        moves: See there.
        room: See there.
    """

    def __init__(
        self,
        environment: Environment,
        log_dirs: Sequence[str],
        *,
        settings: LogManagerSettings | None = None,
        cleaner_throttle: Callable[[int, Callable[[], None]], None] = _unthrottled,
        on_owner: OnOwner = in_this_thread,
        alerts: Alerts | None = None,
    ) -> None:
        """Touch no disk yet.

        Args:
            environment: Of the broker.
            log_dirs: Absolute paths.
            settings: See there; default: all defaults.
            cleaner_throttle: See `Cleaner`.
            on_owner: Runs what changes a log that serves.
            alerts: Conditions for the operator; default: a list of its own.
        """
        super().__init__(environment, log_dirs, settings=settings, on_owner=on_owner, alerts=alerts)
        opener = LogOpener(self)
        set_aside_alerts = SetAsideAlerts(self)
        self.checkpoints: Final = LogCheckpoints(self)
        self.compaction: Final = LogCompaction(self, cleaner_throttle)
        self.truncation: Final = LogTruncations(self, self.checkpoints, self.compaction)
        self.creation: Final = LogCreation(self, opener)
        self.cut_segments: Final = CutSegments(self, cleaner_throttle)
        self.deletion: Final = LogDeletion(self, set_aside_alerts, self.cut_segments)
        self.startup: Final = LogStartup(
            self, opener, set_aside_alerts, self.deletion, self.compaction
        )
        self.moves: Final = LogMoves(self, opener, self.checkpoints, self.deletion)
        self.room: Final = LogRoom(self, self.startup)

    def expire_producers_after(self, expiration_ms: int) -> None:
        """`producer.id.expiration.ms` has changed: for all logs, and those to come.

        On the thread that appends.
        """
        self.settings = replace(self.settings, producer_id_expiration_ms=expiration_ms)
        for log in self.logs():
            log.producer_state.expiration_ms = expiration_ms

    def require_verification(self, enabled: bool) -> None:
        """`transaction.partition.verification.enable` has changed: for all logs, and those to come.

        On the thread that appends.
        """
        self.settings = replace(self.settings, transaction_partition_verification_enable=enabled)
        for log in self.logs():
            log.producer_state.requires_verification = enabled

    def note_failures(self) -> None:
        """Leave a note in directories whose disk has failed, for the next start; may wait long."""
        for directory in self.directories:
            directory.note_failure()

    def count_as_unclean(self) -> None:
        """Leave no clean-shutdown markers: the next start begins leader epochs, as after a kill."""
        for directory in self.directories:
            directory.was_closed_cleanly = False

    def shutdown(
        self,
        *,
        clean: bool = True,
        side_by_side: Run = run_in_threads,
        broker_epoch: int = -1,
    ) -> None:
        """Close all logs and release the directories.

        Args:
            clean: Flush everything, write the checkpoints and the clean-shutdown markers. False:
                leave the disk as it is.
            side_by_side: Closes many logs in a few threads, for each waits for the disk several
                times.
            broker_epoch: Goes into the markers; -1: of a node that is alone.
        """
        self.cleaning.abort_all()
        logs = self.logs()
        for directory in self.online():
            # What is written last may need its room.
            directory.reserve.give_up()

        def close(log: Log) -> None:
            try:
                log.close(clean=clean)
            except DiskError as error:
                directory = self.directory_of(log)
                if directory is not None:
                    directory.was_closed_cleanly = False
                self.fail_log(log, error)

        jobs = [partial(close, log) for log in logs]
        run = side_by_side if clean and len(jobs) > CLOSING_THREADS else run_one_by_one
        run(jobs)
        if clean:
            self.checkpoints.write()
            for log in logs:
                where = self.directory_of(log)
                # By a clean stop the log would end at the recovery point that is written down, and
                # what lies above be of a hand that has left gaps. There was no room to write it;
                # or the log was out of service, and nothing was flushed.
                if where is not None and (
                    log.failure is not None
                    or where.checkpointed(RECOVERY_POINT_CHECKPOINT, log.topic_partition)
                    != log.recovery_point
                ):
                    where.was_closed_cleanly = False
        for directory in self.directories:
            try:
                directory.close(mark_clean=clean, broker_epoch=broker_epoch)
            except DiskError as error:
                self.fail(directory, error)
        with self.lock:
            self.serving.clear()
