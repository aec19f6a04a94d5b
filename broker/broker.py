"""One broker: its parts, in the order in which they start and stop (see `broker.app`)."""

import asyncio
import errno
import importlib
import logging
import os
import pkgutil
from collections.abc import Mapping, Sequence
from functools import partial
from posixpath import dirname
from types import ModuleType
from typing import TYPE_CHECKING

from broker import handlers
from broker.cleaning.process import LocalCleaningProcess
from broker.cleaning.process_cleaner import CLEANER_KEYS, ProcessCleaner, limits_of
from broker.controller.controller import (
    ClusterIdError,
    Controller,
    RemoteStorageDisabledError,
)
from broker.controller.images.cluster_image import BrokerEndpoint
from broker.controller.images.metadata_records import MetadataFormatError
from broker.controller.images.topic_names import SHARE_GROUP_STATE
from broker.controller.store.metadata_store import StoreError
from broker.controller.store.sqlite_store import SqliteStore
from broker.groups.coordinator import OFFSETS_TOPIC, GroupCoordinator
from broker.handlers.fetch import FetchHandler
from broker.handlers.produce import ProduceHandler
from broker.handlers.share_fetch import ShareFetchHandler
from broker.network.admin_http import AdminServer, Page, Query
from broker.network.iteration_end import IterationEnd
from broker.network.server import LIMIT_KEYS, LISTENER_KEYS, WORKER_KEYS, NetworkServer
from broker.node.dynamic_settings import DynamicSettings
from broker.node.node_directories import NodeDirectories
from broker.node.node_store import NodeStore, NodeStoreError
from broker.node.stopped_node import metadata_directory_of
from broker.remote.admin_pages import TierPages
from broker.remote.remote_storage import RemoteStorage
from broker.remote.tier_settings import tier_home, tier_settings
from broker.replicas.background import Background
from broker.replicas.fetch_sessions import FetchSessionCache
from broker.replicas.log_lifecycle import LogLifecycle
from broker.replicas.log_mover import LogMover
from broker.replicas.lookups import Lookups
from broker.replicas.replica_manager import ReplicaManager
from broker.requests.kafka_apis import Api, KafkaApis
from broker.runtime.directory_writer import DirectoryWriters
from broker.runtime.disk import Disks
from broker.runtime.loop_lag import LoopLag
from broker.runtime.on_loop import OnLoop
from broker.runtime.startup_errors import StartupError
from broker.runtime.timer import TimerWheel
from broker.services import Services
from broker.share.delivery.share_partitions import SharePartitions
from broker.share.state.share_coordinator import ShareCoordinator
from broker.transactions.coordinator.transaction_coordinator import (
    TRANSACTION_TOPIC,
    TransactionCoordinator,
)
from broker.transactions.partitions.markers import LocalMarkerWriter
from config.broker import BROKER_KEYS
from config.version import VERSION
from protocol.api_keys import ApiKey
from storage.checkpoints.log_directory import LogDirectory
from storage.environment.alerts import Alerts
from storage.environment.clock import Clock, SystemClock, sleep_ms
from storage.environment.descriptors import DescriptorShares, descriptor_limit, share_out
from storage.environment.environment import Environment
from storage.environment.filesystem import Filesystem, LocalFilesystem
from storage.environment.randomness import Randomness, SystemRandomness
from storage.environment.throttle import Throttle
from storage.errors import DiskError, StorageError
from storage.manager.log_manager import LogManager, LogManagerSettings
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import ClusterImage
    from broker.metrics.page import MetricsPage
    from broker.replicas.partition import Partition
    from config.broker import BrokerConfig

LOGGER = logging.getLogger(__name__)

REMOTE_KEYS = tuple(
    name
    for name, row in BROKER_KEYS.items()
    if row.dynamic and name.startswith(("remote.", "rsm.", "rlmm.", "tier."))
)
"""Settings of remote storage that take effect while the broker runs."""

READ_LATER_KEYS = (
    "log.cleaner.backoff.ms",
    "num.recovery.threads.per.data.dir",
    # One node has nobody to fetch from.
    "num.replica.fetchers",
)
"""Settings that are looked up when they are needed."""

DISK_THREADS_MIN = 4
STOP_TIMEOUT_S = 10.0

READY_LINES = 100
"""Alerts that `/readyz` says in words."""

PROGRESS_MS = 5_000.0
"""Between two log lines about recovery."""


