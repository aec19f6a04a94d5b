"""Completion of a prepared transaction: markers to all partitions, then the Complete record.

    Prepare... committed ──> markers ──┬── all written > done; Complete... record before the next
                               ^       └── some not ──┐
                               └─────── back-off ─────┘  shorter if one of them gets a new leader

The outcome is decided by the Prepare record; from there on it is irrevocable: a marker that cannot
be written is retried, with a growing back-off, until it is written, the partition is deleted, or
the shard moves to another coordinator, which finds the Prepare record and starts here.

A partition that answers INVALID_PRODUCER_EPOCH has a marker of this transaction already (from an
attempt whose response was lost, or from before a crash), or an administrator has ended the
transaction there by hand. It is done. Kafka stops here, and the transactional id stays prepared
until its coordinator is loaded again.

Source: Kafka, TransactionMarkerChannelManager.scala, TransactionMarkerRequestCompletionHandler.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from broker.runtime.timer import Timer, TimerHandle
from broker.transactions.coordinator.shard import TransactionShard
from broker.transactions.coordinator.stats import TransactionStats
from broker.transactions.coordinator.transaction_metadata import TransactionMetadata, Transition
from broker.transactions.coordinator.transaction_state import TransactionState
from broker.transactions.interfaces import MarkerWriter, PartitionErrors
from protocol.error_codes import ErrorCode
from storage.environment.clock import Clock
from storage.environment.randomness import Randomness
from storage.types.topic_partition import TopicPartition
from storage.types.transaction_marker import TransactionMarker

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import ClusterImage

logger = logging.getLogger(__name__)

RETRY_DELAY_MS = 20
"""Delay before the second attempt; doubled with each further one."""

RETRY_DELAY_MAX_MS = 2_000
"""Longest delay, on average: within it a partition that is back is found."""

_NOTHING_LEFT = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)

_QUIET = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Expected while partitions come and go."""

MOVES_PER_SLICE = 500
"""Transactions looked at for moved partitions before yielding to the event loop."""


class Completion:
    """Completion of the prepared transactions."""

    __slots__ = ("clock", "markers", "randomness", "stats", "timer", "waiting")

    def __init__(
        self,
        markers: MarkerWriter,
        *,
        clock: Clock,
        timer: Timer,
        randomness: Randomness,
        stats: TransactionStats,
    ) -> None:
        self.markers = markers
        self.clock = clock
        self.timer = timer
        self.randomness = randomness
        self.stats = stats
        # Those in back-off; in the order in which they began to wait.
        self.waiting: dict[_Ending, TimerHandle] = {}

    async def on_image(self, old: "ClusterImage", new: "ClusterImage") -> None:
        """Write markers now whose partitions have got a leader, instead of after their back-off."""
        if old.topics is new.topics:
            return
        for count, ending in enumerate(list(self.waiting), 1):
            if ending.has_moved(old, new):
                ending.hurry()
            if not count % MOVES_PER_SLICE:
                await asyncio.sleep(0)

    def begin(
        self, shard: TransactionShard, metadata: TransactionMetadata, transition: Transition
    ) -> None:
        """Complete a transaction whose Prepare record is committed."""
        _Ending(self, shard, metadata, transition).send()

    def resume(self, shard: TransactionShard, metadata: TransactionMetadata) -> None:
        """Complete a transaction whose Prepare record was found in the log."""
        transition = metadata.prepare_complete(now_ms=self.clock.now_ms())
        logger.info(
            "transaction resumed transactional_id=%s outcome=%s partitions=%d",
            metadata.transactional_id,
            transition.state.label,
            len(metadata.partitions),
        )
        self.begin(shard, metadata, transition)


