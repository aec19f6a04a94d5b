"""Registration of this node's log directories: which are known, present, or missing.

The metadata store has the ids of all log directories that were ever claimed, and of each partition
the directory it lies in (KIP-858). At a start they are compared with what is in `log.dirs`:

    here, known or with an owner      ours: claimed, its path written down
    known, not here, with partitions  missing: nothing is created for them, an alert says so, until
                                      it is back or `varve dirs drop` gives it up
    known, not here, without          forgotten: nothing is missed
    here, without an owner's file     a missing one's, if its partitions say so;
                                      else new, and claimed, but not while one is missing: it may be
                                      the empty folder that shows when a disk is not mounted

A store of a release before directories were known has none. Then partitions that are in no
directory, while one is empty or cannot be read, belong to a missing one without an id, `LOST`:
those that are found later are taken out of it.

In a cluster the records of other brokers' replicas say more: a log may begin empty in another
directory, as a follower, where its leader and the in-sync replicas are elsewhere, when all of the
broker's directories are new (a machine was replaced). What may be the last copy stays offline, and
so does all that lay in one directory that is missing beside others. That of a directory which was
given up begins empty, too.

Two directories with one id are a copied disk; the start is refused.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Final
from uuid import UUID

from broker.controller.controller import Controller
from broker.controller.images.partition_image import NO_LEADER, PartitionImage
from broker.controller.images.replica_directories import replicas_offline
from broker.controller.store.metadata_store import StoreError
from storage.checkpoints.log_directory import LOST, LogDirectory
from storage.environment.alerts import AlertKind, Alerts
from storage.errors import DiskError, InconsistentDirectoryError
from storage.manager.log_manager import LogManager
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import format_uuid

LOGGER = logging.getLogger(__name__)

RunOnDisk = Callable[..., Awaitable[Any]]
Record = Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]

_EMPTY_IN_ITS_PLACE: Final = "an empty folder is in its place, is its disk mounted?"


async def _once(write: Callable[[], Awaitable[None]]) -> None:
    await write()


class NodeDirectories:
    """See the module; `claim` once, before logs load, then `settle`.

    Attributes:
        missing: Id and last path of the log directories that are missing.
    """

    def __init__(
        self,
        controller: Controller,
        log_manager: LogManager,
        alerts: Alerts,
        run_on_disk: RunOnDisk,
        *,
        is_alone: bool = True,
    ) -> None:
        """`is_alone`: else other brokers may have what is missing here, see the module."""
        self._is_alone = is_alone
        self._is_replaced = False
        self._controller = controller
        self._node_id = controller.settings.node_id
        self._log_manager = log_manager
        self._alerts = alerts
        self._run = run_on_disk
        self.missing: dict[UUID, str] = {}

    async def claim(self, store_id: UUID | None, *, record: Record = _once) -> None:
        """Claim directories that are ours or new, report missing ones, record all paths.

        Args:
            store_id: Of the store that they are to name.
            record: Does what writes to the store, again if need be: all else is done once.

        Raises:
            InconsistentDirectoryError: A directory is another's, or is here twice.
            LogDirectoryOfflineError: None works.
            StoreError: The store refused.
        """
        image = self._controller.image
        # Before anything is missed: with another broker's directories nothing has been lost.
        self._log_manager.startup.check_owners(image.cluster_id, self._node_id, store_id)
        known = {
            directory_id: directory.path
            for directory_id, directory in image.directories.items()
            if directory.node_id == self._node_id
        }
        counts = self._partition_counts()
        here = self._here()
        # Those that are in no directory yet may be in any.
        unassigned = 0 if self._is_alone else self._unassigned()
        self.missing = {
            directory_id: path
            for directory_id, path in known.items()
            if directory_id not in here and (counts[directory_id] or unassigned)
        }
        fresh = [d for d in self._log_manager.directories if d.is_online and d.meta is None]
        is_new = len(fresh) == len(self._log_manager.directories)
        self._is_replaced = not self._is_alone and is_new
        if self._is_replaced and self.missing and not self._last_copies():
            LOGGER.warning(
                "all log directories are empty: the partitions of %s begin empty and are fetched "
                "from their leaders. If a disk is not mounted, stop the broker and mount it "
                "partitions=%d",
                ", ".join(self.missing.values()),
                sum(counts[one] for one in self.missing),
            )
            self.missing.clear()
        again: dict[LogDirectory, UUID] = {}
        if self.missing and fresh:
            again = await self._run(self._recognise, fresh)
        strays = await self._find_lost(fresh) if self._is_alone and not known else {}
        if strays:
            self.missing[LOST] = ""
            counts[LOST] = sum(map(len, strays.values()))
        for directory in fresh:
            if directory in again:
                LOGGER.warning(
                    "meta.properties rewritten: its partitions identify the log directory "
                    "directory=%s id=%s",
                    directory.path,
                    format_uuid(again[directory]),
                )
                self.missing.pop(again[directory], None)
        if self.missing and not self._is_replaced:
            self._leave_unused([directory for directory in fresh if directory not in again])
        self._report_missing(counts)
        await self._run(
            self._log_manager.startup.claim, image.cluster_id, self._node_id, store_id, again
        )
        await record(lambda: self._write_down(known, strays))
        self._show_missing()

    def have_lost_all(self) -> bool:
        """Whether this broker has replicas by the store, and nothing but new directories.

        To be asked before `claim`.
        """
        if self._is_alone or any(d.meta is not None for d in self._log_manager.directories):
            return False
        return any(True for _ in self._own_partitions())

    async def settle(self) -> None:
        """Once logs are listed: what was `LOST` and has been found is missed no longer."""
        if LOST in self.missing and not self._partition_counts()[LOST]:
            del self.missing[LOST]
            self._alerts.clear(AlertKind.DIRECTORY_MISSING, format_uuid(LOST))
            try:
                await self._controller.record_directories({LOST: None})
            except StoreError as error:
                # The next start sees that it has no partitions.
                LOGGER.warning(
                    "log directory could not be removed from the metadata store error=%s", error
                )

    def offline_ids(self) -> set[UUID]:
        """The log directories that are missing, or have failed: what lies there is not served."""
        failed = (directory.id for directory in self._log_manager.offline_directories)
        return {*self.missing, *(one for one in failed if one is not None)}

    def begins_anew(self, partition: PartitionImage) -> bool:
        """Whether a replica of this broker begins empty, wherever its log was.

        Its directory was given up; or all directories are new, and who leads has what it had.
        In any thread.
        """
        if self._is_alone:
            return False
        place = partition.directory_on(self._node_id)
        if place is not None and self._log_manager.directory_by_id(place) is not None:
            return False
        if place == LOST:
            is_whole = not self.missing and not self._log_manager.offline_directories
        else:
            is_whole = place is not None and place not in self._controller.image.directories
        return is_whole or (self._is_replaced and self._is_elsewhere(partition))

    def _is_elsewhere(self, partition: PartitionImage) -> bool:
        """Whether another broker leads it, and lives: every committed record is in the ISR.

        A leader that does not live may come back empty, too: what the store names then is who led
        when all were stopped.
        """
        if partition.leader in (NO_LEADER, self._node_id):
            return False
        image = self._controller.image
        leader = image.brokers.get(partition.leader)
        return (
            leader is not None
            and leader.is_live
            and not leader.is_fenced
            and partition.leader not in replicas_offline(image, partition)
        )

    def _own_partitions(self) -> Iterator[PartitionImage]:
        for topic in self._controller.image.topics.values():
            for partition in topic.partitions:
                if self._node_id in partition.replicas:
                    yield partition

    def _unassigned(self) -> int:
        return sum(one.directory_on(self._node_id) is None for one in self._own_partitions())

    def _last_copies(self) -> int:
        """Replicas that may be the last to have what they had."""
        return sum(not self._is_elsewhere(one) for one in self._own_partitions())

    # -- present directories ---------------------------------------------------------------------

    def _here(self) -> dict[UUID, LogDirectory]:
        here: dict[UUID, LogDirectory] = {}
        for directory in self._log_manager.directories:
            if not directory.is_online or directory.id is None:
                continue
            other = here.setdefault(directory.id, directory)
            if other is not directory:
                raise InconsistentDirectoryError(
                    f"{other.path} and {directory.path} are the same log directory, "
                    f"{format_uuid(directory.id)}: one is a copy, take it out of log.dirs"
                )
        return here

    def _partition_counts(self) -> Counter[UUID]:
        return Counter(
            directory_id
            for topic in self._controller.image.topics.values()
            for partition in topic.partitions
            if (directory_id := partition.directory_on(self._node_id)) is not None
        )

    def _recognise(self, fresh: Iterable[LogDirectory]) -> dict[LogDirectory, UUID]:
        """Directories without an owner's file that are missing ones: they have their partitions."""
        image = self._controller.image
        found: dict[LogDirectory, UUID] = {}
        for directory in fresh:
            ids = set()
            for topic_partition, topic_id in _partitions_in(directory):
                topic = image.topics.get(topic_partition.topic)
                partition = image.partition(*topic_partition)
                if topic is not None and partition is not None and topic_id == topic.topic_id:
                    ids.add(partition.directory_on(self._node_id))
            known = [one for one in ids if one in self.missing and one != LOST]
            if len(known) == 1 and known[0] not in found.values():
                found[directory] = known[0]
        return found

    async def _find_lost(self, fresh: list[LogDirectory]) -> dict[UUID, dict[int, UUID]]:
        """Partitions in no directory, to be assigned to `LOST`; at the first such start."""
        offline = self._log_manager.offline_directories
        topics = self._controller.image.topics
        if not topics or not (fresh or offline):
            return {}
        found: set[TopicPartition] = await self._run(self._all_found)
        lost: dict[UUID, dict[int, UUID]] = {}
        for topic in topics.values():
            for partition in topic.partitions:
                if TopicPartition(topic.name, partition.index) not in found:
                    lost.setdefault(topic.topic_id, {})[partition.index] = LOST
        return lost

    def _all_found(self) -> set[TopicPartition]:
        return {
            topic_partition
            for directory in self._log_manager.directories
            if directory.is_online
            for topic_partition, _ in _partitions_in(directory, with_topic_ids=False)
        }

    # -- alerts ----------------------------------------------------------------------------------

    def _leave_unused(self, fresh: Iterable[LogDirectory]) -> None:
        places = set(self.missing.values())
        names = ", ".join(map(format_uuid, self.missing))
        for directory in fresh:
            directory.go_offline(f"empty, and not used while log directory {names} is missing")
            if directory.path not in places:
                self._alerts.set(
                    AlertKind.DIRECTORY_UNUSED,
                    directory.path,
                    f"it is empty, and not used while log directory {names} is missing: it may "
                    "be the empty mount point of that one. It is used once that is back or dropped",
                )

    def _report_missing(self, counts: Counter[UUID]) -> None:
        by_path = {directory.path: directory for directory in self._log_manager.directories}
        for directory_id, path in self.missing.items():
            there = by_path.get(path)
            if directory_id == LOST:
                why = "its partitions are in none of log.dirs"
            elif there is None:
                why = "log.dirs does not have it"
            elif there.is_online:
                why = "another log directory is in its place"
            elif there.meta is None and there.opened:
                why = _EMPTY_IN_ITS_PLACE
            else:
                why = there.offline_reason or "it is offline"
            text = format_uuid(directory_id)
            self._alerts.set(
                AlertKind.DIRECTORY_MISSING,
                text,
                f"a log directory{f', last at {path},' if path else ''} is missing ({why}): "
                f"{self._fate_of(counts[directory_id])}, and are not recreated. Mount it "
                "and start again. If it is lost for good, stop the broker and run "
                f"`varve dirs drop {text}`: then they start empty",
            )

    def _fate_of(self, count: int) -> str:
        """What becomes of the partitions in a missing directory, as the text goes on."""
        if not self._is_replaced:
            return f"its {count} partitions are offline"
        return (
            f"of its {count} partitions those that another broker leads begin empty here, and "
            "follow, as soon as that one runs; the others are offline"
        )

    def _show_missing(self) -> None:
        """List those that `log.dirs` does not name as offline directories, too."""
        paths = {directory.path for directory in self._log_manager.directories}
        for path in self.missing.values():
            if path and path not in paths:
                self._log_manager.startup.add_missing(path)

    # -- records ---------------------------------------------------------------------------------

    async def _write_down(self, known: dict[UUID, str], lost: dict[UUID, dict[int, UUID]]) -> None:
        here = {d.id: d.path for d in self._log_manager.directories if d.is_online}
        changes: dict[UUID, str | None] = {
            directory_id: path
            for directory_id, path in here.items()
            if directory_id is not None and known.get(directory_id) != path
        }
        if lost:
            changes[LOST] = ""
        for directory_id, path in known.items():
            if directory_id not in here and directory_id not in self.missing:
                LOGGER.info(
                    "log directory forgotten id=%s path=%s",
                    format_uuid(directory_id),
                    path,
                )
                changes[directory_id] = None
        if changes:
            await self._controller.record_directories(changes)
        if lost:
            await self._controller.assign_directories(lost)


def _partitions_in(
    directory: LogDirectory, *, with_topic_ids: bool = True
) -> list[tuple[TopicPartition, UUID | None]]:
    """Partitions in a directory, with their topics' ids; none if it cannot be read."""
    try:
        return directory.partitions(with_topic_ids=with_topic_ids)
    except DiskError as error:
        LOGGER.warning(
            "meta.properties cannot be read directory=%s error=%s", directory.path, error
        )
        return []
