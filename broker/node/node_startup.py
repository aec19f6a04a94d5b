"""Opening a node: its directories are locked, its metadata store found, its controller built.

    log directories locked ─> metadata.log.dir locked ─> metadata store opened ─> controller
        ─> directories claimed for the cluster

Whatever refuses a start does it here, with a sentence for the operator, before a log is opened.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from posixpath import dirname
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from broker.controller.cluster_opening import ClusterIdError
from broker.controller.controller import (
    Controller,
    RemoteStorageDisabledError,
)
from broker.controller.images.metadata_records import MetadataFormatError
from broker.controller.store.metadata_store import MetadataStore, StoreError
from broker.controller.store.until_answered import until_answered
from broker.membership.last_run import past_epochs
from broker.membership.membership import MembershipError
from broker.membership.registration import Registrar
from broker.node.cluster_node import check_directories, check_store, incarnation_of, take_over
from broker.node.node_directories import NodeDirectories
from broker.node.node_store import NodeStore
from broker.node.store_file import NodeStoreError
from broker.node.store_notes import StoreNotes
from broker.runtime.pauses import pause
from broker.runtime.startup_errors import StartupError
from config.sections.remote_storage import S3
from storage.checkpoints.brokers_note import BROKERS_FILE, read_brokers_note
from storage.checkpoints.log_directory import LogDirectory
from storage.checkpoints.member_note import MemberNote
from storage.environment.alerts import Alerts
from storage.environment.environment import Environment
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.controller.store.sqlite_store import SqliteStore
    from config.broker import BrokerConfig
    from storage.manager.log_manager import LogManager

LOGGER = logging.getLogger(__name__)

LEASE_END_MS: Final = 3_000.0
"""After its time until a lease is gone for certain: whole seconds, etcd's look, an election."""

_T = TypeVar("_T")


class OpenNode(NamedTuple):
    """A node that is open."""

    store: MetadataStore
    controller: Controller
    directories: NodeDirectories


def _has_objects_of_its_own(settings: "BrokerConfig") -> bool:
    """Whether its remote segments would be in a directory below its own."""
    is_directory = settings.rsm_config_storage_backend_class != S3
    return is_directory and not settings.rsm_config_storage_root


