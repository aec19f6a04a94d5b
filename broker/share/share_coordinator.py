"""The share coordinator: keeps the state of share-partitions in `__share_group_state`.

A share-partition belongs to one partition of the topic, by the hash of `group:topic id:partition`;
who leads that coordinates it. What is known of a partition is a *shard*:

    on_elected ──> waiting to load ──> loading ──> active ──> on_resigned
                    (COORDINATOR_LOAD_IN_PROGRESS)   │  ^       (NOT_COORDINATOR)
                              ^                      │  └── prunes what no longer counts
                              └── outcome of a write is not known

Callers in this process (`SharePersister`) wait while a shard loads, or the topic is created on
their behalf; those who come over the network are told, and come again.

Two epochs fence: the state epoch grows with each initialisation, the leader epoch is that of the
partition whose records are shared; whoever comes with a lower one than was seen is out of date.

Source: Kafka, ShareCoordinatorService.java, ShareCoordinatorShard.java, PersisterStateManager.java.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from broker.controller.images.topic_names import SHARE_GROUP_STATE
from broker.groups.partitioner import partition_for_group
from broker.runtime.errors import ApiError
from broker.runtime.timer import Timer, TimerHandle
from broker.share.persister import (
    NO_EPOCH,
    UNINITIALIZED_OFFSET,
    UNKNOWN_COUNT,
    Done,
    SharePartitionKey,
    ShareState,
    ShareSummary,
    StateDone,
    SummaryDone,
)
from broker.share.share_loader import ShareLoader
from broker.share.share_log import ShareLog
from broker.share.share_shard import SHARE_PARTITIONS_MAX, ShareShard
from broker.unavailable_partitions import UnavailablePartitions
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from protocol.internal.share_state import StateBatch
from storage.environment.alerts import Alerts
from storage.environment.clock import Clock
from storage.errors import StorageError
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.controller.images.cluster_image import ClusterImage
    from broker.replicas.replica_manager import ReplicaManager

logger = logging.getLogger(__name__)

UNCOMMITTED_DELAY_MS = 50.0
"""How long to wait before looking again whether the end of a log is committed."""

WAITING_MAX = 10_000
"""Calls that wait for a shard; further ones are told COORDINATOR_NOT_AVAILABLE."""

_SNAPSHOTS_PER_SLICE = 50
"""Snapshots of quiet share-partitions that are written before the loop gets its turn."""


class _Active(NamedTuple):
    shard: ShareShard
    log: ShareLog


class _Waiting(NamedTuple):
    work: Callable[[_Active], None]
    refuse: Callable[[ErrorCode], None]


class ShareCoordinator:
    """Coordinates the share-partitions whose partition of the topic this broker leads.

    All methods run on the event loop and none blocks. Implements `persister.SharePersister`.
    """

    def __init__(
        self,
        settings: BrokerConfig,
        clock: Clock,
        timer: Timer,
        replica_manager: "ReplicaManager",
        controller: "Controller",
        alerts: Alerts | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._timer = timer
        self._replica_manager = replica_manager
        self._controller = controller
        self._running = False
        self._active: dict[int, _Active] = {}
        # By partition, a token for each election: what was read for another one does not count.
        self._loading: dict[int, object] = {}
        self.unavailable = UnavailablePartitions(SHARE_GROUP_STATE, alerts)
        self._to_load: deque[int] = deque()
        self._loader: asyncio.Task[None] | None = None
        self._creation: asyncio.Task[None] | None = None
        self._upkeep: asyncio.Task[None] | None = None
        self._timers: dict[str, TimerHandle] = {}
        # By partition; the number is the call's own, so that its time-out finds it.
        self._waiting: dict[int, dict[int, tuple[_Waiting, TimerHandle]]] = {}
        self._calls = 0

    # -- life ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to serve; shards come with `on_elected`."""
        self._running = True
        self._controller.subscribe(self._on_image)
        settings = self._settings
        self._repeat("prune", settings.share_coordinator_state_topic_prune_interval_ms, self._prune)
        self._repeat(
            "cold",
            settings.share_coordinator_cold_partition_snapshot_interval_ms,
            self._begin_cold_snapshots,
        )

    async def stop(self) -> None:
        """Stop every timer and task, and refuse who waits."""
        self._running = False
        for handle in self._timers.values():
            handle.cancel()
        self._timers.clear()
        tasks = [t for t in (self._loader, self._creation, self._upkeep) if t is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._to_load.clear()
        for partition_index in {*self._active, *self._loading, *self._waiting}:
            self.on_resigned(partition_index)

    def _repeat(self, name: str, interval_ms: int, work: Callable[[], None]) -> None:
        def turn() -> None:
            self._timers[name] = self._timer.call_later_ms(interval_ms, turn)
            work()

        self._timers[name] = self._timer.call_later_ms(interval_ms, turn)

    @property
    def is_loading(self) -> bool:
        """Whether some state may be missing from what is seen."""
        return bool(self._loading)

    @property
    def state_count(self) -> int:
        """Share-partitions with a state here."""
        return sum(len(active.shard.states) for active in self._active.values())

    def on_elected(self, partition_index: int) -> None:
        """This broker leads the partition of `__share_group_state` now: load it."""
        if partition_index in self._active or partition_index in self._loading:
            return
        self._loading[partition_index] = object()
        self._queue(partition_index)

    def on_resigned(self, partition_index: int) -> None:
        """Somebody else leads the partition, or it was deleted."""
        self._loading.pop(partition_index, None)
        active = self._active.pop(partition_index, None)
        if active is not None:
            active.log.close()
            logger.info("share states unloaded partition=%d", partition_index)
        self._refuse_waiting(partition_index, ErrorCode.NOT_COORDINATOR)

    def _give_up(self, partition_index: int) -> None:
        """What is in memory may not be what is in the log."""
        active = self._active.pop(partition_index, None)
        if active is not None:
            active.log.close()
        if self._running and self._partition(partition_index) is not None:
            self.on_elected(partition_index)

    def _partition(self, partition_index: int) -> object | None:
        return self._replica_manager.get_partition(SHARE_GROUP_STATE, partition_index)

    def _queue(self, partition_index: int) -> None:
        if not self._running or partition_index not in self._loading:
            return
        self._to_load.append(partition_index)
        if self._loader is None or self._loader.done():
            self._loader = asyncio.get_running_loop().create_task(self._load_waiting())

    async def _load_waiting(self) -> None:
        while self._to_load:
            partition_index = self._to_load.popleft()
            election = self._loading.get(partition_index)
            if election is None:
                continue
            try:
                active = await self._load(partition_index)
            except Exception as error:
                # It stays without a coordinator: served empty it would deliver what is done.
                # Whatever it is, it must not keep the others from being loaded.
                if not isinstance(error, (DecodeError, StorageError, OSError, KeyError)):
                    logger.exception("share states cannot be loaded partition=%d", partition_index)
                if self._loading.get(partition_index) is election:
                    del self._loading[partition_index]
                    self.unavailable.set(partition_index, f"share states cannot be loaded: {error}")
                    self._refuse_waiting(partition_index, ErrorCode.NOT_COORDINATOR)
                continue
            if active is None:
                self._timer.call_later_ms(
                    UNCOMMITTED_DELAY_MS, partial(self._queue, partition_index)
                )
            elif self._loading.get(partition_index) is election:
                del self._loading[partition_index]
                self.unavailable.clear(partition_index)
                self._active[partition_index] = active
                self._serve_waiting(partition_index, active)
            else:
                # Resigned meanwhile; what was read may be of a topic that is gone.
                active.log.close()

    async def _load(self, partition_index: int) -> _Active | None:
        """The shard; None while the end of its log is not committed."""
        started_ms = self._clock.monotonic_ms()
        topic_partition = TopicPartition(SHARE_GROUP_STATE, partition_index)
        partition = self._replica_manager.get_partition(*topic_partition)
        if partition is None:
            raise KeyError(str(topic_partition))
        end_offset = partition.log.next_offset
        if partition.log.high_watermark < end_offset:
            return None
        settings = self._settings
        shard = ShareShard(
            records_per_snapshot=settings.share_coordinator_snapshot_update_records_per_snapshot
        )
        loader = ShareLoader(
            self._replica_manager,
            topic_partition,
            shard,
            read_size=settings.share_coordinator_load_buffer_size,
        )
        await loader.read(partition.log.log_start_offset, end_offset)
        if loader.records:
            logger.info(
                "share states loaded partition=%d states=%d records=%d elapsed_ms=%d",
                partition_index,
                len(shard.states),
                loader.records,
                self._clock.monotonic_ms() - started_ms,
            )
        log = ShareLog(
            topic_partition,
            shard,
            appender=self._replica_manager,
            clock=self._clock,
            timeout_ms=settings.share_coordinator_write_timeout_ms,
            give_up=partial(self._give_up, partition_index),
        )
        return _Active(shard, log)

    async def _on_image(self, old: "ClusterImage", new: "ClusterImage") -> None:
        """Of a deleted topic nothing is kept; with our own topic everything is gone."""
        if old.topics is new.topics:
            return
        own = old.topics.get(SHARE_GROUP_STATE)
        if own is not None and own.topic_id not in new.topics_by_id:
            for partition_index in [*self._active, *self._loading]:
                self.on_resigned(partition_index)
            self.unavailable.clear_all()
        deleted = old.topics_by_id.keys() - new.topics_by_id.keys()
        if deleted:
            await self._forget_topics(deleted)

    async def _forget_topics(self, deleted: "set[UUID]") -> None:
        for active in list(self._active.values()):
            gone = [key for key in active.shard.states if key.topic_id in deleted]
            for at in range(0, len(gone), _SNAPSHOTS_PER_SLICE):
                records = [
                    active.shard.deletion(key) for key in gone[at : at + _SNAPSHOTS_PER_SLICE]
                ]
                active.log.write(records, _nobody_told)
                await asyncio.sleep(0)

    # -- who coordinates what --------------------------------------------------------------------

    def partition_for(self, coordinator_key: str) -> int:
        """The partition of a share-partition, whether the topic exists yet or not."""
        topic = self._controller.image.topics.get(SHARE_GROUP_STATE)
        count = len(topic.partitions) if topic is not None else 0
        return partition_for_group(
            coordinator_key, count or self._settings.share_coordinator_state_topic_num_partitions
        )

    async def ensure_topic(self) -> None:
        """Create `__share_group_state` if it is not there.

        Raises:
            ApiError: It could not be created.
        """
        await self._controller.ensure_internal_topic(SHARE_GROUP_STATE)

    def _find(self, partition_index: int) -> _Active | ErrorCode:
        """The shard, or why it cannot be served here and now."""
        if not self._running:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        active = self._active.get(partition_index)
        if active is not None:
            return active
        if partition_index in self._loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NOT_COORDINATOR

    def _run(
        self,
        key: SharePartitionKey,
        work: Callable[[_Active], None],
        refuse: Callable[[ErrorCode], None],
        *,
        wait: bool,
    ) -> None:
        """Do the work in the key's shard, now or when it has been loaded."""
        if not key.group_id or key.partition < 0:
            refuse(ErrorCode.INVALID_REQUEST)
            return
        partition_index = self.partition_for(key.coordinator_key())
        found = self._find(partition_index)
        if isinstance(found, _Active):
            work(found)
            return
        is_new = SHARE_GROUP_STATE not in self._controller.image.topics
        comes = found is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS or (is_new and self._running)
        if not wait or not comes:
            refuse(found)
            return
        self._wait(partition_index, _Waiting(work, refuse))
        if is_new and (self._creation is None or self._creation.done()):
            self._creation = asyncio.get_running_loop().create_task(self._create_topic())

    async def _create_topic(self) -> None:
        try:
            await self.ensure_topic()
        except ApiError as error:
            logger.warning("topic cannot be created topic=%s error=%s", SHARE_GROUP_STATE, error)
            for partition_index in list(self._waiting):
                self._refuse_waiting(partition_index, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    # -- those who wait for a shard --------------------------------------------------------------

    def _wait(self, partition_index: int, waiting: _Waiting) -> None:
        if sum(map(len, self._waiting.values())) >= WAITING_MAX:
            waiting.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        self._calls += 1
        call = self._calls

        def time_out() -> None:
            if self._waiting.get(partition_index, {}).pop(call, None) is not None:
                waiting.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)

        handle = self._timer.call_later_ms(
            self._settings.share_coordinator_write_timeout_ms, time_out
        )
        self._waiting.setdefault(partition_index, {})[call] = (waiting, handle)

    def _taken(self, partition_index: int) -> list[_Waiting]:
        taken = []
        for waiting, handle in self._waiting.pop(partition_index, {}).values():
            handle.cancel()
            taken.append(waiting)
        return taken

    def _serve_waiting(self, partition_index: int, active: _Active) -> None:
        for waiting in self._taken(partition_index):
            waiting.work(active)

    def _refuse_waiting(self, partition_index: int, code: ErrorCode) -> None:
        for waiting in self._taken(partition_index):
            waiting.refuse(code)

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

        def work(active: _Active) -> None:
            shard = active.shard
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
                active.log.write([record], done)

        self._run(key, work, done, wait=wait)

    def read(
        self, key: SharePartitionKey, leader_epoch: int, done: StateDone, *, wait: bool = True
    ) -> None:
        """See `SharePersister.read`."""

        def work(active: _Active) -> None:
            shard = active.shard
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
            if leader_epoch in (NO_EPOCH, known.leader_epoch):
                done(ErrorCode.NONE, state)
                return
            record = shard.change(
                key,
                start_offset=known.start_offset,
                delivery_complete_count=known.delivery_complete_count,
                batches=(),
                now_ms=self._clock.now_ms(),
                leader_epoch=leader_epoch,
            )
            active.log.write(
                [record], lambda code: done(code, state if code is ErrorCode.NONE else None)
            )

        self._run(key, work, lambda code: done(code, None), wait=wait)

    def read_summary(self, key: SharePartitionKey, done: SummaryDone, *, wait: bool = True) -> None:
        """See `SharePersister.read_summary`."""

        def work(active: _Active) -> None:
            if not self._is_topic_partition(key):
                done(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
                return
            known = active.shard.states.get(key)
            if known is None:
                done(ErrorCode.NONE, ShareSummary(0, 0, UNINITIALIZED_OFFSET, UNKNOWN_COUNT))
                return
            done(
                ErrorCode.NONE,
                ShareSummary(
                    known.state_epoch,
                    known.leader_epoch,
                    known.start_offset,
                    known.delivery_complete_count,
                ),
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

        def work(active: _Active) -> None:
            shard = active.shard
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
                active.log.write([record], done)

        self._run(key, work, done, wait=wait)

    def delete(self, key: SharePartitionKey, done: Done, *, wait: bool = True) -> None:
        """See `SharePersister.delete`."""

        def work(active: _Active) -> None:
            if not self._is_topic_partition(key):
                done(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif key not in active.shard.states:
                done(ErrorCode.NONE)
            else:
                active.log.write([active.shard.deletion(key)], done)

        self._run(key, work, done, wait=wait)

    def _is_topic_partition(self, key: SharePartitionKey) -> bool:
        topic = self._controller.image.topics_by_id.get(key.topic_id)
        return topic is not None and key.partition < len(topic.partitions)

    # -- upkeep ----------------------------------------------------------------------------------

    def _prune(self) -> None:
        """Give up what lies below the oldest snapshot that counts."""
        for partition_index, active in self._active.items():
            partition = self._replica_manager.get_partition(SHARE_GROUP_STATE, partition_index)
            if partition is None:
                continue
            log = partition.log
            offset = min(active.shard.redundant_below(log.high_watermark), log.high_watermark)
            if offset > log.log_start_offset:
                try:
                    log.delete_records(offset)
                except StorageError as error:
                    logger.warning(
                        "share states not pruned partition=%d error=%s", partition_index, error
                    )

    def _begin_cold_snapshots(self) -> None:
        if self._upkeep is None or self._upkeep.done():
            self._upkeep = asyncio.get_running_loop().create_task(self._snapshot_cold())

    async def _snapshot_cold(self) -> None:
        """Write anew what has not changed for long, so that it holds up no prune.

        A partition in which nothing has changed since is left alone.
        """
        interval_ms = self._settings.share_coordinator_cold_partition_snapshot_interval_ms
        for active in list(self._active.values()):
            shard = active.shard
            if all(s.create_timestamp_ms != s.write_timestamp_ms for s in shard.states.values()):
                continue
            now_ms = self._clock.now_ms()
            cold = [
                key
                for key, state in shard.states.items()
                if now_ms - state.write_timestamp_ms >= interval_ms
            ]
            for at in range(0, len(cold), _SNAPSHOTS_PER_SLICE):
                records = [
                    shard.refreshed(key, self._clock.now_ms())
                    for key in cold[at : at + _SNAPSHOTS_PER_SLICE]
                    if key in shard.states
                ]
                if records:
                    active.log.write(records, _nobody_told)
                await asyncio.sleep(0)


def _nobody_told(_code: ErrorCode) -> None:
    return
