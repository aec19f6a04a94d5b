"""The life cycle of logs by the cluster's image: opened, created, reconfigured and deleted.

    start    logs found on disk, after an unclean stop in a new leader epoch (KIP-320: consumers
             then detect lost records) ──recover in threads──> served, one by one
             topics without a directory ──> created (a crash came between commit and directory),
                 unless a log directory is offline: then they may lie there; with remote storage in
                 another leader epoch, so that remote segments of a replaced disk are not mistaken
                 for the new records
             directories without a topic ──> set aside
             topics deleted meanwhile ──> their logs deleted once they are open
    change   image before and after ──> created, extended, reconfigured, deleted

Subscribed to the controller: a CreateTopics is answered after its logs exist.
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from broker.controller.topics.tiered_topics import may_be_tiered, own_overrides
from config.topic import TopicConfig, is_tiered
from storage.checkpoints.log_loading import LoadingStoppedError
from storage.environment.alerts import AlertKind
from storage.errors import DiskError, StorageError
from storage.types.topic_partition import TopicPartition
from storage.types.uuid_text import NIL

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.controller.images.cluster_image import ClusterImage, TopicImage
    from broker.controller.images.partition_image import PartitionImage
    from broker.replicas.partition import Partition
    from broker.replicas.replica_manager import ReplicaManager
    from broker.replicas.role_reconciler import RoleReconciler
    from broker.runtime.disk import Disk
    from storage.log.log import Log
    from storage.manager.log_manager import LogManager

LOGGER = logging.getLogger(__name__)

Missing = tuple[TopicPartition, "TopicImage"]

CREATED_PER_CALL = 256
"""Logs created by one call into a thread; between calls the loop begins to serve them."""


class LogLifecycle:
    """See the module. Runs on the loop's thread; what touches the disk is handed to threads."""

    def __init__(
        self,
        *,
        controller: "Controller",
        log_manager: "LogManager",
        replicas: "ReplicaManager",
        roles: "RoleReconciler",
        disk: "Disk",
        on_serving: Callable[[], None] = lambda: None,
        is_alone: bool = True,
        on_reconfigured: Callable[["Partition"], None] = lambda _partition: None,
        on_deleted: Callable[[Sequence["Partition"]], None] = lambda _partitions: None,
    ) -> None:
        """Nothing is done before `load`.

        Args:
            controller: Whose images these are.
            log_manager: Opens and deletes logs.
            replicas: Has the partitions that are open.
            roles: Give them their roles.
            disk: Threads.
            on_serving: One more partition is open.
            is_alone: A single node, which begins leader epochs itself. In a cluster the controller
                has begun them before this broker gets a role.
            on_reconfigured: Its topic's settings, or the topic itself, have changed.
            on_deleted: Its topic was deleted; it is not served any more, its log is still there.
        """
        self._controller = controller
        self._node_id = controller.settings.node_id
        self._log_manager = log_manager
        log_manager.assigned = self._directory_of
        if is_alone:
            controller.place_by(log_manager.placement)
        self._replicas = replicas
        self._roles = roles
        self._disk = disk
        self._on_serving = on_serving
        self._is_alone = is_alone
        self._on_reconfigured = on_reconfigured
        self._on_deleted = on_deleted
        self._loop = asyncio.get_running_loop()
        self._hand_over_lock = threading.Lock()
        self._handed_over: list[Log] = []
        # Topic ids of the logs that are being recovered.
        self._loaded_for: ClusterImage | None = None
        self._outdated: list[TopicPartition] = []
        # Partitions of the image whose logs could not be made for want of room, and their topics.
        self._unmade: dict[TopicPartition, UUID] = {}
        # Logs that are open and wait for a leader epoch.
        self._cut: list[Log] = []
        self._is_loaded = False
        # Logs were found that had not been closed. An empty directory says nothing.
        self._was_unclean = False
        self._tasks: set[asyncio.Task[None]] = set()
        # Held while folders of partitions are made, and while they are listed.
        self._creating = asyncio.Lock()

    def _directory_of(self, topic_partition: TopicPartition) -> UUID | None:
        """The log directory that a partition belongs to. In any thread."""
        partition = self._controller.image.partition(*topic_partition)
        return None if partition is None else partition.directory_on(self._node_id)

    def _is_here(self, partition: "PartitionImage") -> bool:
        """Whether this broker is to have a replica of a partition."""
        return self._node_id in partition.replicas

    def config_for(self, topic: str) -> TopicConfig:
        """The topic's settings: broker's defaults under its own."""
        found = self._controller.image.topics.get(topic)
        overrides = found.overrides if found is not None else {}
        return TopicConfig.resolve(
            self._controller.effective_settings, own_overrides(topic, overrides)
        )

    # -- start -----------------------------------------------------------------------------------

    async def load(self, recovery_threads: int) -> None:
        """Open every log found on disk, then create what the image has and the disk has not.

        Partitions serve one by one while this runs; those with least to recover come first.

        Raises:
            StorageError: The same partition lies in two directories, or no directory works.
        """
        image = self._controller.image
        for topic in image.topics.values():
            if is_tiered(topic.overrides) and not may_be_tiered(topic.name):
                LOGGER.warning("remote.storage.enable has no effect topic=%s", topic.name)
        defaults = TopicConfig.resolve(self._controller.effective_settings, {})
        configs: dict[str, TopicConfig] = {}
        begun: dict[TopicPartition, int] = {}

        def is_stray(topic_partition: TopicPartition, topic_id: UUID | None) -> bool:
            topic = image.topics.get(topic_partition.topic)
            return (
                topic is None
                or topic_partition.partition >= len(topic.partitions)
                or not self._is_here(topic.partitions[topic_partition.partition])
                or (topic_id is not None and topic_id != topic.topic_id)
            )

        try:
            # A listing would take a folder that is being made for a stray one.
            async with self._creating:
                jobs = await self._disk.run(
                    self._log_manager.startup.load_jobs,
                    lambda topic: configs.get(topic, defaults),
                    on_loaded=self._hand_over,
                    is_stray=is_stray,
                    new_epoch_of=begun.get,
                )
        except LoadingStoppedError:
            return
        unclean = [job.topic_partition for job in jobs if not job.directory.had_clean_shutdown]
        self._was_unclean = bool(unclean)
        begun.update(await self._begin_epochs(unclean))
        await self._assign(self._log_manager.found_elsewhere)
        loaded_for = self._loaded_for = self._controller.image
        configs.update((name, self.config_for(name)) for name in loaded_for.topics)
        LOGGER.info(
            "loading logs partitions=%d bytes_to_recover=%d",
            len(jobs),
            self._log_manager.progress.bytes_total,
        )
        waiting = deque(jobs)

        def work() -> None:
            # One call into a thread for all jobs: a call for each would cost more than opening a
            # log that has nothing to recover.
            while True:
                try:
                    job = waiting.popleft()
                except IndexError:
                    return
                job()

        with ThreadPoolExecutor(recovery_threads, thread_name_prefix="recovery") as pool:
            workers = [self._loop.run_in_executor(pool, work) for _ in range(recovery_threads)]
            await asyncio.gather(*workers)
        if self._log_manager.progress.is_stopped:
            return
        self._serve_handed_over()
        self._is_loaded = True
        await self._serve_in_new_epochs()
        if self._outdated:
            await self._disk.run(self._log_manager.deletion.delete_all, self._outdated)
            self._outdated = []
        missing = self._missing_after_load(image)
        choose = self._log_manager.placement()
        await self._assign(
            {
                pair[0]: chosen
                for pair in missing
                if self._directory_of(pair[0]) is None and (chosen := choose()) is not None
            }
        )
        await self._create_missing(await self._in_new_epochs(missing, image))

    async def _assign(self, places: Mapping[TopicPartition, UUID]) -> None:
        """Record the partitions' log directories in the metadata."""
        image = self._controller.image
        if not self._is_alone:
            # The controller keeps directories of its own node only, so far.
            return
        by_topic: dict[UUID, dict[int, UUID]] = {}
        for (name, index), directory_id in places.items():
            if name in image.topics:
                by_topic.setdefault(image.topics[name].topic_id, {})[index] = directory_id
        if by_topic:
            done = await self._controller.assign_directories(by_topic)
            LOGGER.info("log directory assignments recorded topics=%d", len(done))

    async def _begin_epochs(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Begin another leader epoch of the image's partitions; return the new epochs.

        Their logs were not closed: a power cut may have lost records that consumers have read, and
        new ones will get the same offsets. In the same epoch no consumer could detect that.
        """
        if not self._is_alone:
            return {}
        image = self._controller.image
        wanted: dict[UUID, set[int]] = {}
        for name, index in partitions:
            if image.partition(name, index) is not None:
                wanted.setdefault(image.topics[name].topic_id, set()).add(index)
        if not wanted:
            return {}
        done = await self._controller.begin_epochs(wanted)
        image = self._controller.image
        begun: dict[TopicPartition, int] = {}
        for topic_id, indexes in wanted.items():
            topic = image.topics_by_id.get(topic_id)
            if topic is None:
                continue
            if topic_id not in done:
                self._log_manager.alerts.set(
                    AlertKind.LEADER_EPOCH_STALE,
                    topic.name,
                    "the metadata store refused to begin a leader epoch after an unclean start: "
                    "consumers that have read lost records do not detect the truncation until "
                    "the next start",
                )
                continue
            for index in indexes:
                begun[TopicPartition(topic.name, index)] = topic.partitions[index].leader_epoch
        LOGGER.info("new leader epochs assigned partitions=%d", len(begun))
        return begun

    async def _serve_in_new_epochs(self) -> None:
        """Serve logs that were closed cleanly and have turned out damaged."""
        logs, self._cut = self._cut, []
        if not logs:
            return
        begun = await self._begin_epochs(log.topic_partition for log in logs)

        def begin() -> None:
            for log in logs:
                epoch = begun.get(log.topic_partition)
                try:
                    if epoch is not None:
                        log.begin_epoch(epoch)
                except DiskError as error:
                    self._log_manager.fail_log(log, error)

        await self._disk.run(begin)
        for log in logs:
            log.needs_new_epoch = False
            if log.failure is None:
                self._serve(log)

    async def _in_new_epochs(self, missing: list[Missing], before: "ClusterImage") -> list[Missing]:
        """Begin another leader epoch of partitions whose log is missing.

        Remote segments or, after an unclean stop, consumers' offsets of the old log must not be
        mistaken for those of the new one. If there may be remote segments, no log is created
        without a new epoch.
        """
        if not self._is_alone:
            return missing
        lost = [
            (topic_partition, topic)
            for topic_partition, topic in missing
            if topic.topic_id in before.topics_by_id
            and (self._was_unclean or self._has_remote(topic.name))
        ]
        if not lost:
            return missing
        LOGGER.warning(
            "partitions without a log here start empty in a new leader epoch partitions=%d",
            len(lost),
        )
        begun = await self._begin_epochs(topic_partition for topic_partition, _ in lost)
        refused = {
            topic_partition
            for topic_partition, _ in lost
            if topic_partition not in begun and self._has_remote(topic_partition.topic)
        }
        return [pair for pair in missing if pair[0] not in refused]

    def _has_remote(self, topic: str) -> bool:
        config = self.config_for(topic)
        return config.remote_storage_enable or config.remote_log_delete_on_disable

    def _missing_after_load(self, before: "ClusterImage") -> list[Missing]:
        """Partitions without a log that are to get one.

        Not those whose directory is missing or offline, nor, with any directory so, those of an
        unknown directory: an empty log in their place would hide that their records are lost.
        """
        image = self._controller.image
        missing = [pair for topic in image.topics.values() for pair in self._not_served(topic)]
        is_whole = not self._log_manager.offline_directories
        kept = []
        for pair in missing:
            directory_id = self._directory_of(pair[0])
            if (
                is_whole or pair[1].topic_id not in before.topics_by_id
                if directory_id is None
                else self._log_manager.directory_by_id(directory_id) is not None
            ):
                kept.append(pair)
        if len(kept) < len(missing):
            LOGGER.error(
                "partitions are offline because their log directory is offline or missing "
                "partitions=%d",
                len(missing) - len(kept),
            )
        return kept

    def serve(self, log: "Log") -> None:
        """Serve a log that is open, of a topic that is there."""
        self._serve(log)

    def _hand_over(self, log: "Log") -> None:
        """Pass an open log to the loop, which is woken once for many; called in threads."""
        with self._hand_over_lock:
            self._handed_over.append(log)
            if len(self._handed_over) > 1:
                return
        self._loop.call_soon_threadsafe(self._serve_handed_over)

    def _serve_handed_over(self) -> None:
        with self._hand_over_lock:
            logs, self._handed_over = self._handed_over, []
        for log in logs:
            if log.needs_new_epoch:
                self._cut.append(log)
            else:
                self._serve(log)
        if self._cut and self._is_loaded:
            # One for which there was no room before.
            task = self._loop.create_task(self._serve_in_new_epochs())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _serve(self, log: "Log") -> None:
        topic, index = log.topic_partition
        image = self._controller.image
        partition = image.partition(topic, index)
        found = image.topics.get(topic)
        if (
            partition is None
            or found is None
            or log.topic_id not in (found.topic_id, NIL)
            or not self._is_here(partition)
        ):
            # Deleted while it was recovering, and perhaps created again: then this is not its log.
            self._outdated.append(log.topic_partition)
            return
        served = self._replicas.replica_of(topic, index)
        if served is not None and served.log is log:
            return
        if image is not self._loaded_for:
            # Settings may have changed while it was recovering.
            log.update_config(self.config_for(topic))
        opened = self._replicas.open_partition(log.topic_partition, found.topic_id, log)
        self._on_serving()
        self._roles.opened(opened)

    # -- changes ---------------------------------------------------------------------------------

    async def apply(self, old: "ClusterImage", new: "ClusterImage") -> None:
        """Bring the logs from one image to the next; called in order, one at a time."""
        gone = [
            topic
            for name, topic in old.topics.items()
            if (now := new.topics.get(name)) is None or now.topic_id != topic.topic_id
        ]
        if gone:
            await self._delete(gone)
        missing: list[Missing] = []
        for name, topic in new.topics.items():
            before = old.topics.get(name)
            if before is None or before.topic_id != topic.topic_id:
                missing += self._not_served(topic)
            elif len(before.partitions) != len(topic.partitions):
                # Earlier ones may be missing for a reason: in recovery, or on a disk that failed.
                missing += self._not_served(topic, start=len(before.partitions))
        await self._create_missing(missing)
        if old.configs != new.configs:
            changed: Iterable[str] = new.topics
        else:
            changed = [
                name
                for name, topic in new.topics.items()
                if name in old.topics and old.topics[name].overrides != topic.overrides
            ]
        for name in changed:
            self._reconfigure(new.topics[name])

    def _reconfigure(self, topic: "TopicImage") -> None:
        config = self.config_for(topic.name)
        for partition in topic.partitions:
            served = self._replicas.replica_of(topic.name, partition.index)
            if served is not None:
                served.log.update_config(config)
                self._on_reconfigured(served)

    def _not_served(self, topic: "TopicImage", start: int = 0) -> list[Missing]:
        return [
            (TopicPartition(topic.name, partition.index), topic)
            for partition in topic.partitions
            if partition.index >= start
            and self._is_here(partition)
            and self._replicas.replica_of(topic.name, partition.index) is None
            and not self._log_manager.is_given_up(TopicPartition(topic.name, partition.index))
        ]

    async def _create_missing(self, missing: Sequence[Missing]) -> None:
        # The end of a load and a change of the image may miss the same partition.
        async with self._creating:
            await self._create_unserved(missing)

    async def _create_unserved(self, missing: Sequence[Missing]) -> None:
        for start in range(0, len(missing), CREATED_PER_CALL):
            part = [
                pair
                for pair in missing[start : start + CREATED_PER_CALL]
                if self._replicas.replica_of(*pair[0]) is None
            ]
            configs = {topic.name: self.config_for(topic.name) for _, topic in part}
            by_epoch: dict[int | None, list[tuple[TopicPartition, UUID, TopicConfig]]] = {}
            for tp, topic in part:
                by_epoch.setdefault(self._first_epoch(tp), []).append(
                    (tp, topic.topic_id, configs[topic.name])
                )
            for leader_epoch, wanted in by_epoch.items():
                for log in await self._create_all(wanted, leader_epoch):
                    self._serve(log)

    def _first_epoch(self, topic_partition: TopicPartition) -> int | None:
        """The leader epoch that a new log begins with; None: that of the leader's first record."""
        partition = self._controller.image.partition(*topic_partition)
        if partition is None:
            return 0
        return partition.leader_epoch if len(partition.replicas) == 1 else None

    async def _create_all(
        self, wanted: list[tuple[TopicPartition, UUID, TopicConfig]], leader_epoch: int | None
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

    async def create_unmade(self) -> None:
        """Create the logs for which there was no room, unless their topics were deleted."""
        if not self._unmade or not self._log_manager.room.has_room:
            return
        unmade, self._unmade = self._unmade, {}
        topics = self._controller.image.topics
        await self._create_missing(
            [
                (topic_partition, topic)
                for topic_partition, topic_id in unmade.items()
                if (topic := topics.get(topic_partition.topic)) is not None
                and topic.topic_id == topic_id
            ]
        )

    async def _delete(self, topics: list["TopicImage"]) -> None:
        for topic in topics:
            try:
                await self._delete_one(topic)
            except StorageError as error:
                LOGGER.error("logs not deleted topic=%s error=%s", topic.name, error)
            except Exception:
                # The others are deleted in the metadata, too: their names must become free.
                LOGGER.exception("logs not deleted topic=%s", topic.name)

    async def _delete_one(self, topic: "TopicImage") -> None:
        removed = self._roles.close_topic(topic.name)
        try:
            self._on_deleted(removed)
        finally:
            for partition in removed:
                await partition.idle()
            gone = [p.topic_partition for p in removed]
            for index in range(len(topic.partitions)):
                topic_partition = TopicPartition(topic.name, index)
                if self._log_manager.is_given_up(topic_partition):
                    gone.append(topic_partition)
            try:
                await self._disk.run(self._log_manager.deletion.delete_all, gone)
            finally:
                self._log_manager.deletion.forget_offline(
                    TopicPartition(topic.name, partition.index) for partition in topic.partitions
                )
