"""Full log directories: how they refuse records, and how they recover.

    TAKES RECORDS ──ENOSPC, EDQUOT anywhere──> FULL: records are refused, the reserve is released
          ^                                     │
          └─────── reserve taken again, <───────┘
                   logs made good, logs that could not be opened opened

A failed fsync is no part of this: it takes the directory offline, whatever the reason was.
"""

import threading

from storage.checkpoints.log_directory import LogDirectory
from storage.environment.alerts import AlertKind
from storage.errors import DiskError
from storage.log.log import Log
from storage.manager.log_startup import LogStartup
from storage.manager.log_table import LogTable


class LogRoom:
    """Brings log directories back that were full.

    Owns who does it: one thread at a time. Called at intervals, and when a directory has become
    full.
    """

    def __init__(self, table: LogTable, startup: LogStartup) -> None:
        self._table = table
        self._startup = startup
        self._lock = threading.Lock()

    def check(self) -> None:
        """Free the reserve of full directories, or take it again; reopen logs. Blocks for the disk.

        Nothing happens while another thread does it.
        """
        if not self._lock.acquire(blocking=False):
            return
        try:
            self._recover_full()
        finally:
            self._lock.release()

    def _recover_full(self) -> None:
        for directory in self._table.online():
            if directory.is_full:
                if directory.reserve.is_held:
                    directory.reserve.give_up()
                elif directory.reserve.try_take():
                    self._room_again(directory)
            self._startup.load_postponed(directory)
        for log in self._table.logs():
            if log.refusal is not None and log.failure is None:
                directory_of = self._table.directory_of(log)
                if directory_of is not None and not directory_of.is_full:
                    self._reopen(log)

    @property
    def has_room(self) -> bool:
        """A directory takes records."""
        return any(not directory.is_full for directory in self._table.online())

    def _room_again(self, directory: LogDirectory) -> None:
        with self._table.lock:
            directory.full_error = None
        self._table.alerts.clear(AlertKind.DIRECTORY_FULL, directory.path)

    def _reopen(self, log: Log) -> None:
        if not self._table.on_owner(log.accept_appends) and log.failure is not None:
            self._table.fail_log(log, log.failure)

    def out_of_room_at(self, path: str, error: DiskError) -> None:
        """Something else on a directory's disk found no room: the metadata store, a cache."""
        for directory in self._table.online():
            if directory.path == path:
                self._table.out_of_room(directory, error)
