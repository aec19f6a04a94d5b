"""The composition root: the parts of one broker, in the order in which they start and stop.

__init__   what waits for nothing (`broker.assembly.local_parts`)
start      node opened (directories, metadata store, controller) ─> side to the cluster ─> remote
─> coordinators ─> partitions ─> APIs ─> listeners ─> logs load in threads ─> the cluster is joined
stop       leaderships handed over ─> loading ends, nothing is accepted ─> maintenance, movers
─> coordinators ─> parked requests answered ─> network ─> remote storage ─> side to the cluster
─> controller ─> writes end, logs flushed and marked clean ─> metadata store ─> locks
"""

import asyncio
import logging
from typing import TYPE_CHECKING

from broker.assembly.admin_port import AdminPort
from broker.assembly.alone import Alone
from broker.assembly.hosted_partitions import HostedPartitions
from broker.assembly.local_parts import LocalParts
from broker.assembly.serving import build_network, build_services, listen
from broker.controller.store.metadata_store import StoreError
from broker.lifecycle.apis import build_apis
from broker.lifecycle.cluster_page import ClusterPage
from broker.lifecycle.coordinators import Coordinators
from broker.lifecycle.health import HealthPages
from broker.lifecycle.live_settings import follow_settings
from broker.lifecycle.readiness import Readiness
from broker.lifecycle.remote import build_remote
from broker.node.cluster_node import WAY_OUT
from broker.node.dynamic_settings import DynamicSettings
from broker.node.node_startup import NodeStartup, OpenNode
from broker.node.stopped_node import metadata_directory_of
from broker.runtime.machine import LOCAL_MACHINE, Machine
from broker.runtime.startup_errors import StartupError
from config.version import VERSION
from storage.environment.alerts import AlertKind
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.assembly.cluster_side import ClusterSide
    from broker.controller.controller import Controller
    from broker.controller.images.cluster_image import ClusterImage
    from broker.controller.store.metadata_store import MetadataStore
    from broker.groups.coordinator import GroupCoordinator
    from broker.membership.membership import Membership
    from broker.metrics.page import MetricsPage
    from broker.network.network import Network
    from broker.network.server import NetworkServer
    from broker.remote.remote_storage import RemoteStorage
    from broker.replicas.background import Background
    from broker.requests.kafka_apis import KafkaApis
    from broker.services import Services
    from broker.share.delivery.share_partitions import SharePartitions
    from broker.share.state.share_coordinator import ShareCoordinator
    from broker.transactions.coordinator.transaction_coordinator import TransactionCoordinator
    from config.broker import BrokerConfig
    from storage.environment.clock import Clock
    from storage.environment.descriptors import DescriptorShares
    from storage.environment.filesystem import Filesystem
    from storage.environment.randomness import Randomness
    from tiered.tier import OpenTier

LOGGER = logging.getLogger(__name__)

STOP_TIMEOUT_S = 10.0


