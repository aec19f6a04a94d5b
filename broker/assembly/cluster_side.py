"""The side of a broker that looks at the cluster: alone, or a member beside others.

    Alone     one node on SQLite: always let in, always the controller, follows no broker
    Member    a lease in the store, an election, peers; takes part only while the cluster lets it

The rest of a broker is put together in one way, whichever side it has.
"""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker.lifecycle.cluster_control import ClusterControl
    from broker.lifecycle.disk_failures import DiskFailures
    from broker.membership.membership import Membership
    from broker.node.dynamic_settings import DynamicSettings
    from broker.node.node_directories import NodeDirectories
    from broker.peers.peers import Peers
    from broker.remote.remote_storage import RemoteStorage
    from broker.replicas.logs.log_lifecycle import LogLifecycle
    from broker.replicas.role_reconciler import NoFetchers
    from broker.replication.fetcher.fetchers import Fetchers
    from broker.replication.isr_changes import IsrChanges
    from broker.replication.quota import ReplicationQuota


class ClusterSide(Protocol):
    """See the module. Built when the node is open; runs on the loop's thread.

    Attributes:
        is_alone: There is no other broker, and there never will be.
        membership: Begun; `join` comes when the logs are open.
        control: What this broker does as the controller, and the way to the controller.
        peers: Connections to the other brokers; as the two below, None for a broker alone.
        isr_changes: What asks the controller for other ISRs.
        fetchers: None also before `follow_leaders`.
    """

    is_alone: bool

    @property
    def membership(self) -> "Membership":
        """See above, as the four below."""
        ...

    @property
    def control(self) -> "ClusterControl": ...  # noqa: D102  the class says it

    @property
    def peers(self) -> "Peers | None": ...  # noqa: D102  the class says it

    @property
    def isr_changes(self) -> "IsrChanges | None": ...  # noqa: D102  the class says it

    @property
    def fetchers(self) -> "Fetchers | None": ...  # noqa: D102  the class says it

    def follow_leaders(
        self,
        dynamic: "DynamicSettings",
        remote: "RemoteStorage | None",
        quota: "ReplicationQuota",
    ) -> "Fetchers | NoFetchers":
        """What fetches from the leaders of partitions that are followed here.

        Args:
            dynamic: Settings as they are now.
            remote: For logs that begin in remote storage.
            quota: A follower's.
        """
        ...

    def report_directories(
        self, lifecycle: "LogLifecycle", directories: "NodeDirectories", failures: "DiskFailures"
    ) -> None:
        """Let the controller hear where logs lie, and which directories have failed."""
        ...

    def joined(self) -> None:
        """The membership has joined."""
        ...

    async def hand_over(self) -> None:
        """Give leaderships away before the broker stops, where others can have them."""
        ...

    async def leave(self) -> None:
        """End, last the membership; nothing is served any more."""
        ...

    @property
    def marked_epoch(self) -> int:
        """What a clean-shutdown marker says of this life; -1: nothing."""
        ...
