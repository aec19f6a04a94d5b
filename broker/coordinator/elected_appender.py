"""The appender of one election: it writes in the leader epoch of the election, and in no other.

A shard's memory is what its log says up to its election. In another epoch, also one of this broker,
records of another leader may lie in between: what was decided without them is refused.

    partition led in the election's epoch ──> appended
    led in another epoch, or not led ───────> NOT_LEADER_OR_FOLLOWER, nothing is written

Source: Kafka, CoordinatorPartitionWriter.java, where the epoch is checked by the replica manager.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from protocol.error_codes import ErrorCode
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.replicas.replica_manager import ReplicaManager
    from storage.producers.verification import TransactionTerms


class ElectedAppender:
    """See the module; a `CoordinatorAppender`."""

    __slots__ = ("_leader_epoch", "_replicas", "_timeout_ms")

    def __init__(self, replicas: "ReplicaManager", leader_epoch: int, *, timeout_ms: float) -> None:
        """`timeout_ms`: of appends that name none."""
        self._replicas = replicas
        self._leader_epoch = leader_epoch
        self._timeout_ms = timeout_ms

    def takes_records(self, topic_partition: TopicPartition) -> bool:
        """See `ReplicaManager.takes_records`."""
        return self._replicas.takes_records(topic_partition)

    def append_coordinated(
        self,
        topic_partition: TopicPartition,
        batch: bytearray,
        on_committed: Callable[[ErrorCode, int], None],
        *,
        terms: "TransactionTerms | None" = None,
        timeout_ms: float | None = None,
    ) -> int:
        """Append a batch; see `ReplicaManager.append_coordinated`."""
        return self._replicas.append_coordinated(
            topic_partition,
            batch,
            on_committed,
            terms=terms,
            timeout_ms=self._timeout_ms if timeout_ms is None else timeout_ms,
            leader_epoch=self._leader_epoch,
        )
