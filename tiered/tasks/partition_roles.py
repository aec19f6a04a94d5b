"""Roles of a partition: the tasks of each, and the pools they run in.

    LEADING     copy task    ──> pool "copier"      ──> Copier
                expiry task  ──> pool "expiration"  ──> Expirer
    FOLLOWING   follower task: on the loop, no pool
    PURGING     other        ──> pool "expiration"  ──> RemoteDeletion.purge
    DELETING    other        ──> pool "expiration"  ──> RemoteDeletion.run

Which role a partition has is the manager's to say (`tiered.tasks.remote_log_manager`).
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from config.tier import TierConfig
from storage.environment.alerts import AlertKind, Alerts
from tiered.maintenance.lost_metadata import HOW_TO_GO_ON
from tiered.metadata.lineage import find_highest_remote_offset
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import SegmentState, TopicIdPartition
from tiered.tasks.copier import Copier
from tiered.tasks.expirer import Expirer
from tiered.tasks.led_partition import LedPartition
from tiered.tasks.partition_deletion import RemoteDeletion
from tiered.tasks.partition_tasks import PartitionState, PartitionTasks
from tiered.tasks.periodic import PeriodicTasks
from tiered.tasks.task_pool import TaskPool

GONE_MAX: Final = 10_000
"""Partitions whose finished deletion is remembered, for the scrubber; of more, the oldest go."""


class PartitionRoles:
    """See the module.

    Attributes:
        copier_pool, expiration_pool, follower_pool: As many at a time as the settings say.
        gone: Partitions whose deletion was finished here, newest last.
    """

    def __init__(
        self,
        *,
        metadata: RemoteLogMetadataManager,
        tasks: PeriodicTasks,
        copier: Copier,
        expirer: Expirer,
        deletion: RemoteDeletion,
        settings: TierConfig,
        alerts: Alerts,
        on_gone: Callable[[PartitionTasks], None],
    ) -> None:
        """Nothing runs yet.

        Args:
            metadata: Says which partitions are ready.
            tasks: Makes their tasks.
            copier: Of led partitions.
            expirer: Of led partitions.
            deletion: Of partitions whose topic was deleted, or has switched remote storage off.
            settings: To begin with; see `resize`.
            alerts: For what a switched-off topic has left in remote storage.
            on_gone: Nothing is left of a deleted partition. Called within its last task.
        """
        self._metadata = metadata
        self._tasks = tasks
        self._copier = copier
        self._expirer = expirer
        self._deletion = deletion
        self._alerts = alerts
        self._on_gone = on_gone
        self.copier_pool = TaskPool("copier", settings.remote_log_manager_copier_thread_pool_size)
        self.expiration_pool = TaskPool(
            "expiration", settings.remote_log_manager_expiration_thread_pool_size
        )
        self.follower_pool = TaskPool(
            "follower", settings.remote_log_manager_follower_thread_pool_size
        )
        self.gone: OrderedDict[TopicIdPartition, None] = OrderedDict()

    def resize(self, settings: TierConfig) -> None:
        """New settings: as many at a time, and as fast, as they say."""
        self.copier_pool.resize(settings.remote_log_manager_copier_thread_pool_size)
        self.expiration_pool.resize(settings.remote_log_manager_expiration_thread_pool_size)
        self.follower_pool.resize(settings.remote_log_manager_follower_thread_pool_size)
        self._copier.quota.update(settings)

    def lead(self, tasks: PartitionTasks, led: LedPartition) -> None:
        """Copy and expire."""
        tasks.copy = self._tasks.make(
            f"copy of {tasks.partition}",
            self.copier_pool,
            is_due=lambda: self._copier.is_due(led),
            work=lambda: self._copier.run(led),
        )
        tasks.expiry = self._tasks.make(
            f"expiry of {tasks.partition}",
            self.expiration_pool,
            is_due=lambda: self._expirer.is_due(led),
            work=lambda: self._expirer.run(led),
        )
        tasks.expiry.start()
        tasks.copy.start()

    def follow(self, tasks: PartitionTasks, led: LedPartition) -> None:
        """Only learn how far the leader has copied, which never needs a job."""

        def catch_up() -> bool:
            tiered = led.tiered
            if tiered.is_truncating():
                return False
            if led.is_active and self._metadata.is_ready(tasks.partition):
                log = tiered.log
                log.highest_remote_offset = find_highest_remote_offset(
                    self._metadata, tasks.partition, log
                )
            return False

        async def nothing() -> None:
            return None

        tasks.follower = self._tasks.make(
            f"following of {tasks.partition}", self.follower_pool, is_due=catch_up, work=nothing
        )
        tasks.follower.start()

    def purge(self, tasks: PartitionTasks, led: LedPartition) -> None:
        """Remote storage was switched off: what it has goes, if the topic's settings say so.

        What was begun is completed, whatever they say now. Else it stays, and an alert is set: the
        settings may be what was lost.
        """
        subject = str(tasks.partition)

        def is_due() -> bool:
            if not self._metadata.is_ready(tasks.partition):
                return False
            left, begun = self._deletion.left_of(tasks.partition)
            if led.purge_wanted and not left and led.may_change:
                # It may have been purged while this broker was away, whose log did not hear of it.
                led.raise_log_start(led.tiered.log.local_log_start_offset)
            kept = "" if led.purge_wanted else self._kept(led, left - begun)
            if kept:
                self._alerts.set(AlertKind.TIER_LEFT_BEHIND, subject, kept)
            else:
                self._alerts.clear(AlertKind.TIER_LEFT_BEHIND, subject)
            return left > 0 if led.purge_wanted else begun > 0

        tasks.other = self._tasks.make(
            f"removal of what {tasks.partition} has in remote storage",
            self.expiration_pool,
            is_due=is_due,
            work=lambda: self._deletion.purge(led),
        )
        tasks.other.start()

    def _kept(self, led: LedPartition, left: int) -> str:
        """What a switched-off topic has in remote storage, and what becomes of it by which setting.

        Args:
            led: The partition.
            left: Segments that nobody has given up.

        Returns:
            Empty: nothing is left.
        """
        log = led.tiered.log
        log_start, local_start = log.log_start_offset, log.local_log_start_offset
        if not left:
            if log_start == local_start:
                return ""
            return (
                f"remote storage is disabled for it, its log begins at offset {log_start}, here at "
                f"{local_start}, and nothing is known of what lies between: {HOW_TO_GO_ON}; "
                "remote.log.delete.on.disable=true has the log begin here"
            )
        state = f"remote storage is disabled for it, and still has {left} of its segments"
        removes = "remote.log.delete.on.disable=true removes them"
        below = sum(
            one.state is SegmentState.COPY_SEGMENT_FINISHED and one.end_offset < log_start
            for one in self._metadata.segments(led.tiered.partition)
        )
        if not below:
            return (
                f"{state}, which are read, and neither expire nor become more. "
                f"remote.storage.enable=true goes on with them, {removes}"
            )
        return (
            f"{state}. {removes}, and so does remote.storage.enable=true with {below} of them: "
            f"they are below the log start offset, {log_start}. `varve tier restore` makes a node "
            "with all of them of the bucket"
        )

    def delete(self, tasks: PartitionTasks) -> None:
        """The topic was deleted: what it has in remote storage goes."""
        partition = tasks.partition

        async def work() -> None:
            await self._deletion.run(partition)
            self.gone[partition] = None
            while len(self.gone) > GONE_MAX:
                self.gone.popitem(last=False)
            self._on_gone(tasks)

        tasks.move(PartitionState.DELETING)
        tasks.led = None
        tasks.other = self._tasks.make(
            f"deletion of {partition}",
            self.expiration_pool,
            is_due=lambda: partition not in self.gone,
            work=work,
        )
        tasks.other.start()
