"""RemoteLogManager: the remote log of all partitions of this broker, and their tasks.

    broker (elections, topics, settings)
        │ on_leadership, on_follower, on_stop, on_config_change, update
        v
    RemoteLogManager ──per partition──> PartitionTasks (`tiered.tasks.partition_tasks`)
        │                                   what runs in which role: `tiered.tasks.partition_roles`
    ├── BucketChores: garbage, verification, ownership
    └── HistoryKeeper: what the bucket says of each partition led here

An idle partition costs two timers per task interval and no asyncio task: whether there is
anything to do is looked up on the loop, and only then a job goes to a pool. Partitions that change
their role are advanced together by one timer, a few at a time, so that thousands of them do not
hold up the loop. Nothing waits for one partition's metadata: what is not ready is checked again.

Source: Kafka, RemoteLogManager.java (onLeadershipChange, stopPartitions).
"""

import logging
from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Iterator
from typing import Final
from uuid import UUID

from config.tier import TierConfig
from storage.environment.alerts import AlertKind, Alerts
from storage.environment.environment import Environment
from storage.environment.timer import TimerHandle
from storage.errors import StorageError
from tiered.deadline import CallDeadlines, Deadline
from tiered.errors import RemoteStorageError, TieredError
from tiered.maintenance.bucket_ownership import Claim
from tiered.maintenance.bucket_trouble import BucketTrouble
from tiered.maintenance.held_back import HeldBackPartitions
from tiered.maintenance.scrub_report import ScrubReport
from tiered.metadata.publisher import MetadataPublisher
from tiered.metadata.remote_log_metadata_manager import RemoteLogMetadataManager
from tiered.segment_metadata import RemoteLogSegmentMetadata, TopicIdPartition
from tiered.tasks.bucket_chores import BucketChores
from tiered.tasks.copier import Copier
from tiered.tasks.copy_quota import CopyQuota
from tiered.tasks.expirer import Expirer
from tiered.tasks.history_keeper import HistoryKeeper
from tiered.tasks.history_writer import HistoryWriter
from tiered.tasks.led_partition import LedPartition
from tiered.tasks.partition_deletion import RemoteDeletion
from tiered.tasks.partition_gauges import PartitionGauges, gauges_of
from tiered.tasks.partition_roles import PartitionRoles
from tiered.tasks.partition_tasks import PartitionState, PartitionTasks
from tiered.tasks.periodic import PeriodicTasks
from tiered.tasks.segment_copy import SegmentCopy
from tiered.tasks.segment_deletion import SegmentDeletion
from tiered.tasks.skip import SkippedSegment, blocked_segment, skip_blocked
from tiered.tasks.task_counters import TaskCounters
from tiered.tasks.task_pool import TaskPool
from tiered.tasks.tiered_partition import TieredPartition
from tiered.tasks.unfinished_copies import UnfinishedCopies
from tiered.tier import Tier

_log = logging.getLogger(__name__)

TICK_MS: Final = 100.0
"""Between two checks of partitions that wait: for their metadata, or the end of a job."""

ADVANCES_PER_TICK: Final = 200
"""Partitions that begin a role at a time; each may read an index or two."""

WORK_PER_TICK_MS: Final = 5.0
"""No further partition after so long: one with 10,000 segments takes that time."""

RELEASE_DEADLINE_MS: Final = 2_000
"""For two small objects when the broker stops."""

HISTORY_DEADLINE_MS: Final = 3_000
"""For the histories that have changed since they were written, when the broker stops."""

STOP_DEADLINE_MS: Final = 10_000
"""For cancelled jobs to end when the broker stops."""


