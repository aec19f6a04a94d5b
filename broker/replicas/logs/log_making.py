"""Making the logs that are assigned here and not there.

    image has more ──┐
    end of a load ───┴──> those not open, in batches, in threads ──> opened: a role
                                    └──no room──> again when there is (`make_unmade`)

A partition waits until the log of a deleted topic of its name has left, others do not wait for it.
A log of several replicas begins no leader epoch: the first record says which it is.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from storage.errors import DiskError, StorageError
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import NIL

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import ClusterImage, TopicImage
    from broker.replicas.logs.assignment import Assignment
    from broker.replicas.logs.log_removal import LogRemoval
    from broker.replicas.logs.new_epochs import NewEpochs
    from broker.replicas.replica_manager import ReplicaManager
    from broker.runtime.disk import Disk
    from config.topic import TopicConfig
    from storage.log.log import Log
    from storage.manager.log_manager import LogManager

LOGGER = logging.getLogger(__name__)

Missing = tuple[TopicPartition, "TopicImage"]

CREATED_PER_CALL = 256
"""Logs created by one call into a thread; between calls the loop begins to serve them."""


class LogMaking:
    """See the module. On the loop's thread; what touches the disk is handed to threads.

    Attributes:
        tasks: What has been begun and is not done.
        lost_logs: Logs that were not found by the load although this broker is in the ISR or ELR of
            their partitions: it would be elected with an empty log. Not those that wait for room.
    """

    def __init__(
        self,
        assignment: "Assignment",
        log_manager: "LogManager",
        replicas: "ReplicaManager",
        disk: "Disk",
        removal: "LogRemoval",
        epochs: "NewEpochs",
        folders: asyncio.Lock,
        serve: "Callable[[Log], None]",
    ) -> None:
        """Make nothing yet.

        Args:
            assignment: What is to be here.
            log_manager: Makes logs.
            replicas: Has the partitions that are open.
            disk: Threads.
            removal: Logs of deleted topics, whose names are waited for.
            epochs: Begin where a log was lost.
            folders: Held while folders of partitions are made, and while they are listed.
            serve: Has a log that is open.
        """
        self._assignment = assignment
        self._log_manager = log_manager
        self._replicas = replicas
        self._disk = disk
        self._removal = removal
        self._epochs = epochs
        self._serve = serve
        self._folders = folders
        self.tasks: set[asyncio.Task[None]] = set()
        # Partitions whose logs could not be made for want of room, and their topics.
        self.lost_logs = 0
        self._unmade: dict[TopicPartition, UUID] = {}
        # Partitions whose log may be in a directory that is offline or missing.
        self._held: set[TopicPartition] = set()

    def not_open(self, topic: "TopicImage") -> list[Missing]:
        """Partitions of a topic that are assigned here, and not open."""
        return [
            (TopicPartition(topic.name, partition.index), topic)
            for partition in topic.partitions
            if self._assignment.is_here(partition)
            and self._replicas.replica_of(topic.name, partition.index) is None
            and not self._log_manager.is_given_up(TopicPartition(topic.name, partition.index))
        ]

    def is_free(self, topic_partition: TopicPartition) -> bool:
        """Whether a partition that was held back after the load may be made now, and once."""
        if topic_partition not in self._held or not self._assignment.may_begin(topic_partition):
            return False
        self._held.discard(topic_partition)
        return True

    def begin(self, missing: Sequence[Missing]) -> None:
        """Make logs in tasks: those of a name that is still leaving do not hold up the others."""
        free = [pair for pair in missing if self._removal.of(pair[0].topic) is None]
        if free:
            self._start(free)
        held: dict[str, list[Missing]] = {}
        for pair in missing:
            if self._removal.of(pair[0].topic) is not None:
                held.setdefault(pair[0].topic, []).append(pair)
        for pairs in held.values():
            self._start(pairs)

    def _start(self, missing: Sequence[Missing]) -> None:
        task = asyncio.get_running_loop().create_task(self._make_safely(missing), name="new logs")
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _make_safely(self, missing: Sequence[Missing]) -> None:
        try:
            await self.make(missing)
        except Exception:  # the metadata is committed: the next start makes them
            LOGGER.exception("logs not created first=%s", missing[0][0])

    async def make(self, missing: Sequence[Missing]) -> None:
        """Make logs, and serve them one batch after the other."""
        for topic in dict.fromkeys(pair[0].topic for pair in missing):
            removal = self._removal.of(topic)
            if removal is not None:
                await asyncio.wait([removal])
        for start in range(0, len(missing), CREATED_PER_CALL):
            # The end of a load and a change of the image may miss the same partition.
            async with self._folders:
                await self._make_batch(missing[start : start + CREATED_PER_CALL])

    async def _make_batch(self, missing: Sequence[Missing]) -> None:
        image = self._assignment.image
        configs: dict[str, TopicConfig] = {}
        by_epoch: dict[int | None, list[tuple[TopicPartition, UUID, TopicConfig]]] = {}
        for one, topic in missing:
            # It may have been deleted, or assigned elsewhere, while this waited for its turn.
            now = self._assignment.topic_of(one, topic.topic_id, image)
            if now is None or self._replicas.replica_of(*one) is not None:
                continue
            if topic.name not in configs:
                configs[topic.name] = self._assignment.config_for(topic.name)
            replicated = len(now.partitions[one.partition].replicas) > 1
            first_epoch = None if replicated else now.partitions[one.partition].leader_epoch
            by_epoch.setdefault(first_epoch, []).append((one, topic.topic_id, configs[topic.name]))
        for leader_epoch, wanted in by_epoch.items():
            for log in await self._create_all(wanted, leader_epoch):
                self._serve(log)

    async def _create_all(
        self, wanted: "list[tuple[TopicPartition, UUID, TopicConfig]]", leader_epoch: int | None
    ) -> list["Log"]:
        create_all = partial(self._log_manager.creation.create_all, leader_epoch=leader_epoch)
        try:
            return await self._disk.run(create_all, wanted)
        except StorageError as error:
            LOGGER.error(
                "creating logs failed, trying one by one first=%s error=%s", wanted[0][0], error
            )
        # One bad directory must not keep the partitions of the others from being created.
        logs = []
        for one in wanted:
            try:
                logs.extend(await self._disk.run(create_all, [one]))
            except StorageError as error:
                if isinstance(error, DiskError) and not error.is_disk_failure:
                    self._unmade[one[0]] = one[1]
                LOGGER.error("log not created partition=%s error=%s", one[0], error)
        return logs

    async def make_unmade(self) -> None:
        """Make the logs for which there was no room, unless their topics were deleted."""
        if not self._unmade or not self._log_manager.room.has_room:
            return
        unmade, self._unmade = self._unmade, {}
        topics = self._assignment.image.topics
        await self.make(
            [
                (topic_partition, topic)
                for topic_partition, topic_id in unmade.items()
                if (topic := topics.get(topic_partition.topic)) is not None
                and topic.topic_id == topic_id
            ]
        )

    # -- after a load ----------------------------------------------------------------------------

    def to_be_made(self, before: "ClusterImage") -> list[Missing]:
        """Partitions without a log that are to get one, once all that was found is open.

        Not those whose directory is missing or offline, nor, with any directory so, those of an
        unknown directory: an empty log in their place would hide that their records are lost. Nor
        those that were found, and are opened when their directory has room.
        """
        manager, directory_of = self._log_manager, self._assignment.directory_of
        missing = [
            pair
            for topic in self._assignment.image.topics.values()
            for pair in self.not_open(topic)
            if not manager.is_loading(pair[0])
        ]
        self.lost_logs = sum(
            self._assignment.is_counted_on(pair[0])
            for pair in missing
            if pair[1].topic_id in before.topics_by_id
        )
        is_whole = not manager.offline_directories
        kept = []
        for pair in missing:
            directory_id = directory_of(pair[0])
            if (
                is_whole
                or pair[1].topic_id not in before.topics_by_id
                or self._assignment.may_begin(pair[0])
                if directory_id is None
                else manager.directory_by_id(directory_id) is not None
            ):
                kept.append(pair)
                continue
            self._held.add(pair[0])
            if directory_id is None:
                self._assignment.report_lost(pair[0])
        if len(kept) < len(missing):
            LOGGER.error(
                "partitions are offline because their log directory is offline or missing "
                "partitions=%d",
                len(missing) - len(kept),
            )
        return kept

    async def make_in_new_epochs(
        self, missing: list[Missing], before: "ClusterImage", *, was_unclean: bool
    ) -> None:
        """Make what was not found by a load, on a single node in another leader epoch.

        Args:
            missing: As of `to_be_made`.
            before: The image with which the load began.
            was_unclean: Logs were found that had not been closed.
        """
        await self.make(await self._in_new_epochs(missing, before, was_unclean=was_unclean))

    async def _in_new_epochs(
        self, missing: list[Missing], before: "ClusterImage", *, was_unclean: bool
    ) -> list[Missing]:
        """Begin other leader epochs; those of `missing` that may be made now.

        Remote segments and consumers' offsets of the old log must not be mistaken for those of the
        new one: also after a clean stop, when somebody has removed the folder. One that has no
        place either was given up, in a new epoch. If there may be remote segments, no log is
        created without one.
        """
        if not self._epochs.is_alone:
            return missing
        lost = [
            (topic_partition, topic)
            for topic_partition, topic in missing
            if topic.topic_id in before.topics_by_id
            and (was_unclean or self._has_remote(topic.name) or _had_place(before, topic_partition))
        ]
        if not lost:
            return missing
        LOGGER.warning(
            "partitions without a log here start empty in a new leader epoch partitions=%d",
            len(lost),
        )
        begun = await self._epochs.begin(topic_partition for topic_partition, _ in lost)
        refused = {
            topic_partition
            for topic_partition, _ in lost
            if topic_partition not in begun and self._has_remote(topic_partition.topic)
        }
        return [pair for pair in missing if pair[0] not in refused]

    def _has_remote(self, topic: str) -> bool:
        config = self._assignment.config_for(topic)
        return config.remote_storage_enable or config.remote_log_delete_on_disable


def _had_place(image: "ClusterImage", topic_partition: TopicPartition) -> bool:
    """Whether it is written down in which log directory the partition is, on a single node."""
    partition = image.partition(*topic_partition)
    return partition is not None and any(one != NIL for one in partition.directories)
