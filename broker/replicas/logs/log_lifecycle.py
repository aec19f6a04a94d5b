"""The life cycle of logs by the cluster's image: opened, made, reconfigured and removed.

    start    logs found and assigned here ──recover in threads──> open, one by one ──> their roles
             found and not in the image   ──> set aside, not deleted
             assigned to other brokers    ──> deleted
             assigned and not found       ──> made, unless a log directory is offline: then they may
                                              lie there
    image ──in its turn──> settings changed; topics and replicas that are gone: closed
                   └─tasks─> their logs removed; logs that are missing made

In the turn of an image nothing waits for a disk, and settings are changed before roles: a larger
`min.insync.replicas` must hold when the ISR becomes smaller than it (KIP-966). On a single node a
CreateTopics is answered after its logs exist; in a cluster nothing waits for them.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from broker.controller.topics.tiered_topics import may_be_tiered
from broker.replicas.logs.assignment import Assignment
from broker.replicas.logs.log_making import LogMaking, Missing
from broker.replicas.logs.log_opening import LogOpening
from broker.replicas.logs.log_removal import LogRemoval
from broker.replicas.logs.new_epochs import NewEpochs
from config.topic import is_tiered
from storage.checkpoints.log_loading import LoadingStoppedError

if TYPE_CHECKING:
    from uuid import UUID

    from broker.controller.controller import Controller
    from broker.controller.images.cluster_image import ClusterImage, TopicImage
    from broker.controller.images.partition_image import PartitionImage
    from broker.replicas.partition import Partition
    from broker.replicas.replica_manager import ReplicaManager
    from broker.replicas.role_reconciler import RoleReconciler
    from broker.runtime.disk import Disk
    from config.topic import TopicConfig
    from storage.log.log import Log
    from storage.manager.log_manager import LogManager

LOGGER = logging.getLogger(__name__)


class LogListener(Protocol):
    """What follows logs beside their roles."""

    def on_reconfigured(self, partition: "Partition") -> None:
        """Its topic's settings have changed."""
        ...

    def on_deleted(self, partitions: "Sequence[Partition]") -> None:
        """Their topic was deleted; they are closed, their logs are still there."""
        ...


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
        listener: LogListener,
        on_serving: Callable[[], None] = lambda: None,
        is_alone: bool = True,
    ) -> None:
        """Nothing is done before `load`.

        Args:
            controller: Whose images these are.
            log_manager: Opens and deletes logs.
            replicas: Has the partitions that are open.
            roles: Give them their roles.
            disk: Threads.
            listener: Follows logs.
            on_serving: One more partition is open.
            is_alone: A single node, which begins leader epochs itself.
        """
        assignment = self._assignment = Assignment(controller, is_alone=is_alone)
        log_manager.assigned = assignment.directory_of
        if is_alone:
            controller.place_by(log_manager.placement)
        self._log_manager = log_manager
        self._replicas = replicas
        self._listener = listener
        self._is_alone = is_alone
        epochs = NewEpochs(controller, log_manager, is_alone=is_alone)
        self._opening = LogOpening(
            assignment, log_manager, replicas, roles, disk, epochs, on_serving
        )
        # Held while folders of partitions are made, and while they are listed.
        self._folders = asyncio.Lock()
        self._removal = LogRemoval(
            log_manager, replicas, roles, disk, self._folders, listener.on_deleted
        )
        self._making = LogMaking(
            assignment,
            log_manager,
            replicas,
            disk,
            removal=self._removal,
            epochs=epochs,
            folders=self._folders,
            serve=self.serve,
        )

    def report_places(
        self,
        report: "Callable[[UUID, int, UUID], None]",
        begins_anew: "Callable[[PartitionImage], bool]",
    ) -> None:
        """Have the controller hear where logs lie, and replicas begin empty; see `Assignment`."""
        self._assignment.report = report
        self._assignment.begins_anew = begins_anew

    def config_for(self, topic: str) -> "TopicConfig":
        """The topic's settings: broker's defaults under its own."""
        return self._assignment.config_for(topic)

    @property
    def has_lost_logs(self) -> bool:
        """Whether a log that the cluster counts on was missing at the start, or lacks its end.

        Likewise one that cannot be opened: elected for it, as the first one that is back, this
        broker could not lead it, and those that have it could not either.
        """
        short = (log.topic_partition for log in self._log_manager.logs() if log.is_short)
        return self._making.lost_logs > 0 or any(
            map(self._assignment.is_counted_on, (*short, *self._log_manager.unopened))
        )

    def serve(self, log: "Log") -> None:
        """Give a log that is open to the replica manager, and its partition a role."""
        self._opening.serve(log)

    async def load(self, recovery_threads: int) -> None:
        """Open every log found on disk, then make what the image has and the disk has not.

        Partitions serve one by one while this runs; those with least to recover come first.

        Raises:
            StorageError: The same partition lies in two directories, or no directory works.
        """
        image = self._assignment.image
        for topic in image.topics.values():
            if is_tiered(topic.overrides) and not may_be_tiered(topic.name):
                LOGGER.warning("remote.storage.enable has no effect topic=%s", topic.name)
        try:
            # A listing would take a folder that is being made for a stray one.
            async with self._folders:
                jobs = await self._opening.find()
        except LoadingStoppedError:
            return
        await self._opening.open(jobs, threads=recovery_threads)
        if self._log_manager.progress.is_stopped:
            return
        missing = self._making.to_be_made(image)
        choose = self._log_manager.placement()
        await self._assignment.record_directories(
            {
                pair[0]: chosen
                for pair in missing
                if self._assignment.directory_of(pair[0]) is None and (chosen := choose(pair[0]))
            }
        )
        was_unclean = any(not job.directory.had_clean_shutdown for job in jobs)
        await self._making.make_in_new_epochs(missing, image, was_unclean=was_unclean)

    async def create_unmade(self) -> None:
        """Make the logs for which there was no room, unless their topics were deleted."""
        await self._making.make_unmade()

    # -- changes ---------------------------------------------------------------------------------

    def apply_now(self, old: "ClusterImage", new: "ClusterImage") -> None:
        """Follow an image in the turn in which it came, before roles do."""
        for name, topic in old.topics.items():
            now = new.topics.get(name)
            if now is not topic and (now is None or now.topic_id != topic.topic_id):
                self._removal.topic_deleted(topic)
        missing: list[Missing] = []
        changed: list[TopicImage] = []
        defaults_changed = old.configs != new.configs
        for name, topic in new.topics.items():
            before = old.topics.get(name)
            if before is not topic:
                if before is not None and before.topic_id != topic.topic_id:
                    before = None
                missing += self._follow(before, topic)
            if defaults_changed or (before is not None and before.overrides != topic.overrides):
                changed.append(topic)
        if missing:
            self._making.begin(missing)
        for topic in changed:
            self._reconfigure(topic)

    async def apply(self, _old: "ClusterImage", _new: "ClusterImage") -> None:
        """Wait, on a single node, until logs are made and removed: a request is answered then."""
        if self._is_alone and (under_way := self.under_way):
            await asyncio.wait(under_way)

    @property
    def under_way(self) -> "Sequence[asyncio.Task[None]]":
        """Logs that are being made and removed after a change."""
        return [one for one in (*self._removal.tasks, *self._making.tasks) if not one.done()]

    def _follow(self, before: "TopicImage | None", topic: "TopicImage") -> list[Missing]:
        """Remove replicas that are assigned here no longer; those that are to be made."""
        is_here = self._assignment.is_here
        known = () if before is None else before.partitions
        gone = [
            partition.index
            for partition in topic.partitions[: len(known)]
            if not is_here(partition) and is_here(known[partition.index])
        ]
        if gone:
            self._removal.replicas_removed(topic.name, gone)
        return [
            pair
            for pair in self._making.not_open(topic)
            # Earlier ones may be missing for a reason: in recovery, or on a disk that failed.
            if pair[0].partition >= len(known)
            or not is_here(known[pair[0].partition])
            or self._making.is_free(pair[0])
        ]

    def _reconfigure(self, topic: "TopicImage") -> None:
        config = self.config_for(topic.name)
        for partition in topic.partitions:
            served = self._replicas.replica_of(topic.name, partition.index)
            if served is not None:
                served.log.update_config(config)
                served.reconfigured()
                self._listener.on_reconfigured(served)