class NodeStartup:
    """See the module. `open` once; `close` also when it has failed.

    Attributes:
        waiting_for: What a start is waiting for, with a reason; empty: nothing.
    """

    def __init__(
        self,
        settings: "BrokerConfig",
        environment: Environment,
        log_manager: "LogManager",
        metadata_directory: LogDirectory | None,
        alerts: Alerts,
        store: MetadataStore | None = None,
    ) -> None:
        """Touch nothing yet.

        Args:
            settings: Of the broker.
            environment: Of the broker.
            log_manager: Has the log directories.
            metadata_directory: `metadata.log.dir`, if it is none of them.
            alerts: Get one for a log directory that is missing.
            store: The cluster's, open, and the caller's to close; None: what `metadata.store`
                says, by default a file in the log directories of a node that is alone.
        """
        self._settings = settings
        self._environment = environment
        self._log_manager = log_manager
        self._metadata_directory = metadata_directory
        self._alerts = alerts
        self._node_store = NodeStore(
            settings, log_manager.directories, metadata_directory, environment
        )
        self._shared = store
        self._opened: MetadataStore | None = None
        self.waiting_for = ""
        self._store: SqliteStore | None = None
        self._notes: StoreNotes | None = None

    @property
    def store_path(self) -> str:
        """The metadata store's file; empty before `open`, and where the store is a cluster's."""
        return self._node_store.path

    async def open(self) -> OpenNode:
        """Lock, find, claim.

        Raises:
            StartupError: With a sentence for the operator.
        """
        try:
            node = await self._open()
        except (
            StorageError,
            StoreError,
            MetadataFormatError,
            NodeStoreError,
            ClusterIdError,
            RemoteStorageDisabledError,
            MembershipError,
        ) as error:
            raise StartupError(str(error)) from error
        home = dirname(self.store_path)
        for directory in self._log_manager.directories:
            if directory.path == home and not directory.is_online:
                raise StartupError(f"the metadata store is in {home}: {directory.offline_reason}")
        return node

    async def _open(self) -> OpenNode:
        run = self._environment.run_blocking
        manager, other = self._log_manager, self._metadata_directory
        await run(manager.startup.open_directories)
        await run(self._check_alone)
        if other is not None:
            await run(other.open)
        if self._shared is not None or self._settings.metadata_store.is_shared:
            return await self._open_as_member()
        store = self._store = await self._node_store.open()
        controller = await Controller.open(
            store,
            self._settings,
            randomness=self._environment.randomness,
            cluster_id=manager.startup.stored_cluster_id,
        )
        if other is not None:
            await run(self._claim, other, controller.image.cluster_id)
        directories = NodeDirectories(controller, manager, self._alerts, run)
        await directories.claim(self._node_store.store_id)
        self._note(controller)
        return OpenNode(store, controller, directories)

    def _note(self, controller: Controller) -> None:
        """Have the log directories say how far the store has come, from now on."""
        store_id, manager = self._node_store.store_id, self._log_manager
        assert store_id is not None, "it is open"
        notes = self._notes = StoreNotes(
            self._environment,
            lambda: [one.path for one in manager.directories if one.is_online],
            store_id,
            self._node_store.noted_revision,
        )
        controller.subscribe_revisions(notes.seen)
        notes.seen(controller.image)

    def _check_alone(self) -> None:
        """Refuse a directory that several brokers share: each has a folder of its own in it."""
        for directory in self._log_manager.directories:
            if not directory.is_online:
                continue
            noted = read_brokers_note(self._environment.filesystem, directory.path)
            if noted is not None:
                raise NodeStoreError(
                    f"log directory {directory.path} is that of {len(noted)} brokers "
                    f"({BROKERS_FILE} names {', '.join(map(str, noted))}): start it with "
                    f"--brokers {noted[-1] - noted[0] + 1}, or give other log.dirs"
                )

    async def _open_as_member(self) -> OpenNode:
        settings = self._settings
        if settings.remote_log_storage_system_enable and _has_objects_of_its_own(settings):
            raise StartupError(
                "remote.log.storage.system.enable is true and rsm.config.storage.root is not set: "
                "objects would lie in this broker's log directory, where the others do not reach "
                "them. Set it to a directory that all brokers share, or use a bucket"
            )
        manager, run = self._log_manager, self._environment.run_blocking
        filesystem = self._environment.filesystem
        notes: dict[str, MemberNote] = await run(check_directories, manager.directories, filesystem)
        store = self._shared or await self._open_shared()
        recovered = await self.until_answered(
            lambda: check_store(store, manager.directories, notes)
        )
        await self.until_answered(lambda: self._wait_for_other(store))
        if recovered:
            incarnation = await self.until_answered(lambda: incarnation_of(store))
            await run(take_over, recovered, incarnation, filesystem)

        def open_controller() -> Awaitable[Controller]:
            return Controller.open(
                store,
                self._settings,
                randomness=self._environment.randomness,
                cluster_id=manager.startup.stored_cluster_id,
                is_alone=False,
            )

        controller = await self.until_answered(open_controller)
        directories = NodeDirectories(controller, manager, self._alerts, run, is_alone=False)
        if directories.have_lost_all():
            await self._wait_for_leases()
            controller = await self.until_answered(open_controller)
            directories = NodeDirectories(controller, manager, self._alerts, run, is_alone=False)
        incarnation = await self.until_answered(lambda: incarnation_of(store))
        await directories.claim(incarnation, record=self.until_answered)
        return OpenNode(store, controller, directories)

    async def _wait_for_leases(self) -> None:
        """Let the leases end of brokers that were stopped together with this one.

        Until then their leaders seem to live, and this broker's replicas would begin empty beside
        logs that are not mounted anywhere.
        """
        text = "waiting for leases of earlier brokers to end: all log directories are empty"
        LOGGER.warning("%s", text)
        self.wait(text)
        await pause(
            self._environment.timer, self._settings.broker_session_timeout_ms + LEASE_END_MS
        )
        self.wait("")

    async def until_answered(self, step: Callable[[], Awaitable[_T]]) -> _T:
        """The result of a step of the start, which waits for the cluster's store; see there."""
        return await until_answered(
            step,
            self._environment.timer,
            what=f"the metadata store {self._settings.metadata_store}",
            waiting=self.wait,
        )

    def wait(self, reason: str) -> None:
        """Have the start wait for something; empty: for nothing any more."""
        self.waiting_for = reason

    async def _wait_for_other(self, store: MetadataStore) -> None:
        """Refuse a second process of this node id, before a directory is claimed for it."""
        node_id = self._settings.node_id
        online = [directory for directory in self._log_manager.directories if directory.is_online]
        registrar = Registrar(
            store,
            node_id,
            clock=self._environment.clock,
            timer=self._environment.timer,
            session_ms=self._settings.broker_session_timeout_ms,
            past=await self._environment.run_blocking(
                partial(
                    past_epochs,
                    self._environment.filesystem,
                    [directory.path for directory in online],
                )
            ),
        )
        self.waiting_for = f"waiting for the end of another broker {node_id}"
        await registrar.wait_for_other(
            [directory.id for directory in online if directory.id is not None]
        )
        self.waiting_for = ""

    async def _open_shared(self) -> MetadataStore:
        # Nothing of etcd is imported by a node that is alone.
        from broker.node.cluster_store import open_cluster_store

        self._opened = await open_cluster_store(
            self._settings, self._environment, waiting=self.wait
        )
        return self._opened

    def _claim(self, directory: LogDirectory, cluster_id: str) -> None:
        directory.claim(
            cluster_id,
            self._settings.node_id,
            self._environment.randomness,
            store_id=self._node_store.store_id,
        )

    async def close(self) -> None:
        """Close the store, when logs and controller are closed, and unlock `metadata.log.dir`."""
        if self._notes is not None:
            await self._notes.end()
        for store in (self._store, self._opened):
            if store is not None:
                await store.aclose()
        if self._metadata_directory is not None:
            self._metadata_directory.close(mark_clean=False)
