"""The terms of replication: limits and look-ups that all partitions led here share."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import UUID

from broker.replication.listening import Listening

if TYPE_CHECKING:
    from broker.controller.images.broker_records import BrokerImage
    from broker.replicas.partition import Partition
    from broker.replication.quota import ReplicationQuota

EpochOf = Callable[[int], int | None]
"""Broker epoch by node id."""

OfflineIn = Callable[[int, "UUID | None"], bool]
"""Whether a log directory of a node is known not to work; of one that is not known, no."""


class LastFetch(NamedTuple):
    """When a follower fetched last, by one of its sessions; on the clock's monotonic time."""

    node_id: int
    broker_epoch: int
    fetched_ms: float


class ValidUntil(Protocol):
    """How long what this broker knows of the cluster is good: `Membership.validity`."""

    @property
    def until_ms(self) -> float:
        """On the clock's monotonic time."""
        ...


class AlwaysValid:
    """The validity of a broker that is alone."""

    __slots__ = ()

    until_ms = math.inf


class ReplicationTerms:
    """See the module; may be changed while partitions are led.

    Attributes:
        lag_time_max_ms: `replica.lag.time.max.ms`: a follower that has not caught up for longer
            leaves the ISR.
        fetch_wait_max_ms: `replica.fetch.wait.max.ms`: a live follower fetches at least so often.
        registered_epoch: Broker epoch of a node; None of one that is not registered.
        member_epoch: Broker epoch of a node that is registered, not fenced, and has its lease.
        live_epoch: Broker epoch of a node that may be in an ISR: registered, not fenced, with its
            lease, and not about to stop; None for any other (KIP-841, KIP-903).
        is_offline: Whether a replica's log directory on a node is known not to work (KIP-858), or
            to have no room.
        validity: Of this broker's membership.
        leader_quota: How fast followers that are out of sync may read here; None: without limit.
        listening: For how long a follower has been silent.
        last_fetches: Of all followers' sessions here.
        isr_due: Called when the ISR of a partition may have to change; None: nobody asks for it.
    """

    __slots__ = (
        "fetch_wait_max_ms",
        "is_offline",
        "isr_due",
        "lag_time_max_ms",
        "last_fetches",
        "leader_quota",
        "listening",
        "live_epoch",
        "member_epoch",
        "registered_epoch",
        "validity",
    )

    def __init__(
        self,
        *,
        lag_time_max_ms: float = 30_000.0,
        fetch_wait_max_ms: float = 500.0,
        registered_epoch: "EpochOf | None" = None,
        live_epoch: "EpochOf | None" = None,
    ) -> None:
        """Without look-ups there is no other broker, and no follower."""
        self.lag_time_max_ms = lag_time_max_ms
        self.fetch_wait_max_ms = fetch_wait_max_ms
        self.registered_epoch = registered_epoch or _nobody_lives
        self.live_epoch = live_epoch or _nobody_lives
        self.member_epoch: EpochOf = _nobody_lives
        self.is_offline: OfflineIn = _nothing_fails
        self.validity: ValidUntil = AlwaysValid()
        self.listening = Listening()
        self.last_fetches: Callable[[], Iterable[LastFetch]] = tuple
        self.isr_due: Callable[[Partition], None] | None = None
        self.leader_quota: ReplicationQuota | None = None

    @property
    def limiting_quota(self) -> "ReplicationQuota | None":
        """`leader_quota` where it has a limit now."""
        quota = self.leader_quota
        return quota if quota is not None and quota.is_limited else None

    def look_up(self, node_id: int, brokers: "Callable[[], Mapping[int, BrokerImage]]") -> None:
        """Take the epochs of the others from the newest image.

        Args:
            node_id: This broker, which follows nobody in what it leads.
            brokers: Those of the newest image.
        """

        def registered(node: int) -> int | None:
            broker = brokers().get(node)
            return None if broker is None or node == node_id else broker.epoch

        def member(node: int) -> int | None:
            broker = brokers().get(node)
            if broker is None or node == node_id or broker.is_fenced or not broker.is_live:
                return None
            return broker.epoch

        def live(node: int) -> int | None:
            broker = brokers().get(node)
            if broker is None or broker.is_fenced or broker.is_draining or not broker.is_live:
                return None
            return broker.epoch

        def offline(node: int, directory_id: UUID | None) -> bool:
            broker = brokers().get(node)
            return (
                broker is not None
                and directory_id is not None
                and (not broker.has_online(directory_id) or directory_id in broker.full_directories)
            )

        self.registered_epoch = registered
        self.member_epoch = member
        self.live_epoch = live
        self.is_offline = offline


def _nothing_fails(_node_id: int, _directory_id: "UUID | None") -> bool:
    return False


def _nobody_lives(_node_id: int) -> int | None:
    return None
