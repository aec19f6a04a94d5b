"""What is done for a partition in each of its roles: which task runs what, and in which pool.

    LEADING     copy task    ──> pool "copier"      ──> Copier
                expiry task  ──> pool "expiration"  ──> Expirer
    FOLLOWING   follower task: a look, no pool
    PURGING     other        ──> pool "expiration"  ──> RemoteDeletion.purge
    DELETING    other        ──> pool "expiration"  ──> RemoteDeletion.run

Which role a partition has is the manager's to say (`tiered.tasks.manager`).
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final
from uuid import UUID

from storage.environment.alerts import AlertKind, Alerts
from storage.environment.clock import Clock
from storage.environment.filesystem import Filesystem
from storage.environment.randomness import Randomness
from storage.environment.timer import Timer
from tiered.backoff import Backoff
from tiered.maintenance.bucket_ownership import Claim
from tiered.metadata.interface import RemoteLogMetadataManager
from tiered.metadata.lineage import find_highest_remote_offset
from tiered.segment_metadata import RemoteLogSegmentMetadata, TopicIdPartition
from tiered.settings import TierSettings
from tiered.tasks.copier import Copier, Run
from tiered.tasks.expirer import Expirer
from tiered.tasks.history_keeper import HistoryKeeper
from tiered.tasks.led_partition import LedPartition
from tiered.tasks.partition_deletion import RemoteDeletion
from tiered.tasks.partition_tasks import PartitionState, PartitionTasks
from tiered.tasks.periodic import PeriodicTask
from tiered.tasks.segment_deletion import SegmentDeletion
from tiered.tasks.task_counters import TaskCounters
from tiered.tasks.task_pool import TaskPool
from tiered.tier import Tier

GONE_MAX: Final = 10_000
"""Partitions whose finished deletion is remembered, for the scrubber; of more, the oldest go."""


class PartitionRoles:
    """See the module.

    Attributes:
        copier, deletion, remote_deletion: See there.
        copier_pool, expiration_pool, follower_pool: As many at a time as the settings say.
        gone: Partitions whose deletion was finished here, newest last.
    """

    def __init__(
        self,
        *,
        metadata: RemoteLogMetadataManager,
        tier: Tier,
        clock: Clock,
        timer: Timer,
        randomness: Randomness,
        filesystem: Filesystem,
        broker_id: int,
        settings: Callable[[], TierSettings],
        counters: TaskCounters,
        run_blocking: Run,
        progress: Callable[[UUID], int] | None,
        alerts: Alerts,
        on_deleted: Callable[[RemoteLogSegmentMetadata], None],
        on_ended: Callable[[], None],
        on_gone: Callable[[PartitionTasks], None],
        claim: Claim,
        history: HistoryKeeper,
    ) -> None:
        """Nothing runs yet; what is not named here is as the manager has it.

        `settings` gives the present ones; `on_deleted`: the removal of a segment has begun;
        `on_ended`: a job of a stopped task has ended; `on_gone`: nothing is left of a deleted
        partition.
        """
        self._metadata = metadata
        self._timer = timer
        self._randomness = randomness
        self._settings = settings
        self._on_ended = on_ended
        self._on_gone = on_gone
        self._alerts = alerts
        present = settings()
        self.copier_pool = TaskPool("copier", present.copier_tasks)
        self.expiration_pool = TaskPool("expiration", present.expiration_tasks)
        self.follower_pool = TaskPool("follower", present.follower_tasks)
        self.gone: OrderedDict[TopicIdPartition, None] = OrderedDict()
        self.deletion = SegmentDeletion(
            metadata=metadata,
            tier=tier,
            clock=clock,
            timer=timer,
            broker_id=broker_id,
            settings=settings,
            counters=counters,
            require=claim.require,
            without=history.without,
            on_deleted=on_deleted,
        )
        self.copier = Copier(
            metadata=metadata,
            tier=tier,
            deletion=self.deletion,
            clock=clock,
            timer=timer,
            randomness=randomness,
            filesystem=filesystem,
            broker_id=broker_id,
            settings=settings,
            counters=counters,
            run_blocking=run_blocking,
            progress=progress,
            alerts=alerts,
        )
        self._expirer = Expirer(
            metadata=metadata,
            tier=tier,
            deletion=self.deletion,
            clock=clock,
            timer=timer,
            broker_id=broker_id,
            settings=settings,
            counters=counters,
            in_flight=self.copier.in_flight,
            claim=claim,
        )
        self.remote_deletion = RemoteDeletion(
            metadata=metadata,
            tier=tier,
            deletion=self.deletion,
            clock=clock,
            timer=timer,
            broker_id=broker_id,
            settings=settings,
            claim=claim,
            history=history.writer,
        )

    def resize(self, settings: TierSettings) -> None:
        """New settings: as many at a time, and as fast, as they say."""
        self.copier_pool.resize(settings.copier_tasks)
        self.expiration_pool.resize(settings.expiration_tasks)
        self.follower_pool.resize(settings.follower_tasks)
        self.copier.quota.update(settings)

    def lead(self, tasks: PartitionTasks, led: LedPartition) -> None:
        """Copy and expire."""
        tasks.copy = self.periodic(
            f"copy of {tasks.partition}",
            self.copier_pool,
            is_due=lambda: self.copier.is_due(led),
            work=lambda: self.copier.run(led),
        )
        tasks.expiry = self.periodic(
            f"expiry of {tasks.partition}",
            self.expiration_pool,
            is_due=lambda: self._expirer.is_due(led),
            work=lambda: self._expirer.run(led),
        )
        tasks.expiry.start()
        tasks.copy.start()

    def follow(self, tasks: PartitionTasks, led: LedPartition) -> None:
        """Only learn how far the leader has copied: a look, which never needs a job."""

        def look() -> bool:
            if led.is_active and self._metadata.is_ready(tasks.partition):
                log = led.tiered.log
                log.highest_remote_offset = find_highest_remote_offset(
                    self._metadata, tasks.partition, log
                )
            return False

        async def nothing() -> None:
            return None

        tasks.follower = self.periodic(
            f"following of {tasks.partition}", self.follower_pool, is_due=look, work=nothing
        )
        tasks.follower.start()

    def purge(self, tasks: PartitionTasks, led: LedPartition) -> None:
        """Remote storage was switched off: what it has goes, if the topic has said so.

        What was begun is seen through, whatever the topic says now. Else it stays, and is told:
        the settings may be what was lost.
        """
        subject = str(tasks.partition)

        def is_due() -> bool:
            if not self._metadata.is_ready(tasks.partition):
                return False
            left, begun = self.remote_deletion.left_of(tasks.partition)
            if led.purge_wanted or not left - begun:
                self._alerts.clear(AlertKind.TIER_LEFT_BEHIND, subject)
                return left > 0 if led.purge_wanted else begun > 0
            self._alerts.set(
                AlertKind.TIER_LEFT_BEHIND,
                subject,
                f"remote storage is switched off, and has {left - begun} segments of it still, "
                "which nobody can read. remote.log.delete.on.disable=true removes them, "
                "remote.storage.enable=true serves them again",
            )
            return begun > 0

        tasks.other = self.periodic(
            f"removal of what {tasks.partition} has in remote storage",
            self.expiration_pool,
            is_due=is_due,
            work=lambda: self.remote_deletion.purge(led),
        )
        tasks.other.start()

    def delete(self, tasks: PartitionTasks) -> None:
        """The topic was deleted: what it has in remote storage goes."""
        partition = tasks.partition

        async def work() -> None:
            await self.remote_deletion.run(partition)
            self.gone[partition] = None
            while len(self.gone) > GONE_MAX:
                self.gone.popitem(last=False)
            # Not from within its own job, which is still running.
            self._timer.call_later_ms(0.0, lambda: self._on_gone(tasks))

        tasks.move(PartitionState.DELETING)
        tasks.led = None
        tasks.other = self.periodic(
            f"deletion of {partition}",
            self.expiration_pool,
            is_due=lambda: partition not in self.gone,
            work=work,
        )
        tasks.other.start()

    def periodic(
        self,
        name: str,
        pool: TaskPool,
        *,
        is_due: Callable[[], bool],
        work: Callable[[], Awaitable[float | None]],
        interval_ms: Callable[[], float] | None = None,
    ) -> PeriodicTask:
        """A task that backs off as the settings say; see `PeriodicTask`."""
        settings = self._settings()
        return PeriodicTask(
            name,
            timer=self._timer,
            pool=pool,
            backoff=Backoff(
                self._randomness,
                first_ms=settings.task_backoff_ms,
                max_ms=settings.task_backoff_max_ms,
                jitter=settings.task_jitter,
            ),
            interval_ms=interval_ms or (lambda: float(self._settings().task_interval_ms)),
            is_due=is_due,
            work=work,
            on_ended=self._on_ended,
        )
