"""The transaction coordinator, as request handlers and partitions call it.

A transactional id belongs to one partition of `__transaction_state`; its leader coordinates the
transactions. The `CoordinatorRuntime` loads and unloads the shards.

A transaction from begin to end, each `R` a record of `__transaction_state`:

    InitProducerId  R ──> AddPartitionsToTxn  R, R... ──> EndTxn  R ──> markers ──> R
    `init_producer_id`      `partitions`                  `end_transaction`  `completion`

Source: Kafka, TransactionCoordinator.scala, TransactionStateManager.scala; KIP-98, KIP-890.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection
from typing import TYPE_CHECKING

from broker.controller.images.topic_names import TRANSACTION_STATE
from broker.coordinator.deferred_records import DeferredRecords
from broker.coordinator.elected_appender import ElectedAppender
from broker.coordinator.outcome import Done
from broker.coordinator.runtime import CoordinatorRuntime, CoordinatorTopic, OnFailed
from broker.coordinator.shard_log import ShardLog
from broker.coordinator.topic_coordinator import TopicCoordinator
from broker.coordinator.upkeep import Upkeep
from broker.replicas.replica_manager import INTERNAL_APPEND_TIMEOUT_MS
from broker.transactions.coordinator.add_partitions import TransactionPartitions
from broker.transactions.coordinator.completion import Completion
from broker.transactions.coordinator.end_transaction import EndTransaction, ProducerDone
from broker.transactions.coordinator.expiry import Expiry
from broker.transactions.coordinator.init_producer_id import InitProducerId
from broker.transactions.coordinator.producer_id_source import ProducerIdSource
from broker.transactions.coordinator.shard import TransactionShard
from broker.transactions.coordinator.stats import TransactionStats
from broker.transactions.coordinator.transaction_metadata import (
    EPOCH_BUMP_VERSION,
    TransactionMetadata,
)
from broker.transactions.interfaces import MarkerWriter, PartitionErrors, ProducerIdAndEpoch
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from storage.environment.alerts import Alerts
from storage.environment.environment import Environment
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.replicas.replica_manager import ReplicaManager

logger = logging.getLogger(__name__)

TRANSACTION_TOPIC = TRANSACTION_STATE
TRANSACTION_VERSION = "transaction.version"

_LISTED_PER_SLICE = 500
"""Transactional ids that are listed before yielding to the event loop."""


class TransactionCoordinator(TopicCoordinator[TransactionShard]):
    """Coordinates the transactional ids whose partitions this broker leads.

    All methods run on the event loop and none blocks. Implements `interfaces.PartitionRegistrar`.
    `stats` counts since the start.
    """

    def __init__(
        self,
        settings: BrokerConfig,
        environment: Environment,
        replica_manager: "ReplicaManager",
        controller: "Controller",
        markers: MarkerWriter,
        alerts: Alerts | None = None,
        *,
        soon: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        """`soon`: as `DeferredRecords` has it."""
        self._settings = settings
        self._environment = environment
        clock, timer = environment.clock, environment.timer
        self._replica_manager = replica_manager
        self._controller = controller
        self._held = DeferredRecords(timer, soon)
        self._upkeep = Upkeep(timer)
        self.stats = TransactionStats()
        super().__init__(
            CoordinatorRuntime(
                CoordinatorTopic(
                    TRANSACTION_TOPIC,
                    "transactions",
                    settings.transaction_state_log_num_partitions,
                    settings.transaction_state_log_load_buffer_size,
                ),
                self._build_shard,
                timeout_ms=INTERNAL_APPEND_TIMEOUT_MS,
                environment=environment,
                replicas=replica_manager,
                controller=controller,
                stats=self.stats,
                alerts=alerts,
            )
        )
        find = self._runtime.find
        self._producer_ids = ProducerIdSource(lambda: controller.producer_ids)
        self._completion = Completion(
            markers, clock=clock, timer=timer, randomness=environment.randomness, stats=self.stats
        )
        self._end = EndTransaction(
            find, self._completion, self._producer_ids, clock, self._has_led_since
        )
        self._init = InitProducerId(
            find,
            self._end,
            self._producer_ids,
            clock=clock,
            stats=self.stats,
            max_timeout_ms=settings.transaction_max_timeout_ms,
            transaction_version=self.transaction_version,
        )
        self._partitions = TransactionPartitions(find, clock)
        self._expiry = Expiry(
            self._runtime.shards,
            self._end,
            clock=clock,
            stats=self.stats,
            expiration_ms=settings.transactional_id_expiration_ms,
            transaction_version=self.transaction_version,
        )

    # -- life --

    async def start(self) -> None:
        """Begin to serve; shards come with `on_elected`."""
        await self._runtime.start()
        self._controller.subscribe(self._completion.on_image)
        settings = self._settings
        self._upkeep.every(
            settings.transaction_abort_timed_out_transaction_cleanup_interval_ms,
            "time-outs of transactions",
            self._expiry.abort_timed_out,
        )
        self._upkeep.every(
            settings.transaction_remove_expired_transaction_cleanup_interval_ms,
            "expiry of transactional ids",
            self._expiry.expire_ids,
        )

    async def stop(self) -> None:
        """Stop all timers and tasks; completions under way are left to the next start."""
        await self._upkeep.stop()
        await self._producer_ids.stop()
        self._held.stop()
        await self._runtime.stop()

    def _has_led_since(self, shard: TransactionShard, since_ms: float) -> bool:
        partition = self._replica_manager.leader_of(TRANSACTION_TOPIC, shard.partition_index)
        return partition is not None and partition.has_led_since(since_ms)

    def _build_shard(
        self, topic_partition: TopicPartition, leader_epoch: int, on_failed: OnFailed
    ) -> TransactionShard:
        log = ShardLog(
            topic_partition,
            appender=ElectedAppender(
                self._replica_manager, leader_epoch, timeout_ms=INTERNAL_APPEND_TIMEOUT_MS
            ),
            environment=self._environment,
            timeout_ms=INTERNAL_APPEND_TIMEOUT_MS,
            on_failed=on_failed,
            hold=self._held.add,
        )
        return TransactionShard(
            log,
            leader_epoch,
            transaction_version=self.transaction_version,
            resume=self._completion.resume,
            clock=self._environment.clock,
            stats=self.stats,
        )

    # -- partitions --

    def transaction_version(self) -> int:
        """The cluster's finalised transaction.version."""
        return self._controller.image.features.get(TRANSACTION_VERSION, 0)

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
        """See `interfaces.PartitionRegistrar`; to verify needs memory only, and answers at once."""
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
        """Delete transactional ids that have expired."""
        await self._expiry.expire_ids()

    # -- views --

    def find_transaction(
        self, transactional_id: str
    ) -> tuple[ErrorCode, TransactionMetadata | None]:
        """A transactional id for reading; TRANSACTIONAL_ID_NOT_FOUND when there is none."""
        if not self._runtime.is_running:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, None
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST, None
        shard = self._runtime.find(transactional_id)
        if isinstance(shard, ErrorCode):
            return shard, None
        metadata = shard.transactions.get(transactional_id)
        if metadata is None:
            return ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, None
        return ErrorCode.NONE, metadata

    async def transactions(self) -> AsyncIterator[TransactionMetadata]:
        """All that are coordinated here, in slices, yielding to the event loop in between."""
        for shard in list(self._runtime.shards()):
            for count, metadata in enumerate(list(shard.transactions.values()), 1):
                yield metadata
                if not count % _LISTED_PER_SLICE:
                    await asyncio.sleep(0)
