"""The controller's role of a broker, and the way to the controller, put together.

alone      always the controller: changes go to its store, nothing is elected or forwarded
member     ControllerElection ──> ActiveController ──> Changes, in a controller epoch
           ControllerChannel  ──> Peers ──> the active controller
"""

import asyncio
from typing import Final

from broker.controller.active.active_controller import ActiveController
from broker.controller.active.guarded_writes import GuardedWrites
from broker.controller.channel import ControllerChannel
from broker.controller.controller import Controller
from broker.controller.election import ControllerElection
from broker.controller.forwarded_creation import ForwardedCreation
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.metadata_records import CONTROLLER_KEY
from broker.controller.store.metadata_store import MetadataStore
from broker.controller.store_compaction import StoreCompaction
from broker.controller.topics.lingering_brokers import LingeringBrokers
from broker.lifecycle.replication import receive_buffer_bytes
from broker.membership.membership import Membership
from broker.network.network import Network
from broker.peers.connection import PeerResources
from broker.peers.observer import PeerObservers
from broker.peers.peers import Peers, answer_buffers
from broker.peers.unreachable_peers import UnreachablePeers
from broker.requests.inter_broker import broker_client_id
from broker.runtime.timer import Timer
from storage.environment.alerts import AlertKind, Alerts
from storage.environment.clock import Clock
from storage.environment.environment import Environment

STORE: Final = "metadata store"
"""The alert's subject."""


class ClusterControl:
    """See the module. `stop` before the membership ends.

    Attributes:
        active: What this broker does while it is the controller.
        channel: The way to the controller.
        election: None on a single node.
    """

    def __init__(
        self,
        controller: Controller,
        store: MetadataStore,
        membership: Membership,
        peers: Peers | None,
        environment: Environment,
        alerts: Alerts | None = None,
    ) -> None:
        """Connect the parts.

        Args:
            controller: Of this broker.
            store: Of the cluster, or of this node.
            membership: Of this broker.
            peers: None on a single node.
            environment: Of the broker.
            alerts: Get one while the store has no room for a change of this controller; None: the
                store is a file of this node, whose directory has the alert.
        """
        self._alerts = alerts
        self._controller = controller
        self._store = store
        node_id = controller.settings.node_id
        timer = environment.timer
        self.election: ControllerElection | None = None
        self._compaction: StoreCompaction | None = None
        self.active = ActiveController(
            node_id=node_id,
            changes=controller.changes,
            image=lambda: controller.image,
            rules=controller.config_rules,
            writes=self._writes,
            timer=timer,
            clock=environment.clock,
        )
        self.channel = ControllerChannel(
            self.active,
            node_id=node_id,
            image=lambda: controller.image,
            peers=peers,
            catch_up=self._catch_up,
            valid_until_ms=lambda: membership.validity.until_ms,
            timer=timer,
            clock=environment.clock,
        )
        if peers is None:
            return
        election = self.election = ControllerElection(
            store,
            node_id=node_id,
            member=membership,
            timer=timer,
            elected=self.active,
            start=controller.changes.start_unawaited,
        )
        self._compaction = StoreCompaction(
            store,
            timer,
            is_controller=lambda: election.epoch != 0,
            revision=lambda: controller.image.revision,
        )
        creation = ForwardedCreation(
            self.channel, lambda: controller.image, client_id=broker_client_id(node_id)
        )
        controller.create_by_controller = creation.create
        controller.lingering = LingeringBrokers(environment.clock)
        controller.subscribe_now(lambda old, new: controller.lingering.image_changed(old, new))
        controller.subscribe_now(self.active.on_image)
        controller.subscribe_now(self.channel.on_image)
        controller.subscribe_now(election.on_image)
        election.on_image(None, controller.image)

    def _writes(self, epoch: int) -> GuardedWrites:
        def deposed(epoch: int) -> None:
            if self.election is not None:
                self.election.on_deposed(epoch)

        return GuardedWrites(
            self._store,
            node_id=self._controller.settings.node_id,
            epoch=epoch,
            timer=self.active.timer,
            on_deposed=deposed,
            on_full=self._store_full,
        )

    def _store_full(self, what: str) -> None:
        if self._alerts is None:
            return
        if not what:
            self._alerts.clear(AlertKind.METADATA_STORE_FULL, STORE)
            return
        self._alerts.set(
            AlertKind.METADATA_STORE_FULL,
            STORE,
            "the metadata store has no room for a change of the cluster: a broker that fails is "
            "not replaced, one that is started is not let in, and topics cannot be created. Make "
            "room: in etcd by compaction, `etcdctl defrag`, then `etcdctl alarm disarm`; its quota "
            "is --quota-backend-bytes",
        )

    async def _catch_up(self) -> None:
        newest = await self._store.range(CONTROLLER_KEY, limit=1)
        await self._controller.reach(newest.revision)

    def stop(self) -> None:
        """Resign, so that another broker becomes the controller once this one's lease ends."""
        if self._compaction is not None:
            self._compaction.close()
        if self.election is not None:
            self.election.stop()


def connect_peers(
    controller: Controller,
    network: Network,
    loop: asyncio.AbstractEventLoop,
    timer: Timer,
    clock: Clock,
) -> Peers:
    """Connections to the other brokers, which follow the image."""
    settings = controller.settings
    peers = Peers(
        settings.node_id,
        settings.inter_broker_listener_name,
        PeerResources(
            poller=loop,
            connector=network.connector(
                loop,
                receive_buffer_bytes=receive_buffer_bytes(
                    settings.replica_socket_receive_buffer_bytes
                ),
            ),
            timer=timer,
            clock=clock,
            buffers=answer_buffers(),
            observers=PeerObservers(),
            client_id=broker_client_id(settings.node_id),
        ),
    )

    def follow(old: ClusterImage, new: ClusterImage) -> None:
        if old.brokers is not new.brokers:
            peers.update(new.brokers)

    def takes_part(node_id: int) -> bool:
        broker = controller.image.brokers.get(node_id)
        return broker is not None and not broker.is_fenced

    peers.observe(UnreachablePeers(clock, takes_part))
    peers.update(controller.image.brokers)
    controller.subscribe_now(follow)
    return peers
