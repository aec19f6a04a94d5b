"""Log directories that several brokers share: locked, examined, and made ready for them.

    <log.dir>/
        .lock                 held while the supervisor runs: a single broker's start is refused
        varve-brokers.json    which brokers there are (`storage.checkpoints.brokers_note`)
        broker-1/             log directory of broker 1
        broker-2/
        varve-store/          in the first one: the metadata store, if it is no etcd
        varve-objects/        in the first one: remote storage, if it is a directory there

A directory that says that it had something which is not there is refused: not mounted, moved, or
lost, and only an operator knows which. Nothing is begun anew in its place.

One whose disk fails, while others work and say which brokers there are, is left as it is: each
broker takes its own folder there offline, and serves what it has in the others.
"""

import logging
from collections.abc import Sequence
from posixpath import dirname, join

from broker.controller.store.unix.store_host import IDENTITY_FILE, STORE_FILE
from broker.node.moved_note import MOVED_FILE
from broker.node.store_file import METADATA_FILE
from broker.runtime.startup_errors import StartupError
from storage.checkpoints.brokers_note import (
    BROKERS_FILE,
    broker_folder,
    encode_brokers_note,
    read_brokers_note,
    write_brokers_note,
)
from storage.checkpoints.log_directory import LOCK_FILE
from storage.checkpoints.meta_properties import META_PROPERTIES
from storage.environment.filesystem import Filesystem, Lock
from storage.errors import DiskError, StorageError
from storage.types.partition_directory import parse_directory

LOGGER = logging.getLogger(__name__)