class _Ending:
    """The completion of one transaction."""

    __slots__ = ("_attempts", "_marker", "_metadata", "_parent", "_shard", "_transition")

    def __init__(
        self,
        parent: Completion,
        shard: TransactionShard,
        metadata: TransactionMetadata,
        transition: Transition,
    ) -> None:
        self._parent = parent
        self._shard = shard
        self._metadata = metadata
        self._transition = transition
        self._attempts = 0
        self._marker = TransactionMarker(
            metadata.producer_id,
            metadata.producer_epoch,
            metadata.is_commit,
            shard.coordinator_epoch,
            metadata.client_transaction_version,
        )

    def send(self) -> None:
        """Write the markers that are missing."""
        if self._shard.log.is_closed:
            return
        # In an order that a repeated run has, too.
        partitions = sorted(self._metadata.partitions)
        if partitions:
            self._parent.markers.write(self._marker, partitions, self._written)
        else:
            self._finish()

    def _written(self, errors: PartitionErrors) -> None:
        if self._shard.log.is_closed:
            return
        if len(errors) == len(self._metadata.partitions) and not any(errors.values()):
            self._finish()
            return
        finished = []
        failed: dict[TopicPartition, ErrorCode] = {}
        for topic_partition in self._metadata.partitions:
            code = errors.get(topic_partition, ErrorCode.UNKNOWN_SERVER_ERROR)
            if code in _NOTHING_LEFT:
                finished.append(topic_partition)
                if code is not ErrorCode.NONE:
                    self._log_skipped(topic_partition, code)
            else:
                failed[topic_partition] = code
        if not failed:
            self._finish()
            return
        self._metadata.drop_partitions(frozenset(finished))
        if ErrorCode.TRANSACTION_COORDINATOR_FENCED in failed.values():
            # A newer coordinator has taken over and ends it; the resignation is on its way.
            logger.warning(
                "coordinator is fenced, a newer one completes the transaction "
                "transactional_id=%s epoch=%d",
                self._metadata.transactional_id,
                self._shard.coordinator_epoch,
            )
            return
        self._log_failed(failed)
        self._parent.stats.marker_retries += 1
        self._wait()

    def _finish(self) -> None:
        self._shard.append_later(self._metadata, self._transition)
        if self._transition.state is TransactionState.COMPLETE_COMMIT:
            self._parent.stats.commits += 1
        else:
            self._parent.stats.aborts += 1

    def _wait(self) -> None:
        delay_ms = min(RETRY_DELAY_MS << min(self._attempts, 16), RETRY_DELAY_MAX_MS)
        self._attempts += 1
        # Those that failed together need not retry together.
        jitter_ms = self._parent.randomness.below(delay_ms // 2 + 1)
        self._parent.waiting[self] = self._parent.timer.call_later_ms(
            delay_ms - delay_ms // 4 + jitter_ms, self._waited
        )

    def _waited(self) -> None:
        del self._parent.waiting[self]
        self.send()

    def has_moved(self, old: "ClusterImage", new: "ClusterImage") -> bool:
        """Whether a partition without its marker has another leader, or an epoch, than before."""
        for topic_partition in self._metadata.partitions:
            was, now = old.partition(*topic_partition), new.partition(*topic_partition)
            if was is not now and (
                was is None
                or now is None
                or (was.leader, was.leader_epoch) != (now.leader, now.leader_epoch)
            ):
                return True
        return False

    def hurry(self) -> None:
        """End the back-off; the next one begins at its shortest."""
        handle = self._parent.waiting.pop(self, None)
        if handle is not None:
            handle.cancel()
            self._attempts = 0
            self.send()

    def _log_skipped(self, topic_partition: TopicPartition, code: ErrorCode) -> None:
        logger.info(
            "transaction marker skipped transactional_id=%s partition=%s reason=%s",
            self._metadata.transactional_id,
            topic_partition,
            code.name,
        )

    def _log_failed(self, failed: dict[TopicPartition, ErrorCode]) -> None:
        unexpected = {code.name for code in failed.values()} - {code.name for code in _QUIET}
        logger.log(
            logging.ERROR if unexpected else logging.INFO,
            "retrying transaction markers transactional_id=%s partitions=%d attempt=%d errors=%s",
            self._metadata.transactional_id,
            len(failed),
            self._attempts + 1,
            ",".join(sorted({code.name for code in failed.values()})),
        )
