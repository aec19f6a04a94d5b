"""The composition root: the parts of one broker, in the order in which they start and stop.

__init__   environment, disk threads, log manager, replica manager: nothing waits
start      node opened (directories, metadata store, controller) ─> coordinators ─> APIs
─> admin port, listeners ─> logs load in threads (`broker.lifecycle.log_loading`)
stop       loading ends, nothing is accepted ─> maintenance, movers ─> coordinators
─> parked requests answered ─> network ─> remote storage ─> controller
─> writes end, logs flushed and marked clean ─> metadata store ─> locks
"""

import asyncio
import logging
import os
from typing import TYPE_CHECKING

from broker.cleaning.process import LocalCleaningProcess
from broker.cleaning.process_cleaner import ProcessCleaner, limits_of
from broker.controller.controller import Controller
from broker.controller.store.metadata_store import StoreError
from broker.controller.store.sqlite_store import SqliteStore
from broker.lifecycle.apis import build_apis
from broker.lifecycle.cluster_control import ClusterControl, connect_peers
from broker.lifecycle.cluster_page import ClusterPage
from broker.lifecycle.controlled_shutdown import hand_over
from broker.lifecycle.coordinators import Coordinators
from broker.lifecycle.disk_failures import DiskFailures
from broker.lifecycle.endpoints import advertised_endpoints
from broker.lifecycle.health import HealthPages
from broker.lifecycle.live_settings import disk_threads, follow_settings
from broker.lifecycle.log_ends import LogEnds
from broker.lifecycle.log_loading import LogLoading
from broker.lifecycle.log_moves import build_log_mover
from broker.lifecycle.membership import build_membership, watch_peers
from broker.lifecycle.remote import build_remote
from broker.lifecycle.replication import (
    build_fetchers,
    build_isr_changes,
    build_quotas,
    connect_replicas,
)
from broker.lifecycle.served_partitions import ServedPartitions
from broker.membership.membership import Membership, MembershipError
from broker.network.admin_http import AdminServer, Page, Query
from broker.network.iteration_end import IterationEnd
from broker.network.network import Network, SocketNetwork
from broker.network.server import LIMIT_KEYS, LISTENER_KEYS, WORKER_KEYS, NetworkServer
from broker.node.cluster_node import WAY_OUT
from broker.node.dynamic_settings import DynamicSettings
from broker.node.node_directories import NodeDirectories
from broker.node.node_startup import NodeStartup
from broker.node.stopped_node import metadata_directory_of
from broker.remote.remote_storage import RemoteStorage
from broker.replicas.background import Background
from broker.replicas.fetch_sessions import FetchSessionCache
from broker.replicas.log_mover import LogMover
from broker.replicas.logs.log_lifecycle import LogLifecycle
from broker.replicas.lookups import Lookups
from broker.replicas.replica_manager import ReplicaManager
from broker.replicas.role_reconciler import NoFetchers, RoleReconciler
from broker.replication.doubt_watch import DoubtWatch
from broker.replication.isr_changes import IsrChanges
from broker.runtime.directory_writer import DirectoryWriters
from broker.runtime.disk import Disks
from broker.runtime.loop_lag import LoopLag
from broker.runtime.machine import LOCAL_MACHINE, Machine
from broker.runtime.on_loop import OnLoop
from broker.runtime.startup_errors import StartupError
from broker.runtime.timer import TimerWheel
from broker.services import Services
from config.version import VERSION
from storage.environment.alerts import AlertKind, Alerts
from storage.environment.clock import Clock, SystemClock, sleep_ms
from storage.environment.descriptors import DescriptorShares, descriptor_limit, share_out
from storage.environment.environment import Environment
from storage.environment.filesystem import Filesystem
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import Randomness, SystemRandomness
from storage.environment.throttle import Throttle
from storage.errors import StorageError
from storage.manager.log_manager import LogManager, LogManagerSettings
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import ClusterImage
    from broker.controller.store.metadata_store import MetadataStore
    from broker.groups.coordinator import GroupCoordinator
    from broker.lifecycle.cluster_directories import ClusterDirectories
    from broker.metrics.page import MetricsPage
    from broker.peers.peers import Peers
    from broker.replication.fetcher.fetchers import Fetchers
    from broker.replication.quota import ReplicationQuota
    from broker.requests.kafka_apis import KafkaApis
    from broker.share.delivery.share_partitions import SharePartitions
    from broker.share.state.share_coordinator import ShareCoordinator
    from broker.transactions.coordinator.transaction_coordinator import TransactionCoordinator
    from config.broker import BrokerConfig