class SharedDirectories:
    """See the module. Blocks; for a thread. `lock`, then `check`, `prepare`, and `unlock`."""

    def __init__(self, filesystem: Filesystem, paths: Sequence[str], store: str) -> None:
        """Touch nothing yet.

        Args:
            filesystem: With the directories.
            paths: Absolute ones, of `log.dirs`.
            store: Absolute path of the metadata store's folder; empty: it is elsewhere.
        """
        self._filesystem = filesystem
        self._paths = tuple(paths)
        self._store = store
        self._locks: list[Lock] = []
        # Of `paths`, those whose disk fails, and how.
        self._failed: dict[str, DiskError] = {}

    def lock(self) -> None:
        """Make the directories where they are not there, and keep other processes out.

        Raises:
            StartupError: The metadata store's disk fails, a disk has no room, or another process
                has a directory.
        """
        try:
            for path in self._paths:
                try:
                    self._make(path)
                    lock = self._filesystem.lock(join(path, LOCK_FILE), with_folder=True)
                    self._locks.append(lock)
                except DiskError as error:
                    self._take_offline(path, error)
            if self._store:
                # Its own folder is made, with a narrower mode, by who serves it.
                self._make(dirname(self._store))
        except StorageError as error:
            self.unlock()
            raise StartupError(str(error)) from error

    def unlock(self) -> None:
        """Let others have them."""
        for lock in self._locks:
            lock.release()
        self._locks.clear()
        self._failed.clear()

    def check(self, node_ids: Sequence[int]) -> None:
        """Refuse what these brokers must not be started on; nothing is written.

        Raises:
            StartupError: With a sentence for the operator.
        """
        try:
            noted: set[int] = set()
            for path in self._working():
                try:
                    noted.update(self._check_directory(path))
                except DiskError as error:
                    self._take_offline(path, error)
            self._check_failed(is_first_start=not noted)
            self._check_count(sorted(noted), node_ids)
            self.check_place_of_store()
            if noted and self._store:
                self._check_store()
        except StorageError as error:
            raise StartupError(str(error)) from error

    def check_place_of_store(self) -> None:
        """Refuse to begin a metadata store where another of the directories has one.

        Raises:
            StartupError: As when `log.dirs` are given in another order.
        """
        if not self._store or any(map(self._filesystem.exists, _store_files(self._store))):
            return
        name = self._store.rpartition("/")[2]
        for path in self._working():
            found = join(path, name)
            if any(map(self._filesystem.exists, _store_files(found))):
                raise StartupError(
                    f"the metadata store is in {found}, and these settings place it in "
                    f"{self._store}: name {path} first in log.dirs, as before"
                )

    def prepare(self, node_ids: Sequence[int]) -> None:
        """Make the brokers' folders, then the notes, which name them.

        Raises:
            StartupError: A disk refuses.
        """
        try:
            for path in self._working():
                for node_id in node_ids:
                    self._make(join(path, broker_folder(node_id)))
                if read_brokers_note(self._filesystem, path) != tuple(sorted(node_ids)):
                    write_brokers_note(self._filesystem, path, node_ids)
        except StorageError as error:
            raise StartupError(str(error)) from error

    def _working(self) -> Sequence[str]:
        return [path for path in self._paths if path not in self._failed]

    def _take_offline(self, path: str, error: DiskError) -> None:
        """Go on without the directory.

        Raises:
            DiskError: That is no failure of its disk, or the metadata store lies there.
        """
        if not error.is_disk_failure or path == dirname(self._store):
            raise error
        self._failed[path] = error.to_keep()

    def _check_failed(self, *, is_first_start: bool) -> None:
        """Log the disks that fail; a first start has nothing to serve, and is refused.

        Raises:
            DiskError: Of the first of them.
        """
        for path, error in self._failed.items():
            if is_first_start:
                raise error
            LOGGER.error(
                "log directory fails, brokers are started without what they have there "
                "path=%s error=%s",
                path,
                error,
            )

    def _make(self, path: str) -> None:
        if not self._filesystem.exists(path):
            self._filesystem.mkdir(path)
            # Else a power cut takes the name of what a note names.
            self._filesystem.sync_directory(dirname(path) or "/")

    def _check_directory(self, path: str) -> Sequence[int]:
        """Node ids that it names; none: it is new."""
        note = read_brokers_note(self._filesystem, path)
        if note is None:
            self._check_unused(path)
            return ()
        self._check_complete(path, note)
        return note

    def _check_unused(self, path: str) -> None:
        """A directory without a note has neither a single broker's data nor several's."""
        for entry in self._filesystem.list_directory(path):
            node_id = _broker_of(entry.name) if entry.is_directory else None
            if node_id is not None:
                # The name could be a partition's, too; an empty one is of an earlier start.
                inside = {
                    one.name for one in self._filesystem.list_directory(join(path, entry.name))
                }
                if not inside:
                    continue
                if not inside.isdisjoint((META_PROPERTIES, LOCK_FILE)):
                    raise StartupError(
                        f"log directory {path} has the data of broker {node_id} in {entry.name}, "
                        f"and no {BROKERS_FILE}, which says what other brokers there are: give it "
                        "back, or write it with all node ids, such as "
                        f"{encode_brokers_note([1, 2]).decode().strip()}"
                    )
            is_partition = entry.is_directory and parse_directory(entry.name) is not None
            if is_partition or entry.name in (META_PROPERTIES, METADATA_FILE, MOVED_FILE):
                raise StartupError(
                    f"log directory {path} is that of a single broker (it has {entry.name}), and "
                    "stays as it is: start it without --brokers, or give other log.dirs; "
                    "docs/cluster.md says how to make it one of several with `varve metadata copy`"
                )

    def _check_complete(self, path: str, note: Sequence[int]) -> None:
        for node_id in note:
            folder = join(path, broker_folder(node_id))
            if not self._filesystem.exists(folder):
                raise StartupError(
                    f"{folder} is not there, and {BROKERS_FILE} says that broker {node_id} has "
                    "its data in it: mount it or give it back. If it is lost for good, make it as "
                    "an empty directory: this broker then fetches what others have"
                )

    def _check_count(self, noted: Sequence[int], node_ids: Sequence[int]) -> None:
        missing = [node_id for node_id in noted if node_id not in node_ids]
        if missing:
            first, last = noted[0], noted[-1]
            raise StartupError(
                f"log directory {self._paths[0]} has brokers {_listed(noted)}, and this start "
                f"leaves out {_listed(missing)}, on which partitions may lie: start with node.id="
                f"{first} and --brokers {last - first + 1}. To have fewer, move what a broker has "
                "to the others with `varve cluster remove-broker ID --drain`, stop, and take its "
                f"id out of each {BROKERS_FILE}"
            )

    def _check_store(self) -> None:
        files = _store_files(self._store)
        if not any(map(self._filesystem.exists, files)):
            raise StartupError(
                f"the metadata store {files[0]} is not there, and {BROKERS_FILE} says that brokers "
                "have run here: give it back from a copy, or name the etcd that they had as "
                "metadata.store. If it is lost for good, `varve serve --brokers 0` serves an empty "
                "one, which `varve cluster recover-metadata` fills"
            )


def _store_files(store: str) -> list[str]:
    return [join(store, name) for name in (STORE_FILE, IDENTITY_FILE)]


def _broker_of(name: str) -> int | None:
    """The node id in the name of a broker's folder; None: it is none's."""
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isdecimal() and name == broker_folder(int(digits)) else None


def _listed(node_ids: Sequence[int]) -> str:
    return ", ".join(map(str, node_ids))
