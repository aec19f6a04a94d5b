"""The coordinators of a broker, by the internal topic that has their state.

    __consumer_offsets     GroupCoordinator
    __transaction_state    TransactionCoordinator
    __share_group_state    ShareCoordinator <── SharePartitions persist through it

With other brokers (`peers`) routers stand between halves that may be on different ones: in front of
the partitions' markers, of the transaction coordinator, and of the share coordinator.

They start in this order and stop in the opposite one. A partition of such a topic that is served
makes the broker coordinator of what it has; one that is resigned, or whose log is not served, ends
that or makes it unavailable.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.controller.images.topic_names import SHARE_GROUP_STATE
from broker.coordinator.peer_batches import PeerRequests, Routes
from broker.coordinator.persister import SharePersister
from broker.groups.coordinator import OFFSETS_TOPIC, GroupCoordinator
from broker.share.delivery.share_partitions import SharePartitions
from broker.share.routing.end_offsets import EndOffsets
from broker.share.routing.persister_router import PersisterRouter
from broker.share.state.share_coordinator import ShareCoordinator
from broker.transactions.coordinator.transaction_coordinator import (
    TRANSACTION_TOPIC,
    TransactionCoordinator,
)
from broker.transactions.interfaces import MarkerWriter, PartitionRegistrar
from broker.transactions.partitions.markers import LocalMarkerWriter
from broker.transactions.routing.marker_router import MarkerRouter
from broker.transactions.routing.registrar_router import RegistrarRouter
from storage.environment.alerts import Alerts
from storage.environment.environment import Environment
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.controller.images.cluster_image import ClusterImage
    from broker.network.iteration_end import IterationEnd
    from broker.replicas.replica_manager import ReplicaManager
    from broker.runtime.timer import TimerHandle
    from config.broker import BrokerConfig

UNSERVED_AFTER_MS = 10_000.0
"""After which the log of a partition that is led here should have been created."""

Coordinator = GroupCoordinator | TransactionCoordinator | ShareCoordinator


class Coordinators:
    """See the module. `start` once, `stop` once, also when `start` has failed.

    Attributes:
        groups: Of consumer and share groups, and their offsets.
        transactions: Of transactional ids.
        registrar: Verifies partitions of transactions, whichever broker coordinates them.
        share_state: Of what share groups have persisted.
        share: Of records in flight to share groups.
        end_offsets: Of what share groups read, whichever broker leads it.
    """

    def __init__(
        self,
        settings: "BrokerConfig",
        environment: Environment,
        replicas: "ReplicaManager",
        controller: "Controller",
        *,
        iteration_end: "IterationEnd",
        call_soon: Callable[[Callable[[], None]], object],
        alerts: Alerts,
        peers: PeerRequests | None = None,
    ) -> None:
        """Build all of them.

        Args:
            settings: Of the broker.
            environment: Of the broker.
            replicas: Appends to, and reads, the internal topics.
            controller: Topics and configs; creates the internal topics.
            iteration_end: Until when commits are gathered.
            call_soon: The event loop's.
            alerts: Get one for each partition that cannot be coordinated.
            peers: Other brokers; None: this broker leads everything there is.
        """
        self._replicas = replicas
        self._node_id = settings.node_id
        self._timer = environment.timer
        self._image: Callable[[], ClusterImage] = lambda: controller.image
        self._look: TimerHandle | None = None
        self.groups = GroupCoordinator(
            settings,
            environment,
            replicas,
            controller,
            at_iteration_end=iteration_end.call,
            alerts=alerts,
        )
        markers: MarkerWriter = LocalMarkerWriter(replicas, self.groups, soon=call_soon)
        routes = Routes(settings.node_id, lambda: controller.image)
        if peers is not None:
            markers = MarkerRouter(markers, routes=routes, peers=peers, soon=iteration_end.call)
        self.transactions = TransactionCoordinator(
            settings, environment, replicas, controller, markers, alerts, soon=call_soon
        )
        self.registrar: PartitionRegistrar = self.transactions
        if peers is not None:
            self.registrar = RegistrarRouter(
                self.transactions,
                topic=TRANSACTION_TOPIC,
                partition_for=self.transactions.partition_for,
                routes=routes,
                peers=peers,
                soon=iteration_end.call,
            )
        self.share_state = ShareCoordinator(settings, environment, replicas, controller, alerts)
        self._share_router: PersisterRouter | None = None
        persister: SharePersister = self.share_state
        if peers is not None:
            persister = self._share_router = PersisterRouter(
                self.share_state,
                topic=SHARE_GROUP_STATE,
                routes=routes,
                peers=peers,
                soon=iteration_end.call,
                environment=environment,
                timeout_ms=settings.share_coordinator_write_timeout_ms,
            )
        self.share = SharePartitions(
            settings,
            environment,
            replicas,
            controller,
            persister,
            lambda group_id: controller.share_group_config(group_id).delivery,
        )
        self.end_offsets = EndOffsets(
            replicas,
            routes=routes,
            peers=peers,
            timeout_ms=settings.share_coordinator_write_timeout_ms,
        )
        self.groups.share_persister = persister
        self.groups.on_share_state_altered = self.share.forget_if_unread
        self._by_topic: dict[str, Coordinator] = {
            OFFSETS_TOPIC: self.groups,
            TRANSACTION_TOPIC: self.transactions,
            SHARE_GROUP_STATE: self.share_state,
        }
        self._started: list[Coordinator] = []

    async def start(self) -> None:
        """Coordinate what is served from now on."""
        for coordinator in self._by_topic.values():
            await coordinator.start()
            self._started.append(coordinator)

    async def stop(self) -> None:
        """Resign everything."""
        if self._look is not None:
            self._look.cancel()
        await self.share.stop()
        if self._share_router is not None:
            await self._share_router.stop()
        while self._started:
            await self._started.pop().stop()

    @property
    def is_reading(self) -> bool:
        """Whether state of a partition that is led here is being read; see there."""
        return any(coordinator.is_reading for coordinator in self._by_topic.values())

    @property
    def waiting_count(self) -> int:
        """Partitions that are not read before other brokers have their replicas in sync."""
        return sum(coordinator.waiting_count for coordinator in self._by_topic.values())

    def on_elected(self, topic_partition: TopicPartition, leader_epoch: int) -> None:
        """A partition is served: coordinate what it has, if it is one of an internal topic."""
        coordinator = self._by_topic.get(topic_partition.topic)
        if coordinator is not None:
            coordinator.on_elected(topic_partition.partition, leader_epoch)

    def on_resigned(self, topic_partition: TopicPartition, leader_epoch: int | None = None) -> None:
        """This broker does not lead a partition in `leader_epoch`; None: its log is not here."""
        coordinator = self._by_topic.get(topic_partition.topic)
        if coordinator is not None:
            coordinator.on_resigned(topic_partition.partition, leader_epoch)

    def set_unavailable(self, topic_partition: TopicPartition, reason: str) -> None:
        """Report a partition whose state cannot be coordinated: an alert, and a metric."""
        coordinator = self._by_topic.get(topic_partition.topic)
        if coordinator is not None:
            coordinator.unavailable.set(topic_partition.partition, reason)

    def report_unserved(self, image: "ClusterImage") -> None:
        """Set unavailable what this broker leads without its log, once logs have been loaded."""
        for topic, index in self._unserved(image):
            self._by_topic[topic].unavailable.set(index, "its log is not served here")

    def look_for_unserved(self, old: "ClusterImage", new: "ClusterImage") -> None:
        """An internal topic was created, or got more partitions: look later whether it is served.

        Not now: its logs are being created. The image that counts is the newest then.
        """
        is_changed = any(
            old.topics.get(name) is not new.topics.get(name) for name in self._by_topic
        )
        if is_changed and self._look is None and self._unserved(new):
            self._look = self._timer.call_later_ms(UNSERVED_AFTER_MS, self._look_now)

    def _look_now(self) -> None:
        self._look = None
        self.report_unserved(self._image())

    def _unserved(self, image: "ClusterImage") -> list[TopicPartition]:
        return [
            TopicPartition(name, partition.index)
            for name in self._by_topic
            if name in image.topics
            for partition in image.topics[name].partitions
            if partition.leader == self._node_id
            and self._replicas.replica_of(name, partition.index) is None
        ]
