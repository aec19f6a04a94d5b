"""Failures of log directories and of the metadata store, as the broker meets them.

    what fails                              what follows
    a log directory, not the only one       its partitions are resigned; coordinators that had their
                                            state there are unavailable; in a cluster others lead
                                            (`broker.lifecycle.cluster_directories`)
    the last log directory                  the broker fails
    the one with the metadata store         the broker fails; in a cluster the store is elsewhere
    a write behind a Produce                the log's directory fails, as after a failed flush
    room in a directory                     its reserve is released at once
    room for the metadata store             likewise

A directory that has failed gets a note at once, by a thread: a process that is killed before it is
written leaves pages that pass for written after the next start.

Source: Kafka, ReplicaManager.handleLogDirFailure.
"""

import errno
import logging
from collections.abc import Callable
from functools import partial
from posixpath import dirname
from typing import TYPE_CHECKING

from protocol.error_codes import ErrorCode
from storage.errors import DiskError
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.controller.store.sqlite_store import SqliteStore
    from broker.lifecycle.coordinators import Coordinators
    from broker.replicas.role_reconciler import RoleReconciler
    from broker.runtime.directory_writer import DirectoryWriters
    from broker.runtime.disk import Disk
    from storage.manager.log_manager import LogManager

LOGGER = logging.getLogger(__name__)


class DiskFailures:
    """See the module.

    Attributes:
        on_offline: Called with its path and its partitions when a log directory has failed, before
            anything else.
    """

    def __init__(
        self,
        log_manager: "LogManager",
        roles: "RoleReconciler",
        coordinators: "Coordinators",
        *,
        disk: "Disk",
        store_path: str,
        is_leader: Callable[[TopicPartition], bool],
        call_soon_threadsafe: Callable[..., object],
        fail: Callable[[str], None],
    ) -> None:
        """Watch nothing yet.

        Args:
            log_manager: Whose directories fail.
            roles: Close partitions.
            coordinators: Become unavailable.
            disk: For what may wait for a directory that has failed.
            store_path: The metadata store's file; empty in a cluster.
            is_leader: Whether this broker is to lead a partition, by the newest image.
            call_soon_threadsafe: The event loop's.
            fail: Ends the broker, with a reason for the operator.
        """
        self._log_manager = log_manager
        self._roles = roles
        self._coordinators = coordinators
        self._disk = disk
        self._store_path = store_path
        self._is_leader = is_leader
        self._call_soon_threadsafe = call_soon_threadsafe
        self._fail = fail
        self.on_offline: Callable[[str, list[TopicPartition]], None] = _nothing

    def watch(self, store: "SqliteStore | None") -> None:
        """Have directories and the metadata store, where it is in one of them, report here."""
        self._log_manager.on_directory_failure = self._directory_failed
        if store is not None:
            store.on_full = self._store_full

    def watch_writers(self, writers: "DirectoryWriters") -> None:
        """Have writes behind a Produce report here."""
        for path, writer in writers.all().items():
            writer.on_failed = partial(self._write_failed, path)

    def watch_room(self, make_room: Callable[[], None]) -> None:
        """Call `make_room` on the loop when a directory is full."""

        def full() -> None:
            self._call_soon_threadsafe(make_room)

        self._log_manager.on_directory_full = full

    def _write_failed(self, path: str, error: DiskError) -> None:
        """As after a failed flush: it is not known what the disk has of what was written."""
        for directory in self._log_manager.directories:
            if directory.path == path:
                for log in self._log_manager.logs_in(directory)[:1]:
                    self._log_manager.fail_log(log, error)

    def _directory_failed(self, path: str, partitions: list[TopicPartition]) -> None:
        """Called in any thread."""
        self._call_soon_threadsafe(self._directory_offline, path, partitions)

    def _store_full(self, reason: str) -> None:
        """The metadata store found no room: its log directory's reserve is for it, too."""
        path = self._store_path
        self._log_manager.room.out_of_room_at(dirname(path), DiskError(reason, path, errno.ENOSPC))

    def _directory_offline(self, path: str, partitions: list[TopicPartition]) -> None:
        self._disk.submit(self._log_manager.note_failures, _noted)
        self.on_offline(path, partitions)
        LOGGER.error("log directory offline directory=%s partitions=%d", path, len(partitions))
        self._roles.close(partitions, ErrorCode.KAFKA_STORAGE_ERROR)
        for topic_partition in partitions:
            if self._is_leader(topic_partition):
                self._coordinators.set_unavailable(
                    topic_partition, f"its log is in {path}, which is offline"
                )
        manager = self._log_manager
        if len(manager.offline_directories) == len(manager.directories):
            self._fail("every log directory is offline")
        elif path == dirname(self._store_path):
            self._fail(f"{path} is offline and holds the metadata store")


def _noted(_result: object, _error: BaseException | None) -> None:
    """A disk that takes no note takes none."""


def _nothing(_path: str, _partitions: list[TopicPartition]) -> None:
    """No other part is to be notified."""
