"""The transaction coordinator: what handlers and partitions call.

A transactional id belongs to one partition of `__transaction_state`; who leads the partition
coordinates its transactions. What is known of a partition is a *shard*:

    on_elected ──> waiting to load ──> loading ──> active ──> on_resigned
                    (COORDINATOR_LOAD_IN_PROGRESS)   │  ^       (NOT_COORDINATOR)
                              ^                      │  └── prepared transactions go on
                              └── outcome of a write is not known

A transaction from begin to end, each `R` a record of `__transaction_state`:

    InitProducerId  R ──> AddPartitionsToTxn  R, R... ──> EndTxn  R ──> markers ──> R
    `init_producer_id`      `partitions`                  `end_transaction`  `completion`

Source: Kafka, TransactionCoordinator.scala, TransactionStateManager.scala; KIP-98, KIP-890.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from functools import partial
from typing import TYPE_CHECKING

from broker.controller.images.topic_names import TRANSACTION_STATE
from broker.coordinator.held_records import HeldRecords
from broker.coordinator.partitioner import partition_for_group
from broker.coordinator.unavailable_partitions import UnavailablePartitions
from broker.runtime.timer import Timer, TimerHandle
from broker.transactions.completion import Completion
from broker.transactions.end_transaction import EndTransaction, ProducerDone
from broker.transactions.expiry import Expiry
from broker.transactions.init_producer_id import InitProducerId
from broker.transactions.loader import TransactionLoader
from broker.transactions.partitions import TransactionPartitions
from broker.transactions.parts import MarkerWriter, PartitionErrors, ProducerIdAndEpoch
from broker.transactions.producer_id_source import ProducerIdSource
from broker.transactions.shard import TransactionShard
from broker.transactions.stats import TransactionStats
from broker.transactions.transaction_log import Done, TransactionLog
from broker.transactions.transaction_metadata import EPOCH_BUMP_VERSION, TransactionMetadata
from broker.transactions.transaction_state import TransactionState
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from storage.environment.alerts import Alerts
from storage.environment.clock import Clock
from storage.environment.randomness import Randomness
from storage.errors import StorageError
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.controller.images.cluster_image import ClusterImage
    from broker.replicas.replica_manager import ReplicaManager

logger = logging.getLogger(__name__)

TRANSACTION_TOPIC = TRANSACTION_STATE
TRANSACTION_VERSION = "transaction.version"

UNCOMMITTED_DELAY_MS = 50.0
"""How long to wait before looking again whether the end of a log is committed."""

_RESUMED_PER_SLICE = 20
"""Prepared transactions that go on before the loop gets its turn; each writes several records."""

_LISTED_PER_SLICE = 500
"""Transactional ids that are listed before the loop gets its turn."""


class TransactionCoordinator:
    """Coordinates the transactional ids whose partitions this broker leads.

    All methods run on the event loop and none blocks. Implements `parts.PartitionRegistrar`.
    `stats` counts since the start.
    """

    def __init__(
        self,
        settings: BrokerConfig,
        clock: Clock,
        timer: Timer,
        randomness: Randomness,
        replica_manager: "ReplicaManager",
        controller: "Controller",
        markers: MarkerWriter,
        alerts: Alerts | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._timer = timer
        self._replica_manager = replica_manager
        self._controller = controller
        self._running = False
        self._active: dict[int, TransactionShard] = {}
        # By partition, a token for each election: what was read for another one does not count.
        self._loading: dict[int, object] = {}
        self.unavailable = UnavailablePartitions(TRANSACTION_TOPIC, alerts)
        self._to_load: deque[int] = deque()
        self._loader: asyncio.Task[None] | None = None
        self._timers: dict[str, TimerHandle] = {}
        self._held = HeldRecords(timer)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.stats = TransactionStats()
        self._producer_ids = ProducerIdSource(lambda: controller.producer_ids)
        self._completion = Completion(
            markers, clock=clock, timer=timer, randomness=randomness, stats=self.stats
        )
        self._end = EndTransaction(self._find, self._completion, self._producer_ids, clock)
        self._init = InitProducerId(
            self._find,
            self._end,
            self._producer_ids,
            clock=clock,
            stats=self.stats,
            max_timeout_ms=settings.transaction_max_timeout_ms,
            transaction_version=self.transaction_version,
        )
        self._partitions = TransactionPartitions(self._find, clock)
        self._expiry = Expiry(
            self._active.values,
            self._end,
            clock=clock,
            stats=self.stats,
            expiration_ms=settings.transactional_id_expiration_ms,
            transaction_version=self.transaction_version,
        )

    # -- life --

    async def start(self) -> None:
        """Begin to serve; shards come with `on_elected`."""
        self._running = True
        self._controller.subscribe(self._on_image)
        settings = self._settings
        self._repeat(
            "time-outs",
            settings.transaction_abort_timed_out_transaction_cleanup_interval_ms,
            self._expiry.abort_timed_out,
        )
        self._repeat(
            "expiry",
            settings.transaction_remove_expired_transaction_cleanup_interval_ms,
            self._expiry.expire_ids,
        )

    async def stop(self) -> None:
        """Stop every timer and task; what is under way is left to the next start."""
        self._running = False
        for handle in self._timers.values():
            handle.cancel()
        tasks = list(self._tasks.values())
        if self._loader is not None:
            tasks.append(self._loader)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._loader = None
        self._to_load.clear()
        await self._producer_ids.stop()
        self._held.stop()
        for partition_index in [*self._active, *self._loading]:
            self.on_resigned(partition_index)

    def _repeat(
        self, name: str, interval_ms: int, work: Callable[[], Coroutine[None, None, None]]
    ) -> None:
        def begin() -> None:
            task = self._tasks.get(name)
            if task is None or task.done():
                self._tasks[name] = asyncio.get_running_loop().create_task(work())
            self._timers[name] = self._timer.call_later_ms(interval_ms, begin)

        self._timers[name] = self._timer.call_later_ms(interval_ms, begin)

    def on_elected(self, partition_index: int) -> None:
        """This broker leads the partition of `__transaction_state` now: load it."""
        if partition_index in self._active or partition_index in self._loading:
            return
        self._loading[partition_index] = object()
        self._queue(partition_index)

    def on_resigned(self, partition_index: int) -> None:
        """Somebody else leads the partition, or it was deleted."""
        self._loading.pop(partition_index, None)
        shard = self._active.pop(partition_index, None)
        if shard is not None:
            shard.log.close()
            if shard.transactions:
                logger.info(
                    "transactions unloaded partition=%d transactional_ids=%d",
                    partition_index,
                    len(shard.transactions),
                )

    def _give_up(self, partition_index: int, code: ErrorCode) -> None:
        """What is in memory may not be what is in the log."""
        self.on_resigned(partition_index)
        if code is ErrorCode.REQUEST_TIMED_OUT and self._running:
            self.stats.reloads += 1
            self.on_elected(partition_index)

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
                shard = await self._load(partition_index)
            except Exception as error:
                # It stays without a coordinator: to serve it empty would forget transactions.
                # Whatever it is, it must not keep the others from being loaded.
                self.stats.load_failures += 1
                if not isinstance(error, (DecodeError, StorageError, OSError, KeyError)):
                    logger.exception("transactions cannot be loaded partition=%d", partition_index)
                if self._loading.get(partition_index) is election:
                    del self._loading[partition_index]
                    self.unavailable.set(partition_index, f"transactions cannot be loaded: {error}")
                continue
            if shard is None:
                self._timer.call_later_ms(
                    UNCOMMITTED_DELAY_MS, partial(self._queue, partition_index)
                )
            elif self._loading.get(partition_index) is election:
                del self._loading[partition_index]
                self.unavailable.clear(partition_index)
                self._active[partition_index] = shard
                await self._resume(shard)
            else:
                shard.log.close()

    async def _load(self, partition_index: int) -> TransactionShard | None:
        """The shard; None while the end of its log is not committed."""
        started_ms = self._clock.monotonic_ms()
        topic_partition = TopicPartition(TRANSACTION_TOPIC, partition_index)
        partition = self._replica_manager.get_partition(*topic_partition)
        if partition is None:
            raise KeyError(str(topic_partition))
        log = partition.log
        end_offset = log.next_offset
        if log.high_watermark < end_offset:
            return None
        loader = TransactionLoader(
            self._replica_manager,
            topic_partition,
            read_size=self._settings.transaction_state_log_load_buffer_size,
        )
        await loader.read(log.log_start_offset, end_offset)
        shard = TransactionShard(
            partition_index,
            partition.leader_epoch,
            TransactionLog(
                topic_partition,
                appender=self._replica_manager,
                clock=self._clock,
                transaction_version=self.transaction_version,
                give_up=partial(self._give_up, partition_index),
                hold=self._held.add,
            ),
        )
        await loader.fill(shard, self.stats)
        took_ms = self._clock.monotonic_ms() - started_ms
        self.stats.loaded_partitions += 1
        self.stats.loaded_records += loader.records
        self.stats.loading_ms += took_ms
        if loader.records:
            logger.info(
                "transactions loaded partition=%d transactional_ids=%d records=%d elapsed_ms=%d",
                partition_index,
                len(shard.transactions),
                loader.records,
                took_ms,
            )
        return shard

    async def _resume(self, shard: TransactionShard) -> None:
        prepared = [m for m in shard.transactions.values() if m.state.is_prepared]
        for count, metadata in enumerate(prepared, 1):
            if shard.log.is_closed:
                return
            try:
                self._completion.resume(shard, metadata)
            except Exception:
                # It stays prepared; all others go on.
                logger.exception(
                    "transaction cannot be resumed transactional_id=%s", metadata.transactional_id
                )
            if not count % _RESUMED_PER_SLICE:
                await asyncio.sleep(0)

    async def _on_image(self, old: "ClusterImage", new: "ClusterImage") -> None:
        """With the topic itself all transactional ids are gone."""
        topic = old.topics.get(TRANSACTION_TOPIC)
        if topic is not None and topic.topic_id not in new.topics_by_id:
            for partition_index in [*self._active, *self._loading]:
                self.on_resigned(partition_index)
            self.unavailable.clear_all()

    # -- who coordinates what --

    def partition_for(self, transactional_id: str) -> int:
        """The partition of a transactional id, whether the topic exists yet or not."""
        topic = self._controller.image.topics.get(TRANSACTION_TOPIC)
        count = len(topic.partitions) if topic is not None else 0
        return partition_for_group(
            transactional_id, count or self._settings.transaction_state_log_num_partitions
        )

    async def ensure_topic(self) -> None:
        """Create `__transaction_state` if it is not there.

        Raises:
            ApiError: It could not be created.
        """
        await self._controller.ensure_internal_topic(TRANSACTION_TOPIC)

    def transaction_version(self) -> int:
        """The cluster's finalised transaction.version."""
        return self._controller.image.features.get(TRANSACTION_VERSION, 0)

    def _find(self, transactional_id: str) -> TransactionShard | ErrorCode:
        """The shard of a transactional id, or why it cannot be served here and now."""
        if not self._running:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        partition_index = self.partition_for(transactional_id)
        shard = self._active.get(partition_index)
        if shard is not None:
            return shard
        if partition_index in self._loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NOT_COORDINATOR

    # -- producers and their transactions --

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        done: ProducerDone,
    ) -> None:
        """InitProducerId of a transactional id; see `InitProducerId.init`."""
        self._init.init(transactional_id, timeout_ms, expected, done)

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        *,
        client_transaction_version: int,
        done: Done,
    ) -> None:
        """AddPartitionsToTxn and AddOffsetsToTxn; see `TransactionPartitions.add`."""
        self._partitions.add(
            transactional_id,
            producer,
            partitions,
            client_transaction_version=client_transaction_version,
            done=done,
        )

    def verify_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
    ) -> PartitionErrors:
        """Whether each partition is part of the transaction; see `TransactionPartitions.verify`."""
        return self._partitions.verify(transactional_id, producer, partitions)

    def add_or_verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        *,
        add: bool,
        done: Callable[[PartitionErrors], None],
    ) -> None:
        """See `parts.PartitionRegistrar`; to verify needs memory only, and answers at once."""
        if not add:
            done(self._partitions.verify(transactional_id, producer, partitions))
            return
        self._partitions.add(
            transactional_id,
            producer,
            partitions,
            client_transaction_version=EPOCH_BUMP_VERSION,
            done=lambda code: done(dict.fromkeys(partitions, code)),
        )

    def end_transaction(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        *,
        commit: bool,
        client_transaction_version: int,
        done: ProducerDone,
    ) -> None:
        """EndTxn; see `EndTransaction.end`."""
        self._end.end(
            transactional_id,
            producer,
            commit=commit,
            client_transaction_version=client_transaction_version,
            done=done,
        )

    async def abort_timed_out(self) -> None:
        """Abort every transaction that has been open for longer than its timeout."""
        await self._expiry.abort_timed_out()

    async def expire_ids(self) -> None:
        """Forget transactional ids that have not been used for long."""
        await self._expiry.expire_ids()

    # -- to look at --

    @property
    def is_loading(self) -> bool:
        """Whether some transaction may be missing from what is seen."""
        return bool(self._loading)

    @property
    def is_running(self) -> bool:
        """Whether requests are served."""
        return self._running

    def find_transaction(
        self, transactional_id: str
    ) -> tuple[ErrorCode, TransactionMetadata | None]:
        """One to read from; TRANSACTIONAL_ID_NOT_FOUND when there is none."""
        if not self._running:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, None
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST, None
        shard = self._find(transactional_id)
        if isinstance(shard, ErrorCode):
            return shard, None
        metadata = shard.transactions.get(transactional_id)
        if metadata is None:
            return ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, None
        return ErrorCode.NONE, metadata

    async def transactions(self) -> AsyncIterator[TransactionMetadata]:
        """All that are coordinated here, in slices: the loop gets its turn in between."""
        for shard in list(self._active.values()):
            for count, metadata in enumerate(list(shard.transactions.values()), 1):
                yield metadata
                if not count % _LISTED_PER_SLICE:
                    await asyncio.sleep(0)

    def state_counts(self) -> dict[TransactionState, int]:
        """How many transactional ids are in each state."""
        counts = dict.fromkeys(TransactionState, 0)
        for shard in self._active.values():
            for metadata in shard.transactions.values():
                counts[metadata.state] += 1
        return counts
