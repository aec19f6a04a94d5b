"""The share-partitions this broker leads, and their members' sessions.

    ShareFetch ──> session ──> share-partition: created by the first request, then initialised
    ShareAcknowledge ────────┘     from the share coordinator
    connection closed, last epoch ──> the member's records are released; with a group's last
                                      session its share-partitions are dropped: the state stays

A share-partition that turns out to be out of date (another leader, a reset state, a deleted topic)
is fenced and dropped; the next request creates a new one.

Source: Kafka, SharePartitionManager.java, SharePartitionCache.java.
"""

import asyncio
import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from broker.controller.configs.share_group_config import (
    EARLIEST,
    LATEST,
    ShareGroupConfigs,
    duration_ms,
)
from broker.coordinator.persister import Done, SharePartitionKey, SharePersister
from broker.replicas.purgatory import Purgatory
from broker.runtime.errors import ApiError, code_of
from broker.share.delivery.acknowledgement_batches import Acknowledgement
from broker.share.delivery.sessions import SessionKey, ShareSessions
from broker.share.delivery.share_partition import (
    DeliveryLimits,
    SharePartition,
    SharePartitionState,
)
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from storage.environment.environment import Environment
from storage.errors import StorageError
from tiered.errors import TieredError

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.controller.images.cluster_image import ClusterImage
    from broker.replicas.leader_hints import LeaderHints
    from broker.replicas.partition import Partition
    from broker.replicas.replica_manager import ReplicaManager

logger = logging.getLogger(__name__)

DELAYED_SHARE_FETCH_MAX = 100_000

SHARE_PARTITIONS_MAX = 100_000
"""Most share-partitions in memory; further ones get COORDINATOR_NOT_AVAILABLE (retriable)."""

SHARE_VERSION = "share.version"

_FENCING = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.FENCED_STATE_EPOCH,
    }
)

Outcomes = Mapping[SharePartitionKey, ErrorCode]


