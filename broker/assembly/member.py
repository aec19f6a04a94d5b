"""A member's side to its cluster: lease, peers, the controller's part, ISR changes, directories.

    begun  ──> peers follow the image ──> election, channel to the controller
           ──> ISR changes, doubt ──> fetchers ──> directories are reported
    left   <── fetchers <── peers <── controller's part <── directories <── doubt <── ISR changes

Imported by members of a cluster alone.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from broker.lifecycle.cluster_control import ClusterControl, connect_peers
from broker.lifecycle.cluster_directories import ClusterDirectories
from broker.lifecycle.controlled_shutdown import hand_over
from broker.lifecycle.log_ends import LogEnds
from broker.lifecycle.membership import begin_to_follow, watch_peers
from broker.lifecycle.replication import build_fetchers, build_isr_changes
from broker.replication.cut_segment_repair import CutSegmentRepair
from broker.replication.doubt_watch import DoubtWatch

if TYPE_CHECKING:
    from broker.assembly.local_parts import LocalParts
    from broker.controller.controller import Controller
    from broker.controller.store.metadata_store import MetadataStore
    from broker.lifecycle.disk_failures import DiskFailures
    from broker.membership.leased_membership import LeasedMembership
    from broker.node.dynamic_settings import DynamicSettings
    from broker.node.node_directories import NodeDirectories
    from broker.remote.remote_storage import RemoteStorage
    from broker.replicas.logs.log_lifecycle import LogLifecycle
    from broker.replication.fetcher.fetchers import Fetchers
    from broker.replication.quota import ReplicationQuota


class Member:
    """See the module, and `ClusterSide`; made by `begin`."""

    is_alone = False

    @classmethod
    async def begin(
        cls,
        local: "LocalParts",
        controller: "Controller",
        store: "MetadataStore",
        fail: Callable[[str], None],
    ) -> Self:
        """End what the process before this one held; take part in what needs no logs.

        Args:
            local: Of this broker.
            controller: Open.
            store: Of the cluster.
            fail: Ends the broker, with a reason for the operator.

        Raises:
            StoreError: The store cannot be used; nothing has begun, and it may be called again.
            StartupError: The cluster refuses this broker.
        """
        membership = await begin_to_follow(
            controller, store, local.log_manager, environment=local.environment, fail=fail
        )
        return cls(local, controller, store, membership, fail)

    def __init__(
        self,
        local: "LocalParts",
        controller: "Controller",
        store: "MetadataStore",
        membership: "LeasedMembership",
        fail: Callable[[str], None],
    ) -> None:
        self._local = local
        self._controller = controller
        self._store = store
        self._fail = fail
        self._membership = membership
        self.membership = membership
        self.peers = connect_peers(controller, local.network, local.loop, local.timer, local.clock)
        watch_peers(controller, self.peers, store, membership, local.environment)
        self.control = ClusterControl(
            controller, store, membership, self.peers, local.environment, local.alerts
        )
        replicas = local.replicas
        self.isr_changes = build_isr_changes(
            controller,
            self.control.channel,
            membership,
            replicas,
            clock=local.clock,
            timer=local.timer,
        )
        watch = self._doubt_watch = DoubtWatch(
            replicas.terms, local.clock, local.timer, led=replicas.partitions
        )
        watch.start()
        controller.is_isolated = lambda: watch.is_isolated
        ends = LogEnds(local.settings.node_id, self.peers, replicas)
        self.control.active.recovery.ask = ends.ask
        self._cut_segments = CutSegmentRepair(
            local.settings.node_id,
            local.log_manager.cut_segments,
            self.peers,
            image=lambda: controller.image,
            disk=local.disk,
            clock=local.clock,
        )
        replicas.on_cut_segment = self._cut_segments.found
        self.fetchers: Fetchers | None = None
        self._directories: ClusterDirectories | None = None

    def follow_leaders(
        self,
        dynamic: "DynamicSettings",
        remote: "RemoteStorage | None",
        quota: "ReplicationQuota",
    ) -> "Fetchers":
        """Fetch over the connections to peers; nothing is followed yet."""
        self.fetchers = build_fetchers(
            self.peers,
            self._local.log_manager,
            dynamic,
            remote=remote,
            quota=quota,
            broker_epoch=lambda: self._membership.broker_epoch,
            loop=self._local.loop,
            timer=self._local.timer,
            clock=self._local.clock,
        )
        return self.fetchers

    def report_directories(
        self, lifecycle: "LogLifecycle", directories: "NodeDirectories", failures: "DiskFailures"
    ) -> None:
        """See `ClusterDirectories`."""
        self._directories = ClusterDirectories(
            self._controller,
            self.control.channel,
            self._membership,
            self._local.log_manager,
            self._store,
            self._local.environment,
            self._fail,
        )
        self._directories.follow(lifecycle, directories)
        failures.on_offline = self._directories.directory_offline

    def joined(self) -> None:
        """What waited for a broker epoch is reported; producer ids are there before producers."""
        self._controller.producer_ids.prefetch()
        if self._directories is not None:
            self._directories.joined()

    async def hand_over(self) -> None:
        """Ask the controller to take what others can have; see `controlled_shutdown`."""
        if self._local.settings.controlled_shutdown_enable:
            await hand_over(
                self._controller,
                self._store,
                self._membership,
                timer=self._local.timer,
                clock=self._local.clock,
            )

    async def leave(self) -> None:
        """In the order of the module's drawing."""
        await self.isr_changes.aclose()
        self._doubt_watch.close()
        if self._directories is not None:
            await self._directories.aclose()
        self.control.stop()
        self.peers.close()
        await self._cut_segments.aclose()
        if self.fetchers is not None:
            await self.fetchers.close()
        await self._membership.leave()

    @property
    def marked_epoch(self) -> int:
        """The broker epoch: the next process asks whether it was the last to write here."""
        return self._membership.broker_epoch
