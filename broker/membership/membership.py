"""Membership: what the rest of the broker sees of its place in the cluster."""

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from broker.controller.images.broker_records import BrokerEndpoint
from broker.controller.images.cluster_image import ClusterImage
from broker.membership.validity import Validity

SOLE_EPOCH: Final = 0
"""Broker epoch of a single node, in each life of it: there is no other to be taken for it."""


SyncLogs = Callable[[], Awaitable[bool]]


class Membership(Protocol):
    """A broker's place in its cluster.

    Attributes:
        broker_epoch: Names this life of the process; 0 on a single node, -1 before `join`.
        validity: Until when what is known of the cluster is good.
        lease: What other keys of this broker are put under; 0: none now, and on a single node.
        store_away_ms: How long the metadata store has not answered, or refuses this broker; 0: it
            answers, or is this node's.
        hindrance: What the store last said to this broker's attempts to become or to be a member
            again; empty: none failed, or there are none.
    """

    broker_epoch: int
    validity: Validity
    hindrance: str

    @property
    def lease(self) -> int:
        """See above."""
        ...

    @property
    def store_away_ms(self) -> float:
        """See above."""
        ...

    def advertise(self, endpoints: Mapping[str, BrokerEndpoint]) -> None:
        """Take what is advertised per listener: once before `join`, and again when it changes."""
        ...

    async def join(self, sync_logs: SyncLogs) -> None:
        """Become a member, once logs are open.

        Args:
            sync_logs: Syncs what the process before has left unsynced; False: a disk refused.

        Raises:
            MembershipError: The cluster has another broker of this id.
            StoreError: The store refuses; one that does not answer is waited for.
        """
        ...

    def is_let_in(self, image: ClusterImage) -> bool:
        """Whether the controller lets this life of the process take roles."""
        ...

    def disk_failed(self) -> None:
        """A log directory has failed: what the kernel had of it may be lost."""
        ...

    def logs_lost(self) -> None:
        """Logs that this broker is counted on for are not there; before `join`."""
        ...

    def acted(self) -> None:
        """A partition has taken a role in a leader epoch; quick, as many do in one turn."""
        ...

    async def halt(self) -> None:
        """Act by nothing any more, and keep no lease: it ends by itself."""
        ...

    async def leave(self) -> None:
        """End the membership, last of all; harmless without one."""
        ...


class MembershipError(Exception):
    """This process cannot be a broker of the cluster; with a sentence for the operator."""


class SoleMembership:
    """Of a single node: it is all brokers there are, and places itself in the image.

    Nothing is written for it: a start costs no transaction more, and a store of one node has in it
    what it had before there were clusters.
    """

    def __init__(self, node_id: int, place: Callable[[Mapping[str, BrokerEndpoint]], None]) -> None:
        self.broker_epoch = SOLE_EPOCH
        self.lease = 0
        self.store_away_ms = 0.0
        self.hindrance = ""
        self.validity = Validity(math.inf)
        self._node_id = node_id
        self._place = place

    def advertise(self, endpoints: Mapping[str, BrokerEndpoint]) -> None:
        """Place this node in the image; see `Membership.advertise`."""
        self._place(endpoints)

    async def join(self, sync_logs: SyncLogs) -> None:
        """It has placed itself already."""

    def is_let_in(self, image: ClusterImage) -> bool:
        """From the moment it has placed itself."""
        return self._node_id in image.brokers

    def disk_failed(self) -> None:
        """No other broker could take its place."""

    def logs_lost(self) -> None:
        """They begin in another leader epoch (`broker.replicas.logs.new_epochs`)."""

    def acted(self) -> None:
        """Its store is in its own directories."""

    async def halt(self) -> None:
        """Nothing to end."""

    async def leave(self) -> None:
        """Nothing to end."""