def disk_threads(settings: "BrokerConfig") -> int:
    """Threads of each log directory, and of what lies in none."""
    return max(DISK_THREADS_MIN, settings.background_threads)


def handler_modules() -> list[ModuleType]:
    """Every module of `broker.handlers` that serves an API."""
    names = [info.name for info in pkgutil.iter_modules(handlers.__path__)]
    modules = [importlib.import_module(f"broker.handlers.{name}") for name in names]
    return [module for module in modules if hasattr(module, "API_KEY")]


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
    ) -> None:
        self.descriptors = descriptors or share_out(descriptor_limit())
        log_dirs = tuple(os.path.abspath(path) for path in settings.log_dirs)
        self.settings = settings
        self.log_dirs = log_dirs
        self.version = VERSION
        self.clock: Clock = clock or SystemClock()
        self.randomness: Randomness = randomness or SystemRandomness()
        self.loop = asyncio.get_running_loop()
        self.failed: asyncio.Future[str] = self.loop.create_future()
        self.ready = False
        self._stopping = False
        self._loading: asyncio.Task[None] | None = None
        self._lifecycle: LogLifecycle | None = None
        self._store: SqliteStore | None = None
        self.log_mover: LogMover | None = None
        self._directories: NodeDirectories | None = None
        self.controller: Controller | None = None
        self.groups: GroupCoordinator | None = None
        self.transactions: TransactionCoordinator | None = None
        self.share_coordinator: ShareCoordinator | None = None
        self.share: SharePartitions | None = None
        self.network: NetworkServer | None = None
        self.background: Background | None = None
        self.apis: KafkaApis | None = None
        self.timer = TimerWheel(self.loop, self.clock)
        self.iteration_end = IterationEnd(self.loop.call_soon, self.clock)
        self.disk = Disks(disk_threads(settings), log_dirs)
        self.writers = DirectoryWriters(self.loop, self.clock, log_dirs, self.disk)
        self.lookups = Lookups()
        self.remote: RemoteStorage | None = None
        self.dynamic: DynamicSettings | None = None
        self.lag = LoopLag(self.timer, self.clock)
        self.filesystem: Filesystem = filesystem or LocalFilesystem(shares=self.descriptors)
        self.environment = Environment(
            clock=self.clock,
            timer=self.timer,
            filesystem=self.filesystem,
            randomness=self.randomness,
            run_blocking=self.disk.run,
        )
        self.alerts = Alerts()
        self._on_loop = OnLoop(self.loop)
        self.cleaner_throttle = Throttle(
            self.clock, sleep_ms, settings.log_cleaner_io_max_bytes_per_second
        )
        self.log_manager = LogManager(
            self.filesystem,
            self.clock,
            self.randomness,
            log_dirs,
            settings=LogManagerSettings.of(settings),
            on_owner=self._on_loop,
            cleaner_throttle=self.cleaner_throttle,
            alerts=self.alerts,
        )
        self.metadata_directory = metadata_directory_of(settings, self.filesystem)
        self.node_store = NodeStore(
            settings,
            self.log_manager.directories,
            self.metadata_directory,
            filesystem=self.filesystem,
            clock=self.clock,
            randomness=self.randomness,
            timer=self.timer,
            run_on_disk=self.disk.run,
        )
        self.cleaners: ProcessCleaner | None = None
        if filesystem is None:
            # Another file system than the machine's is this process's alone.
            self.cleaners = ProcessCleaner(
                LocalCleaningProcess,
                lambda: self.log_manager.in_thread,
                filesystem=self.filesystem,
                clock=self.clock,
                limits=limits_of(settings),
            )
            self.log_manager.clean_with(self.cleaners)
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
        self.admin = AdminServer(
            {"/healthz": self._healthz, "/readyz": self._readyz, "/metrics": self._metrics}
        )
        self._metrics_page: MetricsPage | None = None

    # -- what others want to know ----------------------------------------------------------------

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

    # -- start -----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Serve; logs go on recovering afterwards, `ready` tells when they are done.

        Raises:
            StartupError: With a sentence for the operator.
        """
        settings = self.settings
        try:
            await self.disk.run(self.log_manager.open_directories)
            await self._open_metadata_directory()
            self._store = await self.node_store.open()
            controller = await Controller.open(
                self._store,
                settings,
                randomness=self.randomness,
                cluster_id=self.log_manager.stored_cluster_id,
            )
            self.controller = controller
            if self.metadata_directory is not None:
                await self.disk.run(self._claim_metadata_directory, controller.image.cluster_id)
            self._directories = NodeDirectories(
                controller, self.log_manager, self.alerts, self.disk.run
            )
            await self._directories.claim(self.node_store.store_id)
        except (
            StorageError,
            StoreError,
            MetadataFormatError,
            NodeStoreError,
            ClusterIdError,
            RemoteStorageDisabledError,
        ) as error:
            raise StartupError(str(error)) from error
        home = self._home()
        if home is not None and not home.is_online:
            raise StartupError(f"the metadata store is in {home.path}: {home.offline_reason}")
        self.log_manager.on_directory_failure = self._directory_failed
        self.dynamic = DynamicSettings(controller)
        self.dynamic.subscribe(CLEANER_KEYS, lambda _, after: self._set_cleaner_limits(after))
        self.dynamic.subscribe(
            ["transaction.partition.verification.enable"],
            lambda _before, after: self.log_manager.require_verification(
                after.transaction_partition_verification_enable
            ),
        )
        self.dynamic.subscribe(
            ["background.threads"],
            lambda _before, after: self.disk.resize(disk_threads(after)),
        )
        self.dynamic.subscribe(
            ["producer.id.expiration.ms"],
            lambda _before, after: self.log_manager.expire_producers_after(
                after.producer_id_expiration_ms
            ),
        )
        self.dynamic.read_later(READ_LATER_KEYS)
        if settings.remote_log_storage_system_enable:
            self.remote = self._build_remote(controller)
        lifecycle = self._lifecycle = LogLifecycle(
            controller=controller,
            log_manager=self.log_manager,
            replicas=self.replicas,
            disk=self.disk,
            on_serving=self._serving,
            on_reconfigured=self._reconfigured,
            on_deleted=self._deleted,
        )
        move_throttle = Throttle(
            self.clock,
            sleep_ms,
            controller.effective_settings.replica_alter_log_dirs_io_max_bytes_per_second,
        )
        self.dynamic.subscribe(
            ["replica.alter.log.dirs.io.max.bytes.per.second"],
            lambda _before, after: move_throttle.set_rate(
                after.replica_alter_log_dirs_io_max_bytes_per_second
            ),
        )
        self.log_mover = LogMover(
            controller=controller,
            log_manager=self.log_manager,
            replicas=self.replicas,
            timer=self.timer,
            resign=self._resign,
            serve=lifecycle.serve,
            config_for=lifecycle.config_for,
            throttle=move_throttle,
            threads=settings.num_replica_alter_log_dirs_threads or len(self.log_dirs),
        )
        self.replicas.on_disk_failure = self.log_manager.fail_log
        controller.has_room = lambda: self.log_manager.has_room
        self._store.on_full = self._store_full
        self.replicas.is_known = lambda topic, index: (
            controller.image.partition(topic, index) is not None
        )
        self.replicas.is_offline = self.log_manager.is_given_up
        self.replicas.known_name = lambda topic_id: controller.image.name_of(topic_id)
        controller.subscribe(lifecycle.apply)
        self.groups = GroupCoordinator(
            settings,
            self.environment,
            self.replicas,
            controller,
            at_turn_end=self.iteration_end.call,
            alerts=self.alerts,
        )
        await self.groups.start()
        self.transactions = TransactionCoordinator(
            settings,
            self.environment,
            self.replicas,
            controller,
            LocalMarkerWriter(self.replicas, self.groups, soon=self.loop.call_soon),
            self.alerts,
        )
        await self.transactions.start()
        self.share_coordinator = ShareCoordinator(
            settings, self.environment, self.replicas, controller, self.alerts
        )
        await self.share_coordinator.start()
        self.groups.share_persister = self.share_coordinator
        self.share = SharePartitions(
            settings,
            self.environment,
            self.replicas,
            controller,
            self.share_coordinator,
            lambda group_id: controller.share_group_config(group_id).delivery,
        )
        self.groups.on_share_state_altered = self.share.forget_if_unread
        controller.subscribe(self._find_uncoordinated)
        self._build_apis(controller)
        await self._listen(controller)
        self.lag.start()
        self.writers.start(self.timer)
        for path, writer in self.writers.all().items():
            writer.on_failed = partial(self._writeback_failed, path)
        self._loading = asyncio.create_task(self._load(lifecycle))

    async def _open_metadata_directory(self) -> None:
        """Lock `metadata.log.dir`, where it is a directory of its own."""
        directory = self.metadata_directory
        if directory is not None:
            await self.disk.run(directory.open)

    def _claim_metadata_directory(self, cluster_id: str) -> None:
        assert self.metadata_directory is not None
        self.metadata_directory.claim(
            cluster_id,
            self.settings.node_id,
            self.randomness,
            store_id=self.node_store.store_id,
        )

    def _home(self) -> LogDirectory | None:
        """The log directory with the metadata store, if it is one of `log.dirs`."""
        path = dirname(self.node_store.path)
        return next((d for d in self.log_manager.directories if d.path == path), None)

    def _build_remote(self, controller: Controller) -> RemoteStorage:
        home = tier_home(self.settings, self.filesystem)
        remote = RemoteStorage(
            tier_settings(controller.effective_settings, home),
            replicas=self.replicas,
            controller=controller,
            environment=self.environment,
            log_dir=home,
            node_id=self.settings.node_id,
            on_lookup_timeout=self.lookups.set_timeout,
            checkpoint_log_starts=self.log_manager.checkpoint_log_start_offsets,
            alerts=self.alerts,
        )
        pages = TierPages(
            remote,
            self.replicas,
            cluster_id=controller.image.cluster_id,
            node_id=self.settings.node_id,
        )
        self.admin.add(pages.pages, pages.actions)
        assert self.dynamic is not None
        self.dynamic.subscribe(
            REMOTE_KEYS, lambda _before, after: remote.on_settings(tier_settings(after, home))
        )
        return remote

    def _build_apis(self, controller: Controller) -> None:
        assert self.groups is not None
        assert self.transactions is not None
        assert self.share_coordinator is not None
        assert self.share is not None
        services = Services(
            settings=self.settings,
            clock=self.clock,
            randomness=self.randomness,
            timer=self.timer,
            disk=self.disk,
            log_manager=self.log_manager,
            controller=controller,
            replica_manager=self.replicas,
            groups=self.groups,
            transactions=self.transactions,
            share=self.share,
            share_coordinator=self.share_coordinator,
            lookups=self.lookups,
            remote=self.remote,
            log_mover=self.log_mover,
        )
        apis = KafkaApis(services, map(Api, handler_modules()), self.clock)
        apis.by_key[ApiKey.PRODUCE].hot = ProduceHandler(
            self.replicas, self.clock, apis.open_reply, self.transactions
        )
        apis.by_key[ApiKey.FETCH].hot = FetchHandler(
            self.replicas, self.sessions, apis.open_reply, max_bytes=self.settings.fetch_max_bytes
        )
        apis.by_key[ApiKey.SHARE_FETCH].hot = ShareFetchHandler(
            self.share, self.replicas, apis.open_reply, max_bytes=self.settings.fetch_max_bytes
        )
        services.advertised_apis = apis.advertised()
        self.apis = apis

    async def _listen(self, controller: Controller) -> None:
        settings = self.settings
        assert self.apis is not None
        network = self.network = NetworkServer(
            settings,
            loop=self.loop,
            environment=self.environment,
            read_cold=self.replicas.cold_reads.run,
            router=self.apis,
            iteration_end=self.iteration_end,
            connections_max=self.descriptors.connections,
            alerts=self.alerts,
        )
        assert self.dynamic is not None
        self.dynamic.subscribe(LIMIT_KEYS, lambda _, after: network.update_limits(after))
        try:
            if settings.admin_listener is not None:
                await self.admin.start(settings.admin_listener.host, settings.admin_listener.port)
            self.network.start()
        except OSError as error:
            raise StartupError(f"cannot listen: {error}") from error
        controller.advertise(self._endpoints(settings))
        self.dynamic.subscribe(LISTENER_KEYS, lambda _, after: self._listen_as(after))
        self.dynamic.subscribe(WORKER_KEYS, lambda _, after: network.update_workers(after))

    def _listen_as(self, settings: "BrokerConfig") -> None:
        """Listeners have been changed at run time."""
        assert self.network is not None
        assert self.controller is not None
        self.network.update_listeners(settings)
        self.controller.advertise(self._endpoints(settings))

    def _endpoints(self, settings: "BrokerConfig") -> Mapping[str, BrokerEndpoint]:
        """What clients are told to call: bound ports stand in for port 0, this host for no host."""
        bound = {name: (host, port) for name, host, port in self.addresses}
        endpoints = {}
        for listener in settings.listeners_for_clients:
            if listener.name not in bound:
                continue
            host, port = listener.host, listener.port
            bound_host, bound_port = bound[listener.name]
            if not settings.advertised_listeners:
                host = bound_host
            endpoints[listener.name] = BrokerEndpoint(
                host or os.uname().nodename, port or bound_port
            )
        return endpoints

    async def _load(self, lifecycle: LogLifecycle) -> None:
        started_ms = self.clock.monotonic_ms()
        assert self.dynamic is not None
        dynamic = self.dynamic
        threads = dynamic.current.num_recovery_threads_per_data_dir * len(self.log_dirs)
        self.timer.call_later_ms(PROGRESS_MS, self._tell_progress)
        try:
            await lifecycle.load(threads)
            if not self.log_manager.progress.is_stopped:
                assert self._directories is not None
                await self._directories.settle()
        except StorageError as error:
            self._fail(str(error))
            return
        except Exception:
            LOGGER.exception("loading logs failed")
            self._fail("loading logs failed")
            return
        if self._stopping:
            return
        assert self.controller is not None
        await self._find_uncoordinated(None, self.controller.image)
        self._start_background()
        self.log_manager.on_directory_full = self._directory_full
        self.ready = True
        LOGGER.info(
            "broker ready partitions=%d recovered_bytes=%d elapsed_ms=%d",
            self.replicas.partition_count,
            self.log_manager.progress.bytes_total,
            self.clock.monotonic_ms() - started_ms,
        )

    def _start_background(self) -> None:
        """With the first partition that serves: others may go on recovering for long."""
        if self.background is not None or self._stopping:
            return
        assert self.dynamic is not None
        assert self._lifecycle is not None
        dynamic = self.dynamic
        self.background = Background(
            settings=self.settings,
            log_manager=self.log_manager,
            replicas=self.replicas,
            disk=self.disk,
            timer=self.timer,
            clock=self.clock,
            current=lambda: dynamic.current,
            after_cleaning=_nothing if self.cleaners is None else self.cleaners.end_idle,
            create_unmade=self._lifecycle.create_unmade,
        )
        self.background.start()

    def _tell_progress(self) -> None:
        """While logs recover: a line now and then for whoever watches the log."""
        if self.ready or self._stopping:
            return
        progress = self.log_manager.progress
        LOGGER.info(
            "recovering logs partitions=%d of=%d bytes=%d of_bytes=%d",
            progress.partitions_done,
            progress.partitions_total,
            progress.bytes_done,
            progress.bytes_total,
        )
        self.timer.call_later_ms(PROGRESS_MS, self._tell_progress)

    def _reconfigured(self, partition: "Partition") -> None:
        if self.remote is not None:
            self.remote.on_reconfigured(partition)

    def _deleted(self, partitions: "Sequence[Partition]") -> None:
        if self.remote is not None:
            self.remote.on_deleted(partitions)

    def _serving(self, topic_partition: TopicPartition) -> None:
        self._start_background()
        partition = self.replicas.get_partition(*topic_partition)
        if partition is None:
            return
        if self.remote is not None:
            self.remote.on_serving(partition)
        coordinator = self._coordinator_of(topic_partition.topic)
        if coordinator is not None:
            coordinator.on_elected(topic_partition.partition, partition.leader_epoch)

    def _coordinator_of(
        self, topic: str
    ) -> GroupCoordinator | TransactionCoordinator | ShareCoordinator | None:
        """Whose state lies in the topic."""
        if topic == OFFSETS_TOPIC:
            return self.groups
        if topic == TRANSACTION_TOPIC:
            return self.transactions
        return self.share_coordinator if topic == SHARE_GROUP_STATE else None

    # -- trouble ---------------------------------------------------------------------------------

    async def _find_uncoordinated(self, old: "ClusterImage | None", new: "ClusterImage") -> None:
        """Say so of partitions that coordinators need and whose logs are not served.

        Once the logs are loaded, and when such a topic is created or gets more partitions.
        """
        for name in (OFFSETS_TOPIC, TRANSACTION_TOPIC, SHARE_GROUP_STATE):
            topic = new.topics.get(name)
            coordinator = self._coordinator_of(name)
            if topic is None or coordinator is None:
                continue
            if old is not None and (not self.ready or old.topics.get(name) is topic):
                continue
            for partition in topic.partitions:
                if self.replicas.get_partition(name, partition.index) is None:
                    coordinator.unavailable.set(partition.index, "its log is not served here")

    def _writeback_failed(self, path: str, error: DiskError) -> None:
        """As after a failed flush: nobody knows what the disk has of what was written."""
        for directory in self.log_manager.directories:
            if directory.path == path:
                for log in self.log_manager.logs_in(directory)[:1]:
                    self.log_manager.fail_log(log, error)

    def _directory_failed(self, path: str, partitions: list[TopicPartition]) -> None:
        """Called in any thread."""
        self.loop.call_soon_threadsafe(self._directory_gone, path, partitions)

    def _directory_full(self) -> None:
        """Called in any thread."""
        assert self.background is not None
        self.loop.call_soon_threadsafe(self.background.make_room)

    def _store_full(self, reason: str) -> None:
        """The metadata store found no room: its log directory's reserve is for it, too."""
        path = self.node_store.path
        self.log_manager.out_of_room_at(dirname(path), DiskError(reason, path, errno.ENOSPC))

    def _directory_gone(self, path: str, partitions: list[TopicPartition]) -> None:
        LOGGER.error("log directory offline directory=%s partitions=%d", path, len(partitions))
        self._resign(partitions)
        for topic_partition in partitions:
            coordinator = self._coordinator_of(topic_partition.topic)
            if coordinator is not None:
                coordinator.unavailable.set(
                    topic_partition.partition, f"its log is in {path}, which is offline"
                )
        if len(self.log_manager.offline_directories) == len(self.log_manager.directories):
            self._fail("every log directory is offline")
        elif path == dirname(self.node_store.path):
            self._fail(f"{path} is offline and holds the metadata store")

    def _resign(self, partitions: list[TopicPartition]) -> None:
        """Serve partitions no longer, nor what lies in them."""
        if self.remote is not None:
            served = [self.replicas.get_partition(*one) for one in partitions]
            self.remote.on_resigned(one for one in served if one is not None)
        self.replicas.remove_partitions(partitions)
        for topic_partition in partitions:
            coordinator = self._coordinator_of(topic_partition.topic)
            if coordinator is not None:
                coordinator.on_resigned(topic_partition.partition)

    def _fail(self, reason: str) -> None:
        if not self.failed.done():
            self.failed.set_result(reason)

    # -- the admin port --------------------------------------------------------------------------

    async def _healthz(self, _query: Query) -> Page:
        return Page(200, b"ok\n")

    async def _readyz(self, _query: Query) -> Page:
        if self._stopping:
            return Page(503, b"stopping\n")
        coordinators = (self.groups, self.transactions, self.share_coordinator)
        if self.ready and not any(one is not None and one.is_loading for one in coordinators):
            status, state = 200, "ready"
        else:
            done = self.log_manager.progress
            status = 503
            state = (
                f"recovering {done.partitions_done} of {done.partitions_total} partitions, "
                f"{done.bytes_done} of {done.bytes_total} bytes"
            )
        alerts = self.alerts.all()
        lines = [state, *(f"{one.kind}: {one.subject}: {one.text}" for one in alerts[:READY_LINES])]
        if len(alerts) > READY_LINES:
            lines.append(f"and {len(alerts) - READY_LINES} more: see varve_alerts of /metrics")
        return Page(status, "".join(f"{line}\n" for line in lines).encode())

    async def _metrics(self, _query: Query) -> Page:
        if self._metrics_page is None:
            self._metrics_page = self._build_metrics()
        return await self._metrics_page.page()

    def _build_metrics(self) -> "MetricsPage":
        # Imported by the first scrape: a start should not wait for what nobody may ask for.
        from broker.coordinator.partitioner import remembered_hash
        from broker.metrics.alerts import AlertMetrics
        from broker.metrics.cleaning import CleaningMetrics
        from broker.metrics.descriptors import DescriptorMetrics
        from broker.metrics.groups import GroupMetrics
        from broker.metrics.kept import KeptMetrics
        from broker.metrics.network import NetworkMetrics
        from broker.metrics.page import MetricsPage, Source
        from broker.metrics.partitions import PartitionMetrics
        from broker.metrics.share import ShareMetrics
        from broker.metrics.transactions import TransactionMetrics
        from broker.metrics.writers import WriterMetrics

        assert self.apis is not None
        assert self.groups is not None
        assert self.transactions is not None
        assert self.share is not None
        assert self.share_coordinator is not None
        assert self.network is not None
        network = self.network
        assert self.controller is not None
        assert self._store is not None
        store, manager = self._store, self.log_manager
        controller, replicas = self.controller, self.replicas
        kept = KeptMetrics(
            {
                "metadata history events": lambda: store.history_events,
                "metadata history bytes": lambda: store.history_bytes,
                "topic descriptions": lambda: len(controller.topic_metadata),
                "notes of deleted topics": lambda: len(controller.image.deleted_topics),
                "topic statistics": lambda: len(replicas.stats),
                "topic names by id": lambda: len(replicas.names_by_id),
                "addresses with parked polls": lambda: len(replicas.parked_by_address.counts),
                "hashes of group names": lambda: remembered_hash.cache_info().currsize,
                "timers": lambda: self.timer.armed,
                "deleted directories": lambda: manager.deleted_count,
                "abandoned compactions": lambda: manager.cleaning.abandoned_count,
            }
        )
        sources: list[Source] = [kept]
        if self.remote is not None:
            from broker.metrics.remote import RemoteMetrics

            sources.append(RemoteMetrics(self.remote, self.replicas, self.lookups))
        return MetricsPage(
            [
                NetworkMetrics(
                    apis=self.apis,
                    channel=self.network.channel,
                    processors=lambda: network.processors,
                    limits=self.network.limits,
                    buffers=self.network.buffers,
                    lag=self.lag,
                ),
                PartitionMetrics(self.replicas, self.controller, self.sessions, self.log_manager),
                GroupMetrics(self.groups, self.replicas),
                TransactionMetrics(self.transactions, self.replicas, self.clock),
                ShareMetrics(self.share, self.share_coordinator, self.groups.stats),
                WriterMetrics(self.writers),
                CleaningMetrics(self.cleaners),
                AlertMetrics(self.alerts),
                DescriptorMetrics(self.descriptors, self.filesystem),
                *sources,
            ],
            self.disk,
        )

    # -- stop ------------------------------------------------------------------------------------

    def _set_cleaner_limits(self, settings: "BrokerConfig") -> None:
        self.cleaner_throttle.set_rate(settings.log_cleaner_io_max_bytes_per_second)
        self.log_manager.update_cleaner(LogManagerSettings.of(settings))
        if self.cleaners is not None:
            self.cleaners.set_limits(limits_of(settings))

    async def stop(self) -> None:
        """Finish what is in flight, flush, mark the directories clean, let go of everything."""
        self._stopping = True
        self.log_manager.stop_loading()
        if self.network is not None:
            self.network.stop_accepting()
        if self.background is not None:
            await self.background.stop()
        if self.cleaners is not None:
            await self.disk.run(self.cleaners.close)
        if self._loading is not None and not self._loading.done():
            # It ends soon. What is not open by then is not marked clean.
            await asyncio.wait([self._loading])
        if self.log_mover is not None:
            await self.log_mover.stop()
        if self.share is not None:
            await self.share.stop()
        if self.share_coordinator is not None:
            await self.share_coordinator.stop()
        if self.transactions is not None:
            await self.transactions.stop()
        if self.groups is not None:
            await self.groups.stop()
        self.replicas.answer_parked()
        await self.lookups.stop()
        if self.network is not None:
            await self.network.stop(STOP_TIMEOUT_S)
        if self.remote is not None:
            await self.remote.stop()
        if self.controller is not None:
            await self.controller.aclose()
        self.lag.stop()
        for partition in list(self.replicas.partitions()):
            if partition.writes is not None:
                await partition.writes.idle()
        self.writers.close()
        clean = not self.failed.done()
        try:
            await self.disk.run(self.log_manager.shutdown, clean=clean)
        except StorageError as error:
            LOGGER.error("logs not closed cleanly error=%s", error)
        if self._store is not None:
            await self._store.aclose()
        if self.metadata_directory is not None:
            self.metadata_directory.close(mark_clean=False)
        await self.admin.aclose()
        self.timer.close()
        self._on_loop.close()
        self.disk.close()


def _nothing() -> None:
    """There is nothing to end."""