class RemoteLogManager:
    """See the module. Touched on the loop's thread only; none of the `on_...` raises.

    Attributes:
        counters: Per topic.
        copier_pool, expiration_pool, follower_pool, scrubber_pool: For their gauges. The follower
            pool is for rebuilding followers (`tiered.tasks.follower`).
        claim, scrubber, verifier, history: See there, and `tiered.tasks.bucket_chores`.
        on_segment_deleted: Called when the deletion of a segment has begun: caches forget it.
        gone: Partitions whose deletion was finished here, newest last.
        held_back: Partitions that do not begin, as their metadata is lost, and why.
    """

    def __init__(
        self,
        *,
        metadata: RemoteLogMetadataManager,
        tier: Tier,
        claim: Claim,
        environment: Environment,
        broker_id: int,
        settings: Callable[[], TierConfig],
        is_deleted: Callable[[UUID], bool] = lambda _topic_id: False,
        alerts: Alerts | None = None,
    ) -> None:
        """Nothing runs before `start`.

        Args:
            metadata: Of all partitions; started and stopped by its owner.
            tier: The object store's calls; closed by its owner.
            claim: This broker's, on the bucket.
            environment: Of the broker; its disk holds the logs.
            broker_id: Of this broker.
            settings: The present ones.
            is_deleted: Whether a topic was deleted here, by its id, and may have left objects.
            alerts: For what is lost.
        """
        self.counters = TaskCounters()
        self.claim = claim
        self.on_segment_deleted: Callable[[RemoteLogSegmentMetadata], None] = lambda _segment: None
        self._settings = settings
        self._metadata = metadata
        self._environment = environment
        self._clock = environment.clock
        self._timer = environment.timer
        self._alerts = Alerts() if alerts is None else alerts
        self._partitions: dict[TopicIdPartition, PartitionTasks] = {}
        # Those in STARTING or STOPPING, or whose settings have changed.
        self._moving: OrderedDict[TopicIdPartition, None] = OrderedDict()
        self._tick_handle: TimerHandle | None = None
        self._look_handle: TimerHandle | None = None
        self._is_started = False
        self._held = HeldBackPartitions(metadata, self._alerts)
        self.held_back = self._held.reasons

        deadlines = CallDeadlines(environment.timer, settings().store.call_timeout_ms)
        publisher = MetadataPublisher(metadata, environment, broker_id)
        self.history = HistoryKeeper(
            writer=HistoryWriter(
                metadata=metadata,
                tier=tier,
                claim=claim,
                deadlines=deadlines,
                environment=environment,
            ),
            metadata=metadata,
            environment=environment,
            settings=settings,
        )
        trouble = BucketTrouble(environment.clock, self._alerts)
        self._deletion = SegmentDeletion(
            metadata=metadata,
            publisher=publisher,
            tier=tier,
            deadlines=deadlines,
            counters=self.counters,
            require=claim.require,
            require_bucket=claim.require_bucket_now,
            without=self.history.without,
            trouble=trouble,
            on_deleted=self._forget_segment,
        )
        self._copier = Copier(
            metadata=metadata,
            copy=SegmentCopy(
                metadata=metadata,
                publisher=publisher,
                tier=tier,
                deadlines=deadlines,
                deletion=self._deletion,
                environment=environment,
                settings=settings,
                counters=self.counters,
                claim=claim,
            ),
            deletion=self._deletion,
            deadlines=deadlines,
            environment=environment,
            settings=settings,
            counters=self.counters,
            alerts=self._alerts,
            trouble=trouble,
        )
        tasks = PeriodicTasks(environment, settings, on_ended=lambda: self._arm_tick(0.0))
        self._roles = PartitionRoles(
            metadata=metadata,
            tasks=tasks,
            copier=self._copier,
            expirer=Expirer(
                metadata=metadata,
                deletion=self._deletion,
                unfinished=UnfinishedCopies(
                    metadata=metadata,
                    publisher=publisher,
                    tier=tier,
                    deadlines=deadlines,
                    deletion=self._deletion,
                    counters=self.counters,
                    require_bucket=claim.require_bucket_now,
                    clock=environment.clock,
                ),
                clock=environment.clock,
                in_flight=self._copier.copy.in_flight,
                claim=claim,
            ),
            deletion=RemoteDeletion(
                metadata=metadata,
                publisher=publisher,
                tier=tier,
                deadlines=deadlines,
                deletion=self._deletion,
                claim=claim,
                history=self.history.writer,
                trouble=trouble,
            ),
            settings=settings(),
            alerts=self._alerts,
            # Not within its own job, which is still running.
            on_gone=lambda gone: self._call_soon(lambda: self._release(gone)),
        )
        self.copier_pool = self._roles.copier_pool
        self.expiration_pool = self._roles.expiration_pool
        self.follower_pool = self._roles.follower_pool
        self.gone = self._roles.gone
        self._chores = BucketChores(
            metadata=metadata,
            tier=tier,
            claim=claim,
            environment=environment,
            settings=settings,
            tasks=tasks,
            copy=self._copier.copy,
            is_deleted=lambda one: one in self.gone or is_deleted(one.topic_id),
            alerts=self._alerts,
            trouble=trouble,
        )
        claim.on_found_again = self._on_claim_found_again
        self.scrubber_pool = self._chores.pool
        self.scrubber = self._chores.scrubber
        self.verifier = self._chores.verifier

    def _on_claim_found_again(self) -> None:
        self.history.doubt()
        self._chores.doubt()

    def _call_soon(self, call: Callable[[], None]) -> None:
        self._timer.call_later_ms(0.0, call)

    # -- life --------------------------------------------------------------------------------

    def start(self) -> None:
        """Start, also the tasks of partitions that were given before."""
        assert not self._is_started
        self._is_started = True
        self._look_for_work()
        self._arm_tick(0.0)
        self._chores.start()
        self.history.start()

    async def stop(self) -> None:
        """Cancel all jobs and wait for their end; the next start finds what is left behind."""
        self._is_started = False
        for handle in (self._tick_handle, self._look_handle):
            if handle is not None:
                handle.cancel()
        self._chores.stop()
        for tasks in self._partitions.values():
            tasks.retire()
        try:
            async with Deadline(self._timer, STOP_DEADLINE_MS, "end of the remote log's tasks"):
                for pool in self._pools():
                    await pool.close()
        except TieredError as error:
            # The next start waits a little before it removes anything.
            _log.warning("%s", error)
        try:
            await self.history.flush(HISTORY_DEADLINE_MS)
            async with Deadline(self._timer, RELEASE_DEADLINE_MS, "giving the claim back"):
                await self.verifier.save()
                await self.claim.release()
        except TieredError as error:
            # The next start waits a little before it removes anything.
            _log.warning("%s", error)

    def _pools(self) -> tuple[TaskPool, ...]:
        return (self.copier_pool, self.expiration_pool, self.follower_pool, self.scrubber_pool)

    def update(self) -> None:
        """New settings: pools, quotas and switches at once, intervals from the next round on."""
        self._roles.resize(self._settings())
        self.history.update()
        for tasks in self._partitions.values():
            if tasks.copy is not None:
                tasks.copy.kick()

    # -- the broker's calls ------------------------------------------------------------------

    def on_leadership(self, tiered: TieredPartition) -> None:
        """This broker leads the partition from now on (again, perhaps in a later epoch).

        Also for a partition whose remote storage was switched off with
        `remote.log.delete.on.disable`: what it has there is removed.
        """
        self._assume_role(tiered, is_leader=True)

    def on_follower(self, tiered: TieredPartition) -> None:
        """This broker follows: it only learns how far the leader has copied."""
        self._assume_role(tiered, is_leader=False)

    def _assume_role(self, tiered: TieredPartition, *, is_leader: bool) -> None:
        partition = tiered.partition
        tasks = self._partitions.get(partition)
        if tasks is None:
            tasks = self._partitions[partition] = PartitionTasks(partition)
        elif tasks.delete_remote:
            _log.error("%s: remote log is being deleted, its tasks are not started", partition)
            return
        before = tasks.led if tasks.is_leader else None
        tasks.retire()
        self.history.drop(partition)
        self._alerts.clear(AlertKind.TIER_LEFT_BEHIND, str(partition))
        tasks.move(PartitionState.STARTING)
        config = tiered.log.config
        wanted = config.remote_log_delete_on_disable and not config.remote_storage_enable
        tasks.led = LedPartition(tiered, purge_wanted=wanted)
        tasks.is_leader = is_leader
        self._metadata.assign([partition])
        if is_leader and (before is None or before.tiered.leader_epoch != tiered.leader_epoch):
            # What the leader before has published last may not have been read here yet.
            self._metadata.refresh(partition)
        self._set_moving(partition)

    def on_stop(self, partition: TopicIdPartition, *, delete_remote: bool) -> None:
        """This broker hosts the partition no more.

        Args:
            partition: Which; it need not be known here if `delete_remote`.
            delete_remote: The topic was deleted: what it has in remote storage is removed, again if
                that was done before. Goes on after a restart.
        """
        tasks = self._partitions.get(partition)
        if tasks is None:
            if not delete_remote:
                return
            tasks = self._partitions[partition] = PartitionTasks(partition)
            self._metadata.assign([partition])
            # It may have been deleted already: there is something of it again.
            self.gone.pop(partition, None)
        elif tasks.state is PartitionState.DELETING:
            return
        tasks.delete_remote |= delete_remote
        self._held.admit(partition)
        tasks.retire()
        self.history.drop(partition)
        if tasks.state is not PartitionState.STOPPING:
            tasks.move(PartitionState.STOPPING)
        self._set_moving(partition)

    def yield_deletions(self) -> None:
        """Leave deletions to the brokers that lead their metadata partitions now."""
        for partition, tasks in list(self._partitions.items()):
            if not tasks.delete_remote or self._metadata.leads(partition):
                continue
            tasks.delete_remote = False
            tasks.retire()
            if tasks.state is PartitionState.DELETING:
                tasks.move(PartitionState.STOPPING)
            self._set_moving(partition)

    def on_config_change(self, partition: TopicIdPartition) -> None:
        """The topic's settings, or its pause, have changed (the log has the new ones already)."""
        tasks = self._partitions.get(partition)
        if tasks is None or tasks.led is None:
            return
        purges = tasks.state is PartitionState.PURGING
        leads = tasks.state is PartitionState.LEADING
        if (leads or purges) and tasks.led.tiered.log.remote_storage is purges:
            # It was switched on or off.
            self._assume_role(tasks.led.tiered, is_leader=True)
            return
        if tasks.copy is not None and not tasks.led.tiered.log.copies_to_remote:
            # Not to be finished first, as in Kafka: its segment may be the reason.
            tasks.copy.interrupt()
        wants = purges and tasks.led.tiered.log.config.remote_log_delete_on_disable
        if wants and not tasks.led.purge_wanted:
            tasks.led.purge_wanted = True
            self.history.keep(tasks.led)
        self.history.touch(partition)
        tasks.led.stopped_copying = ""
        self._copier.unblock(tasks.led)
        # Not now: a change of the broker's settings concerns all partitions at once.
        self._set_moving(partition)

    async def skip_blocked(
        self, partition: TopicIdPartition, start_offset: int | None
    ) -> SkippedSegment:
        """Skip the corrupt segment that copying stops before; see `tiered.tasks.skip`.

        Args:
            partition: Led here.
            start_offset: Of the segment; None: only return which it is.

        Raises:
            RemoteStorageError: There is none, it is another one, or it is being read again.
            StorageError: The disk refused.
        """
        tasks = self._partitions.get(partition)
        if tasks is None or tasks.led is None or tasks.copy is None:
            raise RemoteStorageError(f"{partition} is not led by this broker")
        if start_offset is None:
            return blocked_segment(tasks.led)[1]
        if tasks.copy.is_busy:
            raise RemoteStorageError(f"{partition}: a copy is under way; try again in a moment")
        # Nothing must begin to read the segment while it is replaced.
        led, copy, stopped = tasks.led, tasks.copy, tasks.led.stopped_copying
        led.stopped_copying = "a segment is being skipped"
        try:
            skipped = await skip_blocked(led, start_offset, self._environment)
        finally:
            led.stopped_copying = stopped
        self._alerts.clear(AlertKind.TIER_COPY_BLOCKED, str(partition))
        copy.kick()
        return skipped

    # -- what there is -----------------------------------------------------------------------

    def led_partitions(self) -> Iterator[TopicIdPartition]:
        """Partitions that are led here and whose tasks have begun."""
        for partition, tasks in self._partitions.items():
            if tasks.state is PartitionState.LEADING:
                yield partition

    def gauges(self) -> Iterator[PartitionGauges]:
        """Of all led partitions; walks over each one's segments."""
        for tasks in self._partitions.values():
            if tasks.led is not None and tasks.state is PartitionState.LEADING:
                yield gauges_of(tasks.led, self._metadata)

    def tasks_of(self, partition: TopicIdPartition) -> PartitionTasks | None:
        """For the admin API: state, blocked segment, last errors. Not to be changed."""
        return self._partitions.get(partition)

    def has_role(self, partition: TopicIdPartition) -> bool:
        """Whether its role has begun: its log knows the highest remote offset.

        It may be a little behind while the outcome of a copy is not known.
        """
        tasks = self._partitions.get(partition)
        return tasks is not None and tasks.state is not PartitionState.STARTING

    def partition_states(self) -> Counter[PartitionState]:
        """How many partitions are in each state."""
        return Counter(tasks.state for tasks in self._partitions.values())

    @property
    def copies_in_flight(self) -> int:
        """Copies under way."""
        return len(self._copier.copy.in_flight)

    @property
    def stalled_copies(self) -> int:
        """Copies that have moved nothing for `tier.stalled.copy.ms`."""
        return self._copier.copy.watch.stalled

    @property
    def stalls(self) -> int:
        """Times a copy became stalled."""
        return self._copier.copy.watch.stalls

    @property
    def copy_quota(self) -> CopyQuota:
        """For its throttle times."""
        return self._copier.quota

    @property
    def doubtful_removals(self) -> int:
        """Removals that were begun and are to be tried again."""
        return self._deletion.doubtful

    # -- from one state to the next ----------------------------------------------------------

    def _set_moving(self, partition: TopicIdPartition) -> None:
        self._moving[partition] = None
        self._arm_tick(0.0)

    def _arm_tick(self, delay_ms: float) -> None:
        if not self._is_started:
            return
        if self._tick_handle is not None:
            self._tick_handle.cancel()
        self._tick_handle = self._timer.call_later_ms(delay_ms, self._tick)

    def _tick(self) -> None:
        count = len(self._moving)
        if count == 0:
            return
        self._arm_tick(TICK_MS if count <= ADVANCES_PER_TICK else 0.0)
        until_ms = self._clock.monotonic_ms() + WORK_PER_TICK_MS
        for _ in range(min(count, ADVANCES_PER_TICK)):
            partition, _ = self._moving.popitem(last=False)
            tasks = self._partitions.get(partition)
            if tasks is not None and not self._advance(tasks):
                self._moving[partition] = None
            if self._clock.monotonic_ms() >= until_ms:
                self._arm_tick(0.0)
                break

    def _advance(self, tasks: PartitionTasks) -> bool:
        """Whether it need not be checked again."""
        if not tasks.is_quiet or self.history.is_busy(tasks.partition):
            return False
        if tasks.state is PartitionState.STARTING:
            return self._begin_role(tasks)
        if tasks.state is PartitionState.STOPPING:
            if tasks.delete_remote:
                self._roles.delete(tasks)
            else:
                self._release(tasks)
        else:
            # Its settings have changed.
            for task in tasks.tasks():
                task.kick()
        return True

    def _begin_role(self, tasks: PartitionTasks) -> bool:
        led = tasks.led
        assert led is not None
        if not self._metadata.is_ready(tasks.partition):
            return False
        if not tasks.is_leader:
            tasks.move(PartitionState.FOLLOWING)
            self._roles.follow(tasks, led)
        elif not led.tiered.log.remote_storage:
            tasks.move(PartitionState.PURGING)
            # It may have been said while the metadata was being read.
            led.purge_wanted = (
                led.purge_wanted or led.tiered.log.config.remote_log_delete_on_disable
            )
            unfinished = self._metadata.known_of(tasks.partition).unfinished()
            if led.purge_wanted or unfinished:
                self.history.keep(led)
            # Else its settings may be what was lost: the object says what there is, and from where.
            self._roles.purge(tasks, led)
        else:
            try:
                doubt = self._held.doubt(tasks.partition, led.tiered.log)
                if doubt:
                    # Not checked at every tick: an operator has to act first.
                    self._held.hold(tasks.partition, doubt)
                    return True
                led.settle(self._metadata, self._deletion, fresh=True)
            except (TieredError, StorageError) as error:
                _log.warning("%s: remote log tasks cannot start yet: %s", tasks.partition, error)
                return False
            self._held.admit(tasks.partition)
            tasks.move(PartitionState.LEADING)
            self.history.keep(led)
            self._roles.lead(tasks, led)
        return True

    # -- partitions whose metadata is lost ---------------------------------------------------

    def check_held_back(self) -> None:
        """Check partitions that are held back again, as what was lost may be back."""
        for partition in list(self.held_back):
            tasks = self._partitions.get(partition)
            if tasks is not None and not self._advance(tasks):
                self._set_moving(partition)

    def accept_losses(self) -> None:
        """Partitions that are held back begin where they have records; for `check_held_back`."""
        self._held.accept_losses()

    @property
    def in_flight(self) -> Container[UUID]:
        """Ids of the copies under way."""
        return self._copier.copy.in_flight

    def _release(self, tasks: PartitionTasks) -> None:
        """Nothing is left to do for it."""
        partition = tasks.partition
        self._alerts.clear(AlertKind.TIER_COPY_BLOCKED, str(partition))
        self._held.admit(partition)
        self._alerts.clear(AlertKind.TIER_LEFT_BEHIND, str(partition))
        tasks.retire()
        tasks.move(PartitionState.STOPPED)
        del self._partitions[partition]
        self._deletion.forget(partition)
        self._metadata.release([partition])
        if all(other.topic != partition.topic for other in self._partitions):
            self.counters.forget(partition.topic)

    # -- at intervals -----------------------------------------------------------------------

    def _look_for_work(self) -> None:
        """Resume deletions that a restart, or another broker's end, has left."""
        self._look_handle = self._timer.call_later_ms(
            self._settings().remote_log_manager_task_interval_ms, self._look_for_work
        )
        self._held.report_losses()
        self.check_held_back()
        for deletion in self._metadata.deletions():
            if deletion.partition not in self._partitions:
                self.on_stop(deletion.partition, delete_remote=True)

    async def collect_garbage(self, *, dry_run: bool = False) -> ScrubReport:
        """See `BucketChores.collect_garbage`."""
        return await self._chores.collect_garbage(dry_run=dry_run)

    def _forget_segment(self, segment: RemoteLogSegmentMetadata) -> None:
        self.verifier.forget(segment)
        self.on_segment_deleted(segment)
