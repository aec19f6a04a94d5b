"""Which replica a consumer is to read from: the one in its rack (KIP-392).

    the leader is in the client's rack                  the leader
    followers in it: in sync, live, and their logs      the one with the greatest log end; of equal
    reach from the fetch offset or before to it         ones the one caught up last; then by node id
    none, or the client has no rack                     the leader

A follower outside the ISR is never named: a consumer would fall behind with it, and be sent there
again whenever it asks the leader. What a follower has is known from its last fetch.

Source: Kafka, RackAwareReplicaSelector.java, ReplicaManager.scala (findPreferredReadReplica).
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.controller.images.broker_records import BrokerImage
    from broker.replicas.partition import Partition
    from broker.replication.replica_progress import ReplicaProgress

LEADER: Final = -1
"""Of `select`: read from the leader."""


class RackAwareReplicaSelector:
    """See the module. On the loop's thread only."""

    __slots__ = ("_brokers", "_node_id")

    def __init__(self, node_id: int, brokers: "Callable[[], Mapping[int, BrokerImage]]") -> None:
        """`node_id`: this broker; `brokers`: those of the newest image."""
        self._node_id = node_id
        self._brokers = brokers

    def select(self, partition: "Partition", offset: int, rack: str, listener: str) -> int:
        """The follower to read from.

        Args:
            partition: Led here, else it is not for this broker to say.
            offset: That the client wants next.
            rack: The client's, not empty.
            listener: The client's: the follower must be reachable there.

        Returns:
            A node id, or `LEADER`.
        """
        leading = partition.leading
        if leading is None:
            return LEADER
        brokers = self._brokers()
        leader = brokers.get(self._node_id)
        if leader is not None and leader.rack == rack:
            return LEADER
        best: ReplicaProgress | None = None
        for follower in leading.followers:
            if (
                follower.node_id in leading.isr
                and follower.log_start_offset <= offset <= follower.end_offset
                and _is_reachable(brokers.get(follower.node_id), follower, rack, listener)
                and (best is None or _order(follower) > _order(best))
            ):
                best = follower
        return LEADER if best is None else best.node_id


def _is_reachable(
    broker: "BrokerImage | None", follower: "ReplicaProgress", rack: str, listener: str
) -> bool:
    return (
        broker is not None
        and broker.rack == rack
        and broker.epoch == follower.broker_epoch
        and broker.is_live
        and not broker.is_fenced
        and not broker.is_draining
        and listener in broker.listeners
    )


def _order(follower: "ReplicaProgress") -> tuple[int, float, int]:
    return follower.end_offset, follower.caught_up_ms, follower.node_id
