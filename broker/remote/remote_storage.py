"""Remote storage of this broker: its parts, put together when the first topic needs them.

    Broker ── lead, follow, resign, on_reconfigured, on_deleted, on_settings ──> RemoteStorage
                                                                          │ first tiered partition,
                                                                          v or the metadata topic
        TierClient ──> tier process         TopicMetadataManager ──> __remote_log_metadata
             ^                                   ^
             ├── Reader <── ReplicaManager       │
             └── RemoteLogManager ───────────────┘

A broker that has remote storage switched on and no topic that uses it pays nothing: no process, no
internal topic, no import.

Source of the wiring: Kafka, BrokerServer.scala, ReplicaManager.scala (applyDelta).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from broker.remote.metadata_topic import REMOTE_LOG_METADATA
from config.tier import TierConfig
from storage.environment.alerts import Alerts
from storage.environment.environment import Environment
from tiered.deadline import CallDeadlines
from tiered.errors import RemoteStorageNotReadyError
from tiered.segment_metadata import TopicIdPartition
from tiered.tasks.tiered_partition import TieredPartition
from tiered.tier import Tier, TopicFacts

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.controller.images.cluster_image import TopicImage
    from broker.coordinator.peer_batches import PeerRequests
    from broker.remote.cluster_metadata_log import ClusterMetadataLog
    from broker.remote.deleted_topics import DeletedTopics
    from broker.remote.metadata_log import ReplicaMetadataLog
    from broker.replicas.partition import Partition
    from broker.replicas.replica_manager import ReplicaManager
    from storage.log.log import Log
    from storage.log.truncation import StateBelow
    from tiered.fetch.reader import Reader
    from tiered.maintenance.bucket_ownership import Claim
    from tiered.metadata.topic_based_manager import TopicMetadataManager
    from tiered.restore.metadata_rebuild import MetadataRebuild
    from tiered.tasks.follower import LeaderEndpoint, TierStateMachine
    from tiered.tasks.remote_log_manager import RemoteLogManager
    from tiered.tier import OpenTier

LOGGER = logging.getLogger(__name__)

SETTLE_CHECK_MS = 20.0
"""Between two checks while a caller waits for metadata, after a start or a new leader."""

SNAPSHOTS_DIRECTORY = "varve-remote-metadata"


class RemoteStorage:
    """See the module. Touched on the loop's thread only.

    Attributes:
        settings: The present ones.
        tier, metadata, reader, manager, rebuild: None until they are needed.
    """

    def __init__(
        self,
        settings: TierConfig,
        *,
        replicas: "ReplicaManager",
        controller: "Controller",
        environment: Environment,
        log_dir: str,
        node_id: int,
        checkpoint_log_starts: Callable[[], None],
        alerts: Alerts | None = None,
        open_tier: "OpenTier | None" = None,
    ) -> None:
        """Nothing is started.

        Args:
            settings: To begin with.
            replicas: Reads from here what is not local.
            controller: Topics, and their settings.
            environment: Of the broker; its disk holds the caches and the metadata's snapshots.
            log_dir: The first one: metadata snapshots lie there.
            node_id: Of this broker.
            checkpoint_log_starts: Writes all log starts to disk; blocks.
            alerts: Where losses are reported.
            open_tier: What moves remote bytes; None: as the settings say (`tiered.worker.factory`).
        """
        self.settings = settings
        self.tier: Tier | None = None
        self.metadata: TopicMetadataManager | None = None
        self.reader: Reader | None = None
        self.manager: RemoteLogManager | None = None
        self.rebuild: MetadataRebuild | None = None
        self._follower_state: TierStateMachine | None = None
        self._replicas = replicas
        self._controller = controller
        self._environment = environment
        self._clock = environment.clock
        self._timer = environment.timer
        self._log_dir = log_dir
        self._node_id = node_id
        self._checkpoint_log_starts = checkpoint_log_starts
        self._open_tier = open_tier
        self._alerts = Alerts() if alerts is None else alerts
        self._metadata_log: ReplicaMetadataLog | ClusterMetadataLog | None = None
        # Of a member of a cluster.
        self._peers: PeerRequests | None = None
        self._deleted_topics: DeletedTopics | None = None
        self._closed = False
        self._apply(settings)
        controller.topic_changes.may_be_remote = self._may_have

    # -- life ------------------------------------------------------------------------------------

    def join(self, peers: "PeerRequests | None") -> None:
        """Share bucket and metadata with other brokers, if there are any; before the first role."""
        assert self.manager is None
        self._peers = peers

    @property
    def location(self) -> str:
        """For log lines and the admin API: `s3://bucket/prefix` or `file:///directory`."""
        store = self.settings.store
        if store.backend == "s3":
            return f"s3://{store.bucket}/{store.key_prefix}"
        return f"file://{store.root}/{store.key_prefix}"

    def _open(self) -> "RemoteLogManager":
        """Put the parts together."""
        if self.manager is not None:
            return self.manager
        # Imported by the first topic that needs them: a start should not wait for them.
        from broker.remote.deleted_topics import DeletedTopics
        from tiered.fetch.reader import Reader
        from tiered.metadata.publisher import MetadataPublisher
        from tiered.metadata.snapshot_store import (
            BucketSnapshotStore,
            LocalSnapshotStore,
            SnapshotStore,
        )
        from tiered.metadata.topic_based_manager import TopicMetadataManager
        from tiered.restore.metadata_rebuild import MetadataRebuild
        from tiered.tasks.follower import TierStateMachine
        from tiered.tasks.remote_log_manager import RemoteLogManager

        settings, environment = self.settings, self._environment
        cluster_id = self._controller.image.cluster_id
        tier = self._tier_of(settings)
        snapshots: SnapshotStore
        if settings.tier_metadata_snapshots == "bucket":
            snapshots = BucketSnapshotStore(tier, cluster_id)
        else:
            snapshots = LocalSnapshotStore(
                environment.filesystem,
                f"{self._log_dir}/{SNAPSHOTS_DIRECTORY}",
                environment.run_blocking,
            )
        log = self._metadata_log = self._open_metadata_log()
        metadata = TopicMetadataManager(log, snapshots, environment)
        claim = self._make_claim(tier)
        reader = Reader(settings, tier, metadata, environment)
        manager = RemoteLogManager(
            metadata=metadata,
            tier=tier,
            claim=claim,
            environment=environment,
            broker_id=self._node_id,
            settings=self._present,
            is_deleted=lambda topic_id: topic_id in self._controller.image.deleted_topics,
            alerts=self._alerts,
        )
        self._deleted_topics = DeletedTopics(
            self._controller, metadata, manager, clock=self._clock, settings=self._present
        )
        self._follower_state = TierStateMachine(
            metadata=metadata,
            tier=tier,
            timer=self._timer,
            counters=manager.counters,
            call_timeout_ms=settings.store.call_timeout_ms,
        )
        manager.on_segment_deleted = lambda segment: reader.forget_segment(segment.id)
        self.tier, self.metadata, self.reader, self.manager = tier, metadata, reader, manager
        self.rebuild = MetadataRebuild(
            metadata=metadata,
            manager=manager,
            tier=tier,
            publisher=MetadataPublisher(metadata, environment, self._node_id),
            deadlines=CallDeadlines(environment.timer, settings.store.call_timeout_ms),
            is_deleted=lambda topic_id: topic_id in self._controller.image.deleted_topics,
            log_start_of=self._log_start_of,
        )
        metadata.start()
        reader.start()
        manager.start()
        self._replicas.remote.reader = reader
        self._check_leftovers()
        LOGGER.info(
            "remote storage open location=%s worker=%s", self.location, settings.tier_worker
        )
        return manager

    def _tier_of(self, settings: TierConfig) -> Tier:
        if self._open_tier is not None:
            return self._open_tier(settings, self._environment)
        from tiered.worker.factory import open_tier

        return open_tier(settings, timer=self._timer, clock=self._clock)

    def _open_metadata_log(self) -> "ReplicaMetadataLog | ClusterMetadataLog":
        if self._peers is None:
            from broker.remote.metadata_log import ReplicaMetadataLog

            partitions = self.settings.rlmm_config_remote_log_metadata_topic_num_partitions
            return ReplicaMetadataLog(
                self._replicas, self._controller, clock=self._clock, partitions=partitions
            )
        from broker.remote.cluster_metadata_log import ClusterMetadataLog
        from broker.remote.metadata_leaders import MetadataLeaders
        from broker.remote.metadata_writer import MetadataWriter

        controller, node_id, environment = self._controller, self._node_id, self._environment
        leaders = MetadataLeaders(self._peers, lambda: controller.image, node_id=node_id)
        writer = MetadataWriter(
            self._replicas,
            leaders,
            controller.producer_ids,
            node_id=node_id,
            environment=environment,
        )
        log = ClusterMetadataLog(
            self._replicas, controller, leaders, writer, node_id=node_id, environment=environment
        )
        controller.subscribe_now(log.on_image)
        return log

    def _make_claim(self, tier: Tier) -> "Claim":
        from broker.remote.claim_note import ClaimNote
        from broker.remote.incarnation_file import CLUSTER_FILE_NAME, FILE_NAME, IncarnationFile
        from tiered.maintenance.bucket_ownership import Claim
        from tiered.maintenance.cluster_claim import ClusterClaim, ClusterIncarnation

        environment = self._environment
        is_alone = self._peers is None
        disk = IncarnationFile(
            environment.filesystem,
            self._log_dir,
            environment.run_blocking,
            FILE_NAME if is_alone else CLUSTER_FILE_NAME,
        )
        return (Claim if is_alone else ClusterClaim)(
            tier=tier,
            environment=environment,
            cluster_id=self._controller.image.cluster_id,
            settings=self._present,
            memory=disk if is_alone else ClusterIncarnation(disk, ClaimNote(self._controller)),
            alerts=self._alerts,
        )

    def _present(self) -> TierConfig:
        return self.settings

    def _check_leftovers(self) -> None:
        """Find, now and at intervals, what has remote segments and no task here."""
        if self._closed or self._deleted_topics is None:
            return
        self._timer.call_later_ms(
            float(self.settings.remote_log_manager_task_interval_ms), self._check_leftovers
        )
        self._lead_leftovers()
        self._deleted_topics.check()

    def _may_have(self, topic: "TopicImage") -> bool:
        """Whether the metadata knows of a segment of a topic, or is not loaded yet."""
        if REMOTE_LOG_METADATA not in self._controller.image.topics:
            return False
        metadata = self.metadata
        return metadata is None or any(
            metadata.may_have(TopicIdPartition(topic.topic_id, topic.name, one.index))
            for one in topic.partitions
        )

    def _lead_leftovers(self) -> None:
        """Lead partitions that have remote segments though their settings do not say so."""
        assert self.metadata is not None
        assert self.manager is not None
        for id_partition in self.metadata.known():
            if self.manager.tasks_of(id_partition) is not None or id_partition in self.manager.gone:
                continue
            partition = self._replicas.leader_of(id_partition.topic, id_partition.partition)
            if partition is not None and partition.topic_id == id_partition.topic_id:
                self._lead(partition)

    async def stop(self) -> None:
        """End what is under way; the next start goes on with it."""
        self._closed = True
        self._replicas.remote.reader = None
        if self._deleted_topics is not None:
            await self._deleted_topics.stop()
        if self.manager is not None:
            await self.manager.stop()
        if self.reader is not None:
            await self.reader.close()
        if self.metadata is not None:
            await self.metadata.close()
        if self.tier is not None:
            await self.tier.close()

    # -- the broker's events ---------------------------------------------------------------------

    def lead(self, partition: "Partition", leader_epoch: int) -> None:
        """Copy and expire a partition's segments: this broker leads it from now on.

        Perhaps it has led it in an earlier epoch: what was begun in that ends, and changes nothing
        any more.
        """
        assert partition.leader_epoch == leader_epoch, partition.topic_partition
        if self._closed:
            return
        if partition.topic_partition.topic == REMOTE_LOG_METADATA:
            self._open()
            self._metadata_role(partition)
        elif self._concerns(partition):
            self._lead(partition)

    def follow(self, partition: "Partition") -> None:
        """Learn how far the leader has copied a partition: another broker leads it, or none.

        What was under way for a leadership ends at its next safe point, and changes nothing more.
        """
        if self._closed:
            return
        if partition.topic_partition.topic == REMOTE_LOG_METADATA:
            self._open()
            self._metadata_role(partition)
        elif self._concerns(partition):
            self._open().on_follower(self._tiered(partition))

    async def state_below(
        self,
        partition: TopicIdPartition,
        log: "Log",
        leader: "LeaderEndpoint",
        *,
        leader_epoch: int,
    ) -> "StateBelow":
        """What a follower has to know of records that its leader has in remote storage only.

        At most `remote.log.manager.follower.thread.pool.size` at a time are looked for.

        Args:
            partition: Followed here.
            log: Its log, which is not changed.
            leader: Is asked where its local log begins.
            leader_epoch: The present one.

        Raises:
            TieredError, OSError: To be tried again after a while.
        """
        if self._closed:
            raise RemoteStorageNotReadyError("the broker stops")
        manager = self._open()
        assert self._follower_state is not None
        if manager.tasks_of(partition) is None:
            # Its settings do not say so (any more, or yet); the leader's log does.
            followed = self._replicas.replica_of(partition.topic, partition.partition)
            if followed is not None and followed.topic_id == partition.topic_id:
                manager.on_follower(self._tiered(followed))
        find = self._follower_state.find
        found: asyncio.Future[StateBelow] = asyncio.get_running_loop().create_future()

        async def work() -> None:
            state = await find(partition, log, leader, leader_epoch=leader_epoch)
            if not found.done():
                found.set_result(state)

        def done(error: BaseException | None) -> None:
            if found.done():
                return
            if isinstance(error, asyncio.CancelledError):
                found.set_exception(RemoteStorageNotReadyError("the broker stops"))
            elif error is not None:
                found.set_exception(error)

        job = manager.follower_pool.submit(work, done)
        try:
            return await found
        finally:
            job.cancel()

    def resign(self, partition: "Partition") -> None:
        """Do nothing for a partition any more: it has no role here."""
        if self.manager is None:
            return
        if partition.topic_partition.topic == REMOTE_LOG_METADATA:
            self._metadata_role(partition)
        else:
            self.manager.on_stop(_id_partition(partition), delete_remote=False)

    def _metadata_role(self, partition: "Partition") -> None:
        """A partition of the metadata topic has another role here, or none."""
        log, index = self._metadata_log, partition.topic_partition.partition
        assert log is not None
        log.on_role(index)
        if self.manager is not None:
            self.manager.yield_deletions()

    def on_reconfigured(self, partition: "Partition") -> None:
        """The topic's settings have changed, or the topic itself."""
        if self._closed:
            return
        id_partition = _id_partition(partition)
        if self.manager is not None and self.manager.tasks_of(id_partition) is not None:
            self.manager.on_config_change(id_partition)
        elif not self._concerns(partition):
            return
        elif partition.is_leader:
            self._lead(partition)
        elif partition.following is not None:
            self._open().on_follower(self._tiered(partition))

    def is_settled(self, partition: "Partition") -> bool:
        """Whether it is known what remote storage has of a partition that is led here."""
        if not self._concerns(partition):
            return True
        return self.manager is not None and self.manager.has_role(_id_partition(partition))

    async def settled(self, partition: "Partition") -> None:
        """Wait for `is_settled`, as long as the partition is served here."""
        while not self.is_settled(partition) and not partition.gone:
            over = asyncio.Event()
            handle = self._timer.call_later_ms(SETTLE_CHECK_MS, over.set)
            try:
                await over.wait()
            finally:
                handle.cancel()

    def has_bucket(self, partition: "Partition") -> bool:
        """Whether the bucket may hold a history of a partition that is led here."""
        return self.manager is not None and self._concerns(partition)

    async def log_starts_raised(self, partitions: "Sequence[Partition]", limit_ms: float) -> None:
        """Return when deleted records stay deleted; see `broker.remote.deleted_records`."""
        assert self.manager is not None
        from broker.remote.deleted_records import make_log_starts_last

        await make_log_starts_last(
            [(_id_partition(partition), partition) for partition in partitions],
            manager=self.manager,
            settled=self.settled,
            checkpoint=lambda: self._environment.run_blocking(self._checkpoint_log_starts),
            timer=self._timer,
            limit_ms=limit_ms,
        )

    def on_deleted(self, partitions: Iterable["Partition"]) -> None:
        """Their topic was deleted: what they have in remote storage goes too."""
        for partition in partitions:
            id_partition = _id_partition(partition)
            known = self.manager is not None and self.manager.tasks_of(id_partition) is not None
            if known or self._concerns(partition):
                manager = self._open()
                assert self.metadata is not None
                # In a cluster it goes with the metadata partition, whose leader sees it through.
                is_ours = self._peers is None or self.metadata.leads(id_partition)
                manager.on_stop(id_partition, delete_remote=is_ours)
            if self.reader is not None:
                self.reader.forget_topic(id_partition.topic)

    def on_settings(self, settings: TierConfig) -> None:
        """Settings were changed at run time."""
        if settings == self.settings:
            return
        self.settings = settings
        self._apply(settings)
        if self.reader is not None:
            self.reader.update(settings)
        if self.manager is not None:
            self.manager.update()

    def _apply(self, settings: TierConfig) -> None:
        self._replicas.remote.fetch_max_wait_ms = float(settings.remote_fetch_max_wait_ms)
        self._replicas.remote.is_paused = settings.tier_fetch_paused

    # -- partitions ------------------------------------------------------------------------------

    @staticmethod
    def _concerns(partition: "Partition") -> bool:
        """Whether it has, or may have had, remote segments."""
        log = partition.log
        return bool(log.has_remote_part or log.config.remote_log_delete_on_disable)

    def _lead(self, partition: "Partition") -> None:
        self._open().on_leadership(self._tiered(partition))

    def _tiered(self, partition: "Partition") -> TieredPartition:
        return TieredPartition(
            partition=_id_partition(partition),
            log=partition.log,
            leader_epoch=partition.leader_epoch,
            facts=lambda: self._facts(partition.topic_partition.topic),
            copy_paused=lambda: bool(
                self.settings.tier_copy_paused or partition.log.config.tier_copy_paused
            ),
            on_log_start_moved=partition.wake_fetches,
            may_change=self._certainty(partition),
            is_truncating=lambda: partition.is_truncating,
            on_disk_failed=lambda error: self._replicas.disk_failed(partition, error),
        )

    def _certainty(self, partition: "Partition") -> Callable[[], bool]:
        """Whether it is led here for certain, in the epoch of now.

        By the lease alone: that followers fetched a moment ago says nothing of now, and what is
        removed from the bucket does not come back.
        """
        leader_epoch, clock = partition.leader_epoch, self._clock
        terms = self._replicas.terms

        def may_change() -> bool:
            return (
                partition.is_leader
                and partition.leader_epoch == leader_epoch
                and clock.monotonic_ms() <= terms.validity.until_ms
            )

        return may_change

    def _facts(self, topic: str) -> TopicFacts:
        image = self._controller.image
        found = image.topics.get(topic)
        return TopicFacts(
            partitions=0 if found is None else len(found.partitions),
            overrides={} if found is None else dict(found.overrides),
            cluster_id=image.cluster_id,
        )

    def _log_start_of(self, id_partition: TopicIdPartition) -> int | None:
        partition = self._replicas.replica_of(id_partition.topic, id_partition.partition)
        if partition is None or partition.topic_id != id_partition.topic_id:
            return None
        return partition.log.log_start_offset

    def sizes(self) -> Sequence[tuple[str, int, int]]:
        """(topic, partition, bytes in remote storage) of every led partition that has any."""
        if self.manager is None or self.metadata is None:
            return ()
        return [
            (id_partition.topic, id_partition.partition, self.metadata.size(id_partition))
            for id_partition in self.manager.led_partitions()
            if self.metadata.is_ready(id_partition)
        ]


def _id_partition(partition: "Partition") -> TopicIdPartition:
    return TopicIdPartition(partition.topic_id, *partition.topic_partition)