class SharePartitions:
    """See the module. Touched on the loop's thread only."""

    def __init__(
        self,
        settings: BrokerConfig,
        environment: Environment,
        replica_manager: "ReplicaManager",
        controller: "Controller",
        persister: SharePersister,
        group_configs: ShareGroupConfigs,
    ) -> None:
        """Start without share-partitions and sessions.

        Args:
            settings: Of the broker.
            environment: Clock of `by_duration`; timer of locks and waiting fetches.
            replica_manager: For the logs.
            controller: For topics, and whether share groups are switched on.
            persister: The share coordinator.
            group_configs: Settings of groups.
        """
        self._clock = environment.clock
        self._timer = environment.timer
        self._replicas = replica_manager
        self._controller = controller
        self._node_id = settings.node_id
        self._persister = persister
        self._partitions: dict[SharePartitionKey, SharePartition] = {}
        self._by_group: dict[str, set[SharePartitionKey]] = {}
        self._lookups: set[asyncio.Task[None]] = set()
        self._limits = DeliveryLimits(
            settings.group_share_delivery_count_limit,
            settings.group_share_partition_max_record_locks,
        )
        self.group_configs = group_configs
        self.sessions = ShareSessions(settings.group_share_max_share_sessions)
        self.purgatory = Purgatory(
            "ShareFetch",
            environment.timer,
            capacity=DELAYED_SHARE_FETCH_MAX,
            addresses=replica_manager.parked_by_address,
        )
        controller.subscribe_now(self._on_image)

    def __len__(self) -> int:
        return len(self._partitions)

    async def stop(self) -> None:
        """Answer waiting requests with the available records, and drop all locks."""
        for share_partition in self._partitions.values():
            share_partition.watchers.expire()
        for key in list(self._partitions):
            self._forget(key)
        for task in self._lookups:
            task.cancel()
        await asyncio.gather(*self._lookups, return_exceptions=True)

    @property
    def is_enabled(self) -> bool:
        """Whether the cluster has share groups: `share.version` 1 or later."""
        return self._controller.image.features.get(SHARE_VERSION, 0) >= 1

    @property
    def leader_hints(self) -> "LeaderHints | None":
        """The leader of a partition that is led elsewhere; None: there is no other broker."""
        return self._replicas.leader_hints

    # -- which share-partitions ------------------------------------------------------------------

    def get(self, key: SharePartitionKey) -> SharePartition | None:
        """A share-partition in memory."""
        return self._partitions.get(key)

    def partition_of(self, key: SharePartitionKey) -> "Partition":
        """The partition whose records are shared.

        Raises:
            ApiError: UNKNOWN_TOPIC_ID, or why it is not here, or not for certain.
        """
        name = self._replicas.topic_name(key.topic_id.bytes)
        if name is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        partition = self._replicas.leader_of(name, key.partition)
        if partition is None:
            raise ApiError(self._replicas.missing_error(name, key.partition))
        if not partition.leads_for_certain:
            # Another broker may lead it by now, and have given out, or ended, what is free here.
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition

    def open(self, key: SharePartitionKey, failed: Done) -> SharePartition:
        """The share-partition, created if it is not in memory.

        Args:
            key: Of the share-partition.
            failed: Called if it cannot be initialised, perhaps before this returns; requests that
                wait for it are woken either way.

        Raises:
            ApiError: The partition is not here, or there are too many.
        """
        partition = self.partition_of(key)
        known = self._partitions.get(key)
        if known is not None and known.leader_epoch == partition.leader_epoch:
            return known
        if known is not None:
            self._forget(key)
        if len(self._partitions) >= SHARE_PARTITIONS_MAX:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        share_partition = SharePartition(
            key,
            leader_epoch=partition.leader_epoch,
            limits=self._limits,
            lock_ms=lambda: self.group_configs(key.group_id).record_lock_duration_ms,
            choose_offset=partial(self._choose_offset, key),
            persister=self._persister,
            timer=self._timer,
            waker=self._replicas.waker,
        )
        self._partitions[key] = share_partition
        self._by_group.setdefault(key.group_id, set()).add(key)

        def initialized(code: ErrorCode) -> None:
            if code is not ErrorCode.NONE:
                logger.debug("share-partition not initialized key=%s error=%s", key, code.name)
                self._forget(key, share_partition)
                failed(code)
            share_partition.watchers.check()

        share_partition.initialize(initialized)
        return share_partition

    def _forget(self, key: SharePartitionKey, only: SharePartition | None = None) -> None:
        share_partition = self._partitions.get(key)
        if share_partition is None or (only is not None and only is not share_partition):
            return
        del self._partitions[key]
        keys = self._by_group[key.group_id]
        keys.discard(key)
        if not keys:
            del self._by_group[key.group_id]
        share_partition.fence()

    def _on_image(self, old: "ClusterImage", new: "ClusterImage") -> None:
        """Drop what is in flight of partitions that this broker does not lead any more.

        In the turn of the image: a new epoch, too, is another leader's, since what was acquired in
        the old one is not in the log.
        """
        if old.topics is new.topics:
            return
        for key, share_partition in list(self._partitions.items()):
            topic = new.topics_by_id.get(key.topic_id)
            partition = None if topic is None else new.partition(topic.name, key.partition)
            if (
                partition is None
                or partition.leader != self._node_id
                or partition.leader_epoch > share_partition.leader_epoch
            ):
                self._forget(key)

    def _choose_offset(
        self, key: SharePartitionKey, done: Callable[[ErrorCode, int], None]
    ) -> None:
        try:
            partition = self.partition_of(key)
        except ApiError as error:
            done(error.code, -1)
            return
        reset = self.group_configs(key.group_id).auto_offset_reset
        if reset == EARLIEST:
            done(ErrorCode.NONE, partition.log.log_start_offset)
        elif reset == LATEST:
            done(ErrorCode.NONE, partition.log.high_watermark)
        else:
            task = asyncio.get_running_loop().create_task(
                self._find_start_offset(partition, reset, done)
            )
            self._lookups.add(task)
            task.add_done_callback(self._lookups.discard)

    async def _find_start_offset(
        self, partition: "Partition", reset: str, done: Callable[[ErrorCode, int], None]
    ) -> None:
        end_offset = partition.log.high_watermark
        try:
            found = await self._replicas.remote.find_timestamp(
                partition, self._clock.now_ms() - duration_ms(reset), end_offset, ("", "")
            )
        except (StorageError, TieredError, ApiError, ValueError) as error:
            done(code_of(error), -1)
            return
        is_there = found is not None and found.offset < end_offset
        done(ErrorCode.NONE, found.offset if found is not None and is_there else end_offset)

    # -- acknowledgements ------------------------------------------------------------------------

    def acknowledge(
        self,
        member_id: str,
        acknowledgements: Mapping[SharePartitionKey, Sequence[Acknowledgement]],
        done: Callable[[Outcomes], None],
    ) -> None:
        """Apply a member's acknowledgements; `done` gets an error code for each share-partition."""
        outcomes: dict[SharePartitionKey, ErrorCode] = {}
        left = len(acknowledgements)

        def settled(key: SharePartitionKey, share: SharePartition | None, code: ErrorCode) -> None:
            nonlocal left
            if code in _FENCING and share is not None:
                self._forget(key, share)
            outcomes[key] = code
            left -= 1
            if not left:
                done(outcomes)

        if not left:
            done(outcomes)
        for key, batches in acknowledgements.items():
            share_partition = self._partitions.get(key)
            if share_partition is None or not share_partition.is_active:
                is_known = key.topic_id in self._controller.image.topics_by_id
                settled(
                    key,
                    None,
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    if is_known
                    else ErrorCode.UNKNOWN_TOPIC_ID,
                )
            else:
                share_partition.acknowledge(
                    member_id, batches, partial(settled, key, share_partition)
                )

    # -- sessions that end -----------------------------------------------------------------------

    def release_session(self, session_key: SessionKey) -> None:
        """Release the member's records: its session has ended.

        No caller waits for the write: after a crash acquired records are available as well.
        """
        session = self.sessions.remove(session_key)
        if session is None:
            return
        group_id, member_id = session_key
        for topic_id, index in session.partitions:
            key = SharePartitionKey(group_id, topic_id, index)
            share_partition = self._partitions.get(key)
            if share_partition is not None and share_partition.is_active:
                share_partition.release(member_id, partial(self._released, key, share_partition))

    def _released(
        self, key: SharePartitionKey, share_partition: SharePartition, code: ErrorCode
    ) -> None:
        if code in _FENCING:
            self._forget(key, share_partition)

    def on_connection_closed(self, connection: Hashable) -> None:
        """End the sessions that were opened on the connection."""
        for session_key in self.sessions.of_connection(connection):
            self.release_session(session_key)
            self.forget_if_unread(session_key.group_id)

    def forget_if_unread(self, group_id: str) -> None:
        """Drop the group's share-partitions if it has no session; their state is in the log."""
        if self.sessions.members_of(group_id):
            return
        for key in list(self._by_group.get(group_id, ())):
            share_partition = self._partitions[key]
            if share_partition.state is not SharePartitionState.INITIALIZING:
                self._forget(key)