LOGGER = logging.getLogger(__name__)

STOP_TIMEOUT_S = 10.0


class Broker:
    """See the module. `start` once, `stop` once; `failed` is done when it cannot go on."""

    def __init__(
        self,
        settings: "BrokerConfig",
        *,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        filesystem: Filesystem | None = None,
        descriptors: DescriptorShares | None = None,
        network: Network | None = None,
        machine: Machine = LOCAL_MACHINE,
        store: "MetadataStore | None" = None,
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
        """
        self.descriptors = descriptors or share_out(descriptor_limit())
        log_dirs = tuple(os.path.abspath(path) for path in settings.log_dirs)
        self.settings = settings
        self.log_dirs = log_dirs
        self.version = VERSION
        self.clock: Clock = clock or SystemClock()
        self.randomness: Randomness = randomness or SystemRandomness()
        self.loop = asyncio.get_running_loop()
        self.failed: asyncio.Future[str] = self.loop.create_future()
        self.timer = TimerWheel(self.loop, self.clock)
        self.iteration_end = IterationEnd(self.loop.call_soon, self.clock)
        self.machine = machine
        self.disk = Disks(disk_threads(settings), log_dirs, machine=machine)
        self.writers = DirectoryWriters(self.loop, self.clock, log_dirs, self.disk, machine=machine)
        self.lookups = Lookups()
        self.lag = LoopLag(self.timer, self.clock)
        self.filesystem: Filesystem = filesystem or LocalFilesystem(shares=self.descriptors)
        self.environment = Environment(
            clock=self.clock,
            timer=self.timer,
            filesystem=self.filesystem,
            randomness=self.randomness,
            run_blocking=self.disk.run,
        )
        self._network: Network = network or SocketNetwork()
        self.alerts = Alerts()
        self._on_loop = OnLoop(self.loop)
        self.cleaner_throttle = Throttle(
            self.clock, sleep_ms, settings.log_cleaner_io_max_bytes_per_second
        )
        self.log_manager = LogManager(
            self.environment,
            log_dirs,
            settings=LogManagerSettings.of(settings),
            on_owner=self._on_loop,
            cleaner_throttle=self.cleaner_throttle,
            alerts=self.alerts,
        )
        self.cleaners: ProcessCleaner | None = None
        if filesystem is None:
            # Another file system than the machine's is this process's alone.
            self.cleaners = ProcessCleaner(
                LocalCleaningProcess,
                lambda: self.log_manager.compaction.in_thread,
                filesystem=self.filesystem,
                clock=self.clock,
                limits=limits_of(settings),
            )
            self.log_manager.compaction.clean_with(self.cleaners)
        self.replicas = ReplicaManager(
            clock=self.clock,
            timer=self.timer,
            disk=self.disk,
            loop=self.loop,
            writers=self.writers,
        )
        self.sessions = FetchSessionCache(
            settings.max_incremental_fetch_session_cache_slots, self.clock, self.randomness
        )
        self.node = NodeStartup(
            settings,
            self.environment,
            self.log_manager,
            metadata_directory_of(settings, self.filesystem),
            self.alerts,
            store,
        )
        self._is_alone = store is None and not settings.metadata_store.is_shared
        self.health = HealthPages(
            self.log_manager.progress, self.alerts, self._is_ready, self._waiting_for
        )
        self.admin = AdminServer(
            {
                "/healthz": self.health.healthz,
                "/readyz": self.health.readyz,
                "/metrics": self._metrics,
                "/cluster": ClusterPage(
                    settings.node_id,
                    lambda: None if self.controller is None else self.controller.image,
                    lambda: self.membership,
                    self.clock,
                ).cluster,
            }
        )
        # Built by `start`.
        self.controller: Controller | None = None
        self.membership: Membership | None = None
        self.peers: Peers | None = None
        self.isr_changes: IsrChanges | None = None
        self.doubt_watch: DoubtWatch | None = None
        self.control: ClusterControl | None = None
        self.directories: ClusterDirectories | None = None
        self.fetchers: Fetchers | None = None
        self.quotas: tuple[ReplicationQuota, ReplicationQuota] | None = None
        self.dynamic: DynamicSettings | None = None
        self.remote: RemoteStorage | None = None
        self.coordinators: Coordinators | None = None
        self.log_mover: LogMover | None = None
        self.services: Services | None = None
        self.apis: KafkaApis | None = None
        self.network: NetworkServer | None = None
        self.loading: LogLoading | None = None
        self._store: MetadataStore | None = None
        self._load: asyncio.Task[None] | None = None
        self._halting: asyncio.Task[None] | None = None
        self._metrics_page: MetricsPage | None = None

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
        endpoint = self.settings.admin_listener
        return f"{endpoint.host or '127.0.0.1'}:{self.admin.port}" if endpoint else None

    @property
    def ready(self) -> bool:
        """Whether every log is open, and the cluster lets this broker take part."""
        return (
            self.loading is not None
            and self.loading.is_ready
            and self.controller is not None
            and self.membership is not None
            and self.membership.is_let_in(self.controller.image)
        )

    @property
    def background(self) -> Background | None:
        """Periodic maintenance of logs; None before the first partition serves."""
        return self.loading.background if self.loading is not None else None

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

    # -- start -----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Serve; logs go on recovering afterwards, `ready` says when they are done.

        Raises:
            StartupError: With a sentence for the operator.
        """
        settings = self.settings
        if not self._is_alone:
            # The store may keep the start waiting: `/readyz` says for what.
            await self._listen_for_admin()
        self._store, controller, directories = await self.node.open()
        self.controller = controller
        try:
            self.membership = await build_membership(
                controller,
                self._store,
                self.log_manager,
                environment=self.environment,
                is_alone=self._is_alone,
                fail=self._fail,
            )
        except StoreError as error:
            raise StartupError(str(error)) from error
        if not self._is_alone:
            self.peers = connect_peers(controller, self._network, self.loop, self.timer)
            watch_peers(controller, self.peers, self._store, self.membership, self.clock)
        self.control = ClusterControl(
            controller, self._store, self.membership, self.peers, self.environment
        )
        if not self._is_alone:
            self.isr_changes = build_isr_changes(
                controller,
                self.control.channel,
                self.membership,
                self.replicas,
                clock=self.clock,
                timer=self.timer,
            )
            watch = self.doubt_watch = DoubtWatch(
                self.replicas.terms, self.clock, self.timer, led=self.replicas.partitions
            )
            self.doubt_watch.start()
            controller.is_isolated = lambda: watch.is_isolated
        if self.peers is not None:
            ends = LogEnds(settings.node_id, self.peers, self.replicas)
            self.control.active.recovery.ask = ends.ask
        dynamic = self.dynamic = DynamicSettings(controller)
        follow_settings(
            dynamic,
            disk=self.disk,
            manager=self.log_manager,
            cleaners=self.cleaners,
            cleaner_throttle=self.cleaner_throttle,
        )
        if settings.remote_log_storage_system_enable:
            self.remote = build_remote(
                controller,
                dynamic,
                environment=self.environment,
                replicas=self.replicas,
                log_manager=self.log_manager,
                lookups=self.lookups,
                admin=self.admin,
                alerts=self.alerts,
                peers=self.peers,
            )
        coordinators = self.coordinators = Coordinators(
            settings,
            self.environment,
            self.replicas,
            controller,
            iteration_end=self.iteration_end,
            call_soon=self.loop.call_soon,
            alerts=self.alerts,
            peers=self.peers,
        )
        served = ServedPartitions(coordinators, self.remote, self.alerts)
        served.on_role = self.membership.acted
        roles = RoleReconciler(
            settings.node_id,
            image=lambda: controller.image,
            membership=self.membership,
            replicas=self.replicas,
            listener=served,
            fetchers=self._build_fetchers(dynamic, self.membership),
            call_soon=self.loop.call_soon,
            clock=self.clock,
        )
        self.replicas.roles_due = lambda: roles.due
        failures = DiskFailures(
            self.log_manager,
            roles,
            coordinators,
            store_path=self.node.store_path,
            is_leader=lambda one: _leads(controller.image, one, settings.node_id),
            call_soon_threadsafe=self.loop.call_soon_threadsafe,
            fail=self._fail,
        )
        failures.watch(self._store if isinstance(self._store, SqliteStore) else None)
        lifecycle = LogLifecycle(
            controller=controller,
            log_manager=self.log_manager,
            replicas=self.replicas,
            roles=roles,
            disk=self.disk,
            on_serving=self._serving,
            is_alone=self._is_alone,
            listener=served,
        )
        if not self._is_alone:
            self.directories = self._build_directories(controller, lifecycle, directories)
            failures.on_offline = self.directories.directory_offline
        self.log_mover = build_log_mover(
            controller,
            dynamic,
            environment=self.environment,
            log_manager=self.log_manager,
            replicas=self.replicas,
            lifecycle=lifecycle,
            roles=roles,
        )
        self.loading = self._build_loading(controller, dynamic, lifecycle, directories, failures)
        connect_replicas(
            controller,
            self.replicas,
            self.log_manager,
            validity=self.membership.validity,
            is_alone=self._is_alone,
        )
        controller.subscribe_now(lifecycle.apply_now)
        controller.subscribe_now(roles.apply)
        controller.subscribe(lifecycle.apply)
        await coordinators.start()
        controller.subscribe(self._report_unserved)
        self.services = self._build_services(controller, coordinators, self.log_mover)
        self.apis = build_apis(self.services, self.sessions)
        await self._listen(self.membership, dynamic, self.apis)
        self.lag.start()
        self.writers.start(self.timer)
        failures.watch_writers(self.writers)
        threads = dynamic.current.num_recovery_threads_per_data_dir * len(self.log_dirs)
        controller.follow(self.timer, on_replaced=self._store_replaced, on_unsupported=self._fail)
        self._load = asyncio.create_task(self._load_and_join(roles, lifecycle, threads))

    def _build_fetchers(
        self, dynamic: DynamicSettings, membership: Membership
    ) -> "Fetchers | NoFetchers":
        quotas = self.quotas = build_quotas(dynamic, self.clock)
        self.replicas.terms.leader_quota = quotas[0]
        if self.peers is None:
            return NoFetchers()
        self.fetchers = build_fetchers(
            self.peers,
            self.log_manager,
            dynamic,
            remote=self.remote,
            quota=quotas[1],
            broker_epoch=lambda: membership.broker_epoch,
            loop=self.loop,
            timer=self.timer,
            clock=self.clock,
        )
        return self.fetchers

    def _build_directories(
        self, controller: Controller, lifecycle: LogLifecycle, directories: NodeDirectories
    ) -> "ClusterDirectories":
        # Imported by members of a cluster alone.
        from broker.lifecycle.cluster_directories import ClusterDirectories

        assert self.control is not None
        assert self.membership is not None
        assert self._store is not None
        built = ClusterDirectories(
            controller,
            self.control.channel,
            self.membership,
            self.log_manager,
            self._store,
            self.environment,
            self._fail,
        )
        built.follow(lifecycle, directories)
        return built

    def _store_replaced(self, reason: str) -> None:
        """Nothing more is taken from the store: what it says may name other things than before."""
        assert self.membership is not None
        LOGGER.error(
            "metadata store replaced, it is not followed any more reason=%s %s",
            reason,
            WAY_OUT,
        )
        self.alerts.set(AlertKind.METADATA_STORE_REPLACED, "metadata store", f"{reason}. {WAY_OUT}")
        self._halting = self.loop.create_task(self.membership.halt(), name="halt of membership")

    async def _sync_logs(self) -> bool:
        from broker.membership.begin import sync_all

        done: bool = await self.disk.run(sync_all, self.log_manager)
        return done

    async def _load_and_join(
        self, roles: RoleReconciler, lifecycle: LogLifecycle, threads: int
    ) -> None:
        """Open every log, then be a member: who joins has what it had before."""
        assert self.loading is not None
        assert self.membership is not None
        await self.loading.load(lifecycle, threads)
        if self.loading.is_ready:
            if lifecycle.has_lost_logs:
                self.membership.logs_lost()
            try:
                await self.membership.join(self._sync_logs)
            except (MembershipError, StoreError) as error:
                self._fail(str(error))
            else:
                if self.directories is not None:
                    self.directories.joined()
                # The image that lets this broker in may have come before the answer that has its
                # epoch: then no other comes.
                roles.review()

    def _build_loading(
        self,
        controller: Controller,
        dynamic: DynamicSettings,
        lifecycle: LogLifecycle,
        directories: NodeDirectories,
        failures: DiskFailures,
    ) -> LogLoading:
        def make_background() -> Background:
            return Background(
                settings=lambda: dynamic.current,
                environment=self.environment,
                log_manager=self.log_manager,
                replicas=self.replicas,
                disk=self.disk,
                after_cleaning=_nothing if self.cleaners is None else self.cleaners.end_idle,
                create_unmade=lifecycle.create_unmade,
            )

        def loaded(background: Background) -> None:
            assert self.coordinators is not None
            self.coordinators.report_unserved(controller.image)
            failures.watch_room(background.make_room)

        return LogLoading(
            self.environment,
            self.log_manager,
            self.replicas,
            make_background=make_background,
            settle_directories=directories.settle,
            on_loaded=loaded,
            fail=self._fail,
        )

    def _build_services(
        self, controller: Controller, coordinators: Coordinators, log_mover: LogMover
    ) -> Services:
        assert self.control is not None
        return Services(
            active_controller=self.control.active,
            channel=self.control.channel,
            settings=self.settings,
            clock=self.clock,
            randomness=self.randomness,
            timer=self.timer,
            disk=self.disk,
            log_manager=self.log_manager,
            controller=controller,
            replica_manager=self.replicas,
            groups=coordinators.groups,
            transactions=coordinators.transactions,
            registrar=coordinators.registrar,
            share=coordinators.share,
            share_coordinator=coordinators.share_state,
            lookups=self.lookups,
            remote=self.remote,
            log_mover=log_mover,
        )

    async def _listen(
        self, membership: "Membership", dynamic: DynamicSettings, apis: "KafkaApis"
    ) -> None:
        settings = self.settings
        network = self.network = NetworkServer(
            settings,
            loop=self.loop,
            environment=self.environment,
            network=self._network,
            read_cold=self.replicas.cold_reads.run,
            router=apis,
            iteration_end=self.iteration_end,
            connections_max=self.descriptors.connections,
            alerts=self.alerts,
        )

        def listen_as(after: "BrokerConfig") -> None:
            network.update_listeners(after)
            membership.advertise(advertised_endpoints(after, network.addresses))

        dynamic.subscribe(LIMIT_KEYS, lambda _, after: network.update_limits(after))
        try:
            if self._is_alone:
                await self._listen_for_admin()
            network.start()
        except OSError as error:
            raise StartupError(f"cannot listen: {error}") from error
        membership.advertise(advertised_endpoints(settings, network.addresses))
        dynamic.subscribe(LISTENER_KEYS, lambda _, after: listen_as(after))
        dynamic.subscribe(WORKER_KEYS, lambda _, after: network.update_workers(after))

    async def _listen_for_admin(self) -> None:
        endpoint = self.settings.admin_listener
        if endpoint is not None:
            try:
                await self.admin.start(endpoint.host, endpoint.port)
            except OSError as error:
                raise StartupError(f"cannot listen: {error}") from error

    # -- while it runs ---------------------------------------------------------------------------

    def _serving(self) -> None:
        assert self.loading is not None
        self.loading.on_serving()

    async def _report_unserved(self, old: "ClusterImage", new: "ClusterImage") -> None:
        """An internal topic was created, or got more partitions."""
        assert self.coordinators is not None
        if self.ready:
            self.coordinators.look_for_unserved(old, new)

    @property
    def is_waiting(self) -> bool:
        """Whether `start` waits for what may never come."""
        return bool(self.node.waiting_for)

    def _waiting_for(self) -> str:
        if self.node.waiting_for:
            return self.node.waiting_for
        is_open = self.loading is not None and self.loading.is_ready
        return "" if self.ready or not is_open else "waiting to be let into the cluster"

    def _is_ready(self) -> bool:
        return self.ready and self.coordinators is not None and not self.coordinators.is_loading

    def _fail(self, reason: str) -> None:
        if not self.failed.done():
            self.failed.set_result(reason)

    async def _metrics(self, _query: Query) -> Page:
        if self.services is None or self.apis is None or self.network is None:
            return Page(503, b"starting\n")
        if self._metrics_page is None:
            self._metrics_page = self._build_metrics()
        return await self._metrics_page.page()

    def _build_metrics(self) -> "MetricsPage":
        # Imported by the first scrape: a start should not wait for what may never be asked for.
        from broker.lifecycle.metrics_page import MeasuredParts, build_metrics_page

        assert self.services is not None
        assert self.apis is not None
        assert self.network is not None
        assert self._store is not None
        assert self.membership is not None
        return build_metrics_page(
            self.services,
            MeasuredParts(
                apis=self.apis,
                network=self.network,
                lag=self.lag,
                timer=self.timer,
                sessions=self.sessions,
                store=self._store,
                writers=self.writers,
                cleaners=self.cleaners,
                alerts=self.alerts,
                descriptors=self.descriptors,
                filesystem=self.filesystem,
                membership=self.membership,
                fetchers=self.fetchers,
                peers=self.peers,
                isr_changes=self.isr_changes,
                quotas=self.quotas or (),
            ),
        )

    # -- stop ------------------------------------------------------------------------------------

    async def _hand_over(self) -> None:
        if self._is_alone or self.failed.done() or not self.settings.controlled_shutdown_enable:
            return
        if self.controller is None or self.membership is None or self._store is None:
            return
        await hand_over(
            self.controller, self._store, self.membership, timer=self.timer, clock=self.clock
        )

    async def stop(self) -> None:
        """Finish what is in flight, flush, mark the directories clean, release everything."""
        self.health.is_stopping = True
        await self._hand_over()
        if self.loading is not None:
            self.loading.stop()
        self.log_manager.startup.stop_loading()
        if self.network is not None:
            self.network.stop_accepting()
        if self.background is not None:
            await self.background.stop()
        if self.cleaners is not None:
            await self.disk.run(self.cleaners.close)
        if self._load is not None and not self._load.done():
            # It ends soon. What is not open by then is not marked clean.
            if self.loading is not None and self.loading.is_ready:
                self._load.cancel()
            await asyncio.wait([self._load])
        if self.log_mover is not None:
            await self.log_mover.stop()
        if self.coordinators is not None:
            await self.coordinators.stop()
        self.replicas.answer_parked()
        await self.lookups.stop()
        if self.network is not None:
            await self.network.stop(STOP_TIMEOUT_S)
        if self.remote is not None:
            await self.remote.stop()
        if self.isr_changes is not None:
            await self.isr_changes.aclose()
        if self.doubt_watch is not None:
            self.doubt_watch.close()
        if self.directories is not None:
            await self.directories.aclose()
        if self.control is not None:
            self.control.stop()
        if self.peers is not None:
            self.peers.close()
        if self.fetchers is not None:
            await self.fetchers.close()
        if self.membership is not None:
            await self.membership.leave()
        if self.controller is not None:
            await self.controller.aclose()
        self.lag.stop()
        for partition in list(self.replicas.partitions()):
            if partition.writes is not None:
                await partition.writes.idle()
        self.writers.close()
        clean = not self.failed.done()
        try:
            await self.disk.run(
                self.log_manager.shutdown,
                clean=clean,
                side_by_side=self.machine.run_all,
                broker_epoch=self._marked_epoch(),
            )
        except StorageError as error:
            LOGGER.error("logs not closed cleanly error=%s", error)
        await self.node.close()
        await self.admin.aclose()
        self.timer.close()
        self._on_loop.close()
        self.disk.close()

    def _marked_epoch(self) -> int:
        """What a clean-shutdown marker says of this life; -1 on a node that is alone."""
        if self._is_alone or self.membership is None:
            return -1
        return self.membership.broker_epoch


def _nothing() -> None:
    """No process to end."""


def _leads(image: "ClusterImage", topic_partition: TopicPartition, node_id: int) -> bool:
    """Whether a node is to lead a partition, and no other could; also if that is not known."""
    found = image.partition(*topic_partition)
    return found is None or found.replicas == (node_id,)
