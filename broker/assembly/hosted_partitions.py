"""What makes this broker's partitions follow the image: roles, logs, moves, failures of disks.

image ──> LogLifecycle.apply_now ──> RoleReconciler ──> ServedPartitions   in the image's turn
      ──> LogLifecycle.apply                                               afterwards, awaited
load  ──> LogLoading: every log opened ──> membership joins ──> roles of the newest image
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.controller.store.metadata_store import MetadataStore, StoreError
from broker.lifecycle.disk_failures import DiskFailures
from broker.lifecycle.log_loading import LogLoading
from broker.lifecycle.log_moves import build_log_mover
from broker.lifecycle.replication import build_quotas, connect_replicas
from broker.lifecycle.served_partitions import ServedPartitions
from broker.membership.membership import MembershipError
from broker.replicas.background import Background
from broker.replicas.logs.log_lifecycle import LogLifecycle
from broker.replicas.role_reconciler import RoleReconciler

if TYPE_CHECKING:
    from broker.assembly.cluster_side import ClusterSide
    from broker.assembly.local_parts import LocalParts
    from broker.controller.images.cluster_image import ClusterImage
    from broker.controller.store.sqlite_store import SqliteStore
    from broker.lifecycle.coordinators import Coordinators
    from broker.node.dynamic_settings import DynamicSettings
    from broker.node.node_startup import OpenNode
    from broker.remote.remote_storage import RemoteStorage
    from storage.types.topic_partition import TopicPartition


def _own_store(store: MetadataStore) -> "SqliteStore | None":
    """The store of a node that is no cluster's member; a member does without SQLite."""
    from broker.controller.store.sqlite_store import SqliteStore

    return store if isinstance(store, SqliteStore) else None


class HostedPartitions:
    """See the module. `follow_image`, then `load`; runs on the loop's thread.

    Attributes:
        quotas: Of replication: the leader's, the follower's.
        log_mover: From one directory to another.
        loading: How far the logs are open.
    """

    def __init__(
        self,
        local: "LocalParts",
        node: "OpenNode",
        side: "ClusterSide",
        coordinators: "Coordinators",
        *,
        dynamic: "DynamicSettings",
        remote: "RemoteStorage | None",
        store_path: str,
        fail: Callable[[str], None],
    ) -> None:
        """Connect the parts; nothing is opened.

        Args:
            local: Of this broker.
            node: With the controller, whose images these are, and the directories.
            side: Gives membership and fetchers.
            coordinators: Follow the roles, as `remote` does.
            dynamic: Settings as they are now.
            remote: None without remote storage.
            store_path: The metadata store's file; empty in a cluster.
            fail: Ends the broker, with a reason for the operator.
        """
        controller = self._controller = node.controller
        self._local = local
        self._side = side
        self._coordinators = coordinators
        self._dynamic = dynamic
        self._fail = fail
        replicas, membership = local.replicas, side.membership
        self.quotas = build_quotas(dynamic, local.clock)
        replicas.terms.leader_quota = self.quotas[0]
        served = ServedPartitions(coordinators, remote, local.alerts)
        served.on_role = membership.acted
        roles = self._roles = RoleReconciler(
            local.settings.node_id,
            image=lambda: controller.image,
            membership=membership,
            replicas=replicas,
            listener=served,
            fetchers=side.follow_leaders(dynamic, remote, self.quotas[1]),
            call_soon=local.loop.call_soon,
            clock=local.clock,
        )
        replicas.roles_due = lambda: roles.due
        self._failures = DiskFailures(
            local.log_manager,
            roles,
            coordinators,
            disk=local.disk,
            store_path=store_path,
            is_leader=self._would_lead,
            call_soon_threadsafe=local.loop.call_soon_threadsafe,
            fail=fail,
        )
        self._failures.watch(_own_store(node.store) if store_path else None)
        self._lifecycle = LogLifecycle(
            controller=controller,
            log_manager=local.log_manager,
            replicas=replicas,
            roles=roles,
            disk=local.disk,
            on_serving=lambda: self.loading.on_serving(),
            is_alone=side.is_alone,
            listener=served,
        )
        side.report_directories(self._lifecycle, node.directories, self._failures)
        self.log_mover = build_log_mover(
            controller,
            dynamic,
            environment=local.environment,
            log_manager=local.log_manager,
            replicas=replicas,
            lifecycle=self._lifecycle,
            roles=roles,
        )
        self.loading = LogLoading(
            local.environment,
            local.log_manager,
            replicas,
            make_background=self._make_background,
            settle_directories=node.directories.settle,
            on_loaded=self._loaded,
            fail=fail,
        )
        connect_replicas(
            controller,
            replicas,
            local.log_manager,
            validity=membership.validity,
            is_alone=side.is_alone,
        )
        self._load: asyncio.Task[None] | None = None

    def follow_image(self) -> None:
        """Hear of images; before the first of them comes."""
        self._controller.subscribe_now(self._lifecycle.apply_now)
        self._controller.subscribe_now(self._roles.apply)
        self._controller.subscribe(self._lifecycle.apply)

    def watch_writers(self) -> None:
        """Hear of failures from the directories' threads."""
        self._failures.watch_writers(self._local.writers)

    def load(self) -> None:
        """Open every log, in threads; then join the cluster."""
        settings, directories = self._dynamic.current, len(self._local.log_dirs)
        threads = settings.num_recovery_threads_per_data_dir * directories
        self._load = asyncio.create_task(self._load_and_join(threads))

    async def _load_and_join(self, threads: int) -> None:
        """Open every log, then be a member: who joins has what it had before."""
        membership = self._side.membership
        await self.loading.load(self._lifecycle, threads)
        if self.loading.is_ready:
            if self._lifecycle.has_lost_logs:
                membership.logs_lost()
            try:
                await membership.join(self._sync_logs)
            except (MembershipError, StoreError) as error:
                self._fail(str(error))
            else:
                self._side.joined()
                # The image that lets this broker in may have come before the answer that has its
                # epoch: then no other comes.
                self._roles.review()

    async def _sync_logs(self) -> bool:
        from broker.membership.begin import sync_all

        done: bool = await self._local.disk.run(sync_all, self._local.log_manager)
        return done

    def _make_background(self) -> Background:
        local, cleaners = self._local, self._local.cleaners
        return Background(
            settings=lambda: self._dynamic.current,
            environment=local.environment,
            log_manager=local.log_manager,
            replicas=local.replicas,
            disk=local.disk,
            after_cleaning=_nothing if cleaners is None else cleaners.end_idle,
            create_unmade=self._lifecycle.create_unmade,
        )

    def _loaded(self, background: Background) -> None:
        self._coordinators.report_unserved(self._controller.image)
        self._failures.watch_room(background.make_room)

    def _would_lead(self, topic_partition: "TopicPartition") -> bool:
        """Whether this node is to lead it, and no other could; also if that is not known."""
        image: ClusterImage = self._controller.image
        found = image.partition(*topic_partition)
        return found is None or found.replicas == (self._local.settings.node_id,)

    async def load_ended(self) -> None:
        """Wait for the end of `load`; soon, once it was stopped. What is not open is not clean."""
        if self._load is not None and not self._load.done():
            if self.loading.is_ready:
                self._load.cancel()
            await asyncio.wait([self._load])


def _nothing() -> None:
    """No process to end."""
