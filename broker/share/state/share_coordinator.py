"""The share coordinator: it stores the state of share-partitions in `__share_group_state`.

A share-partition belongs to one partition of the topic, by the hash of `group:topic id:partition`;
its leader coordinates it. The `CoordinatorRuntime` loads and unloads the shards.

Callers in this process (`SharePersister`) wait while a shard loads, or the topic is created on
their behalf; network clients get a retriable error.

Memory changes when records are appended (`shard`), so answers out of memory alone wait until all of
it is committed: a leader that was given a state must not find it gone with the next coordinator.

Two epochs fence: the state epoch grows with each initialisation, the leader epoch is that of the
partition whose records are shared; a caller with a lower one than the last is fenced.

Source: Kafka, ShareCoordinatorService.java, ShareCoordinatorShard.java, PersisterStateManager.java.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from broker.controller.images.topic_names import SHARE_GROUP_STATE
from broker.coordinator.elected_appender import ElectedAppender
from broker.coordinator.outcome import Done
from broker.coordinator.persister import (
    NO_EPOCH,
    UNINITIALIZED_OFFSET,
    UNKNOWN_COUNT,
    SharePartitionKey,
    ShareState,
    ShareSummary,
    StateDone,
    SummaryDone,
)
from broker.coordinator.runtime import CoordinatorRuntime, CoordinatorTopic, OnFailed
from broker.coordinator.shard_log import ShardLog
from broker.coordinator.stats import LoadStats
from broker.coordinator.topic_coordinator import TopicCoordinator
from broker.coordinator.upkeep import Upkeep
from broker.share.state.shard import RECORDS_PER_WRITE, SHARE_PARTITIONS_MAX, ShareShard
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from protocol.internal.share_state import StateBatch
from storage.environment.alerts import Alerts
from storage.environment.environment import Environment
from storage.errors import StorageError
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.replicas.replica_manager import ReplicaManager

logger = logging.getLogger(__name__)

BATCHES_PER_WRITE = 10_000
"""State batches of cold states that are written together: 200 KB."""


class ShareCoordinator(TopicCoordinator[ShareShard]):
    """Coordinates the share-partitions whose partition of the topic this broker leads.

    All methods run on the event loop and none blocks. Implements `persister.SharePersister`.
    `stats` counts loads.
    """

    def __init__(
        self,
        settings: BrokerConfig,
        environment: Environment,
        replica_manager: "ReplicaManager",
        controller: "Controller",
        alerts: Alerts | None = None,
    ) -> None:
        self._settings = settings
        self._environment = environment
        self._clock = environment.clock
        self._replica_manager = replica_manager
        self._controller = controller
        self._upkeep = Upkeep(environment.timer)
        self.stats = LoadStats()
        super().__init__(
            CoordinatorRuntime(
                CoordinatorTopic(
                    SHARE_GROUP_STATE,
                    "share states",
                    settings.share_coordinator_state_topic_num_partitions,
                    settings.share_coordinator_load_buffer_size,
                ),
                self._build_shard,
                timeout_ms=settings.share_coordinator_write_timeout_ms,
                environment=environment,
                replicas=replica_manager,
                controller=controller,
                stats=self.stats,
                alerts=alerts,
            )
        )

    # -- life ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to serve; shards come with `on_elected`."""
        await self._runtime.start()
        settings = self._settings
        self._upkeep.every(
            settings.share_coordinator_state_topic_prune_interval_ms, "prune", self._prune
        )
        self._upkeep.every(
            settings.share_coordinator_cold_partition_snapshot_interval_ms,
            "snapshots of cold share-partitions",
            self._snapshot_cold,
        )

    async def stop(self) -> None:
        """Stop all timers and tasks, and refuse all deferred calls."""
        await self._upkeep.stop()
        await self._runtime.stop()

    @property
    def state_count(self) -> int:
        """Share-partitions with a state here."""
        return sum(len(shard.states) for shard in self._runtime.shards())

    def _build_shard(
        self, topic_partition: TopicPartition, leader_epoch: int, on_failed: OnFailed
    ) -> ShareShard:
        settings = self._settings
        log = ShardLog(
            topic_partition,
            appender=ElectedAppender(
                self._replica_manager,
                leader_epoch,
                timeout_ms=settings.share_coordinator_write_timeout_ms,
            ),
            environment=self._environment,
            timeout_ms=settings.share_coordinator_write_timeout_ms,
            on_failed=on_failed,
        )
        return ShareShard(
            log,
            records_per_snapshot=settings.share_coordinator_snapshot_update_records_per_snapshot,
        )

    # -- partitions ------------------------------------------------------------------------------

    def _run(
        self,
        key: SharePartitionKey,
        work: Callable[[ShareShard], None],
        refuse: Callable[[ErrorCode], None],
        *,
        wait: bool,
    ) -> None:
        """Call `work` with the key's shard, now or, with `wait`, when it has been loaded."""
        if not key.group_id or key.partition < 0:
            refuse(ErrorCode.INVALID_REQUEST)
        elif wait:
            self._runtime.when_active(key.coordinator_key(), work, refuse)
        else:
            shard = self._runtime.find(key.coordinator_key())
            if isinstance(shard, ErrorCode):
                refuse(shard)
            else:
                work(shard)

    # -- states (SharePersister) -----------------------------------------------------------------

    def initialize(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        start_offset: int,
        done: Done,
        *,
        wait: bool = True,
    ) -> None:
        """See `SharePersister.initialize`; without `wait` a shard that loads is an error."""

        def work(shard: ShareShard) -> None:
            known = shard.states.get(key)
            if known is not None and state_epoch != NO_EPOCH and known.state_epoch > state_epoch:
                done(ErrorCode.FENCED_STATE_EPOCH)
            elif not self._is_topic_partition(key):
                done(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif known is None and len(shard.states) >= SHARE_PARTITIONS_MAX:
                done(ErrorCode.POLICY_VIOLATION)
            else:
                now_ms = self._clock.now_ms()
                record = shard.initialization(key, state_epoch, start_offset, now_ms)
                shard.write([record], done)

        self._run(key, work, done, wait=wait)

    def read(
        self, key: SharePartitionKey, leader_epoch: int, done: StateDone, *, wait: bool = True
    ) -> None:
        """See `SharePersister.read`."""

        def work(shard: ShareShard) -> None:
            known = shard.states.get(key)
            if known is None:
                done(ErrorCode.INVALID_REQUEST, None)
                return
            if known.leader_epoch > leader_epoch:
                done(ErrorCode.FENCED_LEADER_EPOCH, None)
                return
            if not self._is_topic_partition(key):
                done(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
                return
            state = ShareState(known.state_epoch, known.start_offset, known.batches)

            def committed(code: ErrorCode) -> None:
                done(code, state if code is ErrorCode.NONE else None)

            if leader_epoch in (NO_EPOCH, known.leader_epoch):
                shard.log.when_committed(committed)
                return
            record = shard.change(
                key,
                start_offset=known.start_offset,
                delivery_complete_count=known.delivery_complete_count,
                batches=(),
                now_ms=self._clock.now_ms(),
                leader_epoch=leader_epoch,
            )
            shard.write([record], committed)

        self._run(key, work, lambda code: done(code, None), wait=wait)

    def read_summary(self, key: SharePartitionKey, done: SummaryDone, *, wait: bool = True) -> None:
        """See `SharePersister.read_summary`."""

        def work(shard: ShareShard) -> None:
            if not self._is_topic_partition(key):
                done(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
                return
            known = shard.states.get(key)
            summary = ShareSummary(0, 0, UNINITIALIZED_OFFSET, UNKNOWN_COUNT)
            if known is not None:
                summary = ShareSummary(
                    known.state_epoch,
                    known.leader_epoch,
                    known.start_offset,
                    known.delivery_complete_count,
                )
            shard.log.when_committed(
                lambda code: done(code, summary if code is ErrorCode.NONE else None)
            )

        self._run(key, work, lambda code: done(code, None), wait=wait)

    def write(
        self,
        key: SharePartitionKey,
        *,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        done: Done,
        wait: bool = True,
    ) -> None:
        """See `SharePersister.write`."""

        def work(shard: ShareShard) -> None:
            known = shard.states.get(key)
            if known is None:
                done(ErrorCode.INVALID_REQUEST)
            elif leader_epoch != NO_EPOCH and known.leader_epoch > leader_epoch:
                done(ErrorCode.FENCED_LEADER_EPOCH)
            elif state_epoch != NO_EPOCH and known.state_epoch > state_epoch:
                done(ErrorCode.FENCED_STATE_EPOCH)
            elif not self._is_topic_partition(key):
                done(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            else:
                record = shard.change(
                    key,
                    start_offset=start_offset,
                    delivery_complete_count=delivery_complete_count,
                    batches=batches,
                    now_ms=self._clock.now_ms(),
                )
                shard.write([record], done)

        self._run(key, work, done, wait=wait)

    def delete(self, key: SharePartitionKey, done: Done, *, wait: bool = True) -> None:
        """See `SharePersister.delete`."""

        def work(shard: ShareShard) -> None:
            if not self._is_topic_partition(key):
                done(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif key not in shard.states:
                shard.log.when_committed(done)
            else:
                shard.write([shard.deletion(key)], done)

        self._run(key, work, done, wait=wait)

    def _is_topic_partition(self, key: SharePartitionKey) -> bool:
        topic = self._controller.image.topics_by_id.get(key.topic_id)
        return topic is not None and key.partition < len(topic.partitions)

    # -- upkeep ----------------------------------------------------------------------------------

    async def _prune(self) -> None:
        """Delete records below the oldest valid snapshot, where that is committed."""
        for shard in list(self._runtime.shards()):
            partition = self._replica_manager.leader_of(*shard.log.topic_partition)
            if partition is None:
                continue
            # Of a state whose newest snapshot is lost with this broker, or with a write that
            # fails, the one before it is all there is.
            offset = shard.redundant_below(partition.log.high_watermark)
            shard.log.when_committed(partial(self._prune_below, shard, offset))

    def _prune_below(self, shard: ShareShard, offset: int, code: ErrorCode) -> None:
        where = shard.log.topic_partition
        partition = self._replica_manager.leader_of(*where)
        if code is not ErrorCode.NONE or shard.log.is_closed or partition is None:
            return
        log = partition.log
        if offset > log.log_start_offset:
            try:
                log.delete_records(offset)
            except StorageError as error:
                logger.warning(
                    "records of __share_group_state not pruned partition=%d error=%s",
                    where.partition,
                    error,
                )

    async def _snapshot_cold(self) -> None:
        """Write snapshots of states unchanged for long, so that they hold up no prune.

        A partition in which nothing has changed since is left alone.
        """
        interval_ms = self._settings.share_coordinator_cold_partition_snapshot_interval_ms
        for shard in list(self._runtime.shards()):
            if all(s.create_timestamp_ms != s.write_timestamp_ms for s in shard.states.values()):
                continue
            now_ms = self._clock.now_ms()
            cold = [
                key
                for key, state in shard.states.items()
                if now_ms - state.write_timestamp_ms >= interval_ms
            ]
            for together in _written_together(shard, cold):
                records = [
                    shard.refreshed(key, self._clock.now_ms())
                    for key in together
                    if key in shard.states
                ]
                if records:
                    shard.write(records, _ignore_outcome)
                await asyncio.sleep(0)


def _written_together(
    shard: ShareShard, keys: Sequence[SharePartitionKey]
) -> Iterator[list[SharePartitionKey]]:
    """States whose snapshots fit into one batch; else it would be refused each time."""
    together: list[SharePartitionKey] = []
    size = 0
    for key in keys:
        state = shard.states.get(key)
        more = 0 if state is None else len(state.batches)
        if together and (len(together) == RECORDS_PER_WRITE or size + more > BATCHES_PER_WRITE):
            yield together
            together, size = [], 0
        together.append(key)
        size += more
    if together:
        yield together


def _ignore_outcome(_code: ErrorCode) -> None:
    return