class Broker:
    """See the module. `start` once, `stop` once; `failed` is done when it cannot go on."""

    def __init__(
        self,
        settings: "BrokerConfig",
        *,
        clock: "Clock | None" = None,
        randomness: "Randomness | None" = None,
        filesystem: "Filesystem | None" = None,
        descriptors: "DescriptorShares | None" = None,
        network: "Network | None" = None,
        machine: Machine = LOCAL_MACHINE,
        store: "MetadataStore | None" = None,
        open_tier: "OpenTier | None" = None,
    ) -> None:
        """Wait for nothing yet.

        Args:
            settings: All of them.
            clock: The system's, if not given; so are the two below.
            randomness: Of ids and jitter.
            filesystem: With the log directories.
            descriptors: How many files and connections there may be.
            network: Where it listens, and connects to others; None: the machine's.
            machine: What it runs threads and processes on.
            store: Of a cluster, which this broker becomes a member of; the caller's to close.
                None: it is alone, and its store is a file in its log directories.
            open_tier: What moves remote bytes; None: as the settings say.
        """
        local = self.local = LocalParts(
            settings,
            clock=clock,
            randomness=randomness,
            filesystem=filesystem,
            descriptors=descriptors,
            network=network,
            machine=machine,
        )
        self.settings = settings
        self._open_tier = open_tier
        self.version = VERSION
        self.log_manager = local.log_manager
        self.replicas = local.replicas
        self.failed: asyncio.Future[str] = local.loop.create_future()
        self.node = NodeStartup(
            settings,
            local.environment,
            local.log_manager,
            metadata_directory_of(settings, local.filesystem),
            local.alerts,
            store,
        )
        self._is_alone = store is None and not settings.metadata_store.is_shared
        readiness = self.readiness = Readiness(
            settings.node_id,
            local.clock,
            local.replicas,
            image=self._image,
            is_let_in=lambda: self.ready,
            coordinators=lambda: self.coordinators,
        )
        self.health = HealthPages(
            local.log_manager.progress,
            local.alerts,
            readiness.is_ready,
            self._waiting_for,
            lambda: 0.0 if self.side is None else self.side.membership.store_away_ms,
            lambda: 0 if self.coordinators is None else self.coordinators.waiting_count,
            lambda: "" if self.side is None else self.side.membership.hindrance,
        )
        cluster_page = ClusterPage(
            settings.node_id,
            lambda: None if self.controller is None else self.controller.image,
            lambda: self.membership,
            local.clock,
        )
        self.admin = AdminPort(settings, self.health, cluster_page)
        # Built by `start`, in this order.
        self.controller: Controller | None = None
        self.side: ClusterSide | None = None
        self.dynamic: DynamicSettings | None = None
        self.remote: RemoteStorage | None = None
        self.coordinators: Coordinators | None = None
        self.hosted: HostedPartitions | None = None
        self.services: Services | None = None
        self.apis: KafkaApis | None = None
        self.network: NetworkServer | None = None
        self._halting: asyncio.Task[None] | None = None

    # -- start -----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Serve; logs go on recovering afterwards, `ready` says when they are done.

        Raises:
            StartupError: With a sentence for the operator.
        """
        local = self.local
        if not self._is_alone:
            # The store may keep the start waiting: `/readyz` says for what.
            await self.admin.listen()
        node = await self.node.open()
        controller = self.controller = node.controller
        side = self.side = await self._take_side(node)
        dynamic = self.dynamic = DynamicSettings(controller)
        follow_settings(
            dynamic,
            disk=local.disk,
            manager=local.log_manager,
            cleaners=local.cleaners,
            cleaner_throttle=local.cleaner_throttle,
        )
        if self.settings.remote_log_storage_system_enable:
            self.remote = build_remote(
                controller,
                dynamic,
                environment=local.environment,
                replicas=local.replicas,
                log_manager=local.log_manager,
                lookups=local.lookups,
                admin=self.admin.server,
                alerts=local.alerts,
                peers=side.peers,
                open_tier=self._open_tier,
            )
        coordinators = self.coordinators = Coordinators(
            self.settings,
            local.environment,
            local.replicas,
            controller,
            iteration_end=local.iteration_end,
            call_soon=local.loop.call_soon,
            alerts=local.alerts,
            peers=side.peers,
        )
        hosted = self.hosted = HostedPartitions(
            local,
            node,
            side,
            coordinators,
            dynamic=dynamic,
            remote=self.remote,
            store_path=self.node.store_path,
            fail=self._fail,
        )
        hosted.follow_image()
        await coordinators.start()
        controller.subscribe(self._report_unserved)
        self.services = build_services(
            local,
            controller,
            side.control,
            coordinators,
            hosted.log_mover,
            self.remote,
            side.membership,
        )
        self.apis = build_apis(self.services, local.sessions)
        self.network = build_network(local, self.apis)
        self.admin.build_metrics = lambda: self._build_metrics(node.store)
        if self._is_alone:
            await self.admin.listen()
        resolve = local.network.resolver(local.loop)
        listen(self.network, self.settings, side.membership, dynamic, resolve)
        local.lag.start()
        local.writers.start(local.timer)
        hosted.watch_writers()
        controller.follow(local.timer, on_replaced=self._store_replaced, on_unsupported=self._fail)
        hosted.load()

    async def _take_side(self, node: OpenNode) -> "ClusterSide":
        local = self.local
        if self._is_alone:
            return Alone(node.controller, node.store, local.environment)
        # Imported by members of a cluster alone.
        from broker.assembly.member import Member

        try:
            return await self.node.until_answered(
                lambda: Member.begin(local, node.controller, node.store, self._fail)
            )
        except StoreError as error:
            raise StartupError(str(error)) from error

    def _build_metrics(self, store: "MetadataStore") -> "MetricsPage":
        # Imported by the first scrape: a start should not wait for what may never be asked for.
        from broker.assembly.metrics_page import MeasuredParts, build_metrics_page

        assert self.services is not None
        assert self.apis is not None
        assert self.network is not None
        assert self.side is not None
        assert self.hosted is not None
        return build_metrics_page(
            self.services,
            MeasuredParts(
                local=self.local,
                side=self.side,
                hosted=self.hosted,
                store=store,
                apis=self.apis,
                network=self.network,
            ),
        )

    # -- while it runs ---------------------------------------------------------------------------

    async def _report_unserved(self, old: "ClusterImage", new: "ClusterImage") -> None:
        """An internal topic was created, or got more partitions."""
        assert self.coordinators is not None
        if self.readiness.look():
            self.coordinators.look_for_unserved(old, new)

    def _store_replaced(self, reason: str) -> None:
        """Nothing more is taken from the store: what it says may name other things than before."""
        assert self.membership is not None
        LOGGER.error("metadata store replaced, it is not followed any more reason=%s", reason)
        text = f"{reason}. {WAY_OUT}"
        self.local.alerts.set(AlertKind.METADATA_STORE_REPLACED, "metadata store", text)
        halting = self.membership.halt()
        self._halting = self.local.loop.create_task(halting, name="halt of membership")

    def _waiting_for(self) -> str:
        if self.node.waiting_for:
            return self.node.waiting_for
        if missing := self.readiness.waiting_for():
            return missing
        is_open = self.hosted is not None and self.hosted.loading.is_ready
        if not is_open:
            return ""
        hindrance = self.membership.hindrance if self.membership is not None else ""
        return "waiting to be let into the cluster" + (f": {hindrance}" if hindrance else "")

    def _image(self) -> "ClusterImage":
        assert self.controller is not None
        return self.controller.image

    def _fail(self, reason: str) -> None:
        if not self.failed.done():
            self.failed.set_result(reason)

    # -- stop ------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Finish what is in flight, flush, mark the directories clean, release everything."""
        local = self.local
        self.health.is_stopping = True
        if self.side is not None and not self.failed.done():
            await self.side.hand_over()
        if self.hosted is not None:
            self.hosted.loading.stop()
        local.log_manager.startup.stop_loading()
        if self.network is not None:
            self.network.stop_accepting()
        if self.background is not None:
            await self.background.stop()
        if local.cleaners is not None:
            await local.disk.run(local.cleaners.close)
        if self.hosted is not None:
            await self.hosted.load_ended()
            await self.hosted.log_mover.stop()
        if self.coordinators is not None:
            await self.coordinators.stop()
        local.replicas.answer_parked()
        await local.lookups.stop()
        if self.network is not None:
            await self.network.stop(STOP_TIMEOUT_S)
        if self.remote is not None:
            await self.remote.stop()
        # What the clean-shutdown marker says of this life.
        epoch = -1
        if self.side is not None:
            await self.side.leave()
            epoch = self.side.marked_epoch
        if self.controller is not None:
            await self.controller.aclose()
        local.lag.stop()
        await local.writes_ended()
        try:
            await local.close_logs(clean=not self.failed.done(), broker_epoch=epoch)
        except StorageError as error:
            LOGGER.error("logs not closed cleanly error=%s", error)
        await self.node.close()
        await self.admin.aclose()
        local.close()

    # -- what callers see of it ------------------------------------------------------------------

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return self.controller.image.cluster_id if self.controller is not None else ""

    @property
    def addresses(self) -> list[tuple[str, str, int]]:
        """(listener, host, port) as bound."""
        return self.network.addresses if self.network is not None else []

    @property
    def admin_address(self) -> str | None:
        """host:port of the admin port, None when it is switched off."""
        return self.admin.address

    @property
    def membership(self) -> "Membership | None":
        """This broker's place in the cluster; None before `start` has begun it."""
        return self.side.membership if self.side is not None else None

    @property
    def ready(self) -> bool:
        """Whether every log is open, and the cluster lets this broker take part."""
        return (
            self.hosted is not None
            and self.hosted.loading.is_ready
            and self.controller is not None
            and self.membership is not None
            and self.membership.is_let_in(self.controller.image)
        )

    @property
    def is_waiting(self) -> bool:
        """Whether `start` waits for what may never come."""
        return bool(self.node.waiting_for)

    @property
    def background(self) -> "Background | None":
        """Periodic maintenance of logs; None before the first partition serves."""
        return self.hosted.loading.background if self.hosted is not None else None

    @property
    def groups(self) -> "GroupCoordinator | None":
        """The group coordinator; None before `start` has built it, as the three below."""
        return self.coordinators.groups if self.coordinators is not None else None

    @property
    def transactions(self) -> "TransactionCoordinator | None":
        """The transaction coordinator."""
        return self.coordinators.transactions if self.coordinators is not None else None

    @property
    def share_coordinator(self) -> "ShareCoordinator | None":
        """The share coordinator."""
        return self.coordinators.share_state if self.coordinators is not None else None

    @property
    def share(self) -> "SharePartitions | None":
        """Partitions of share groups."""
        return self.coordinators.share if self.coordinators is not None else None
