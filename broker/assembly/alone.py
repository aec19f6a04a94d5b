"""The side of a single node: nothing of it ends, nothing is asked for or reported."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker.lifecycle.cluster_control import ClusterControl
from broker.membership.membership import SoleMembership
from broker.replicas.role_reconciler import NoFetchers

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.controller.store.metadata_store import MetadataStore
    from broker.lifecycle.disk_failures import DiskFailures
    from broker.node.dynamic_settings import DynamicSettings
    from broker.node.node_directories import NodeDirectories
    from broker.remote.remote_storage import RemoteStorage
    from broker.replicas.logs.log_lifecycle import LogLifecycle
    from broker.replication.quota import ReplicationQuota
    from storage.environment.environment import Environment
    from storage.types.topic_partition import TopicPartition


class Alone:
    """See the module, and `ClusterSide`."""

    is_alone = True
    marked_epoch = -1

    def __init__(
        self, controller: "Controller", store: "MetadataStore", environment: "Environment"
    ) -> None:
        self._controller = controller
        self.membership = SoleMembership(controller.settings.node_id, controller.advertise)
        self.control = ClusterControl(controller, store, self.membership, None, environment)
        self.peers = None
        self.isr_changes = None
        self.fetchers = None

    def follow_leaders(
        self,
        _dynamic: "DynamicSettings",
        _remote: "RemoteStorage | None",
        _quota: "ReplicationQuota",
    ) -> NoFetchers:
        """Whatever is here, is led here."""
        return NoFetchers()

    def report_directories(
        self,
        _lifecycle: "LogLifecycle",
        directories: "NodeDirectories",
        failures: "DiskFailures",
    ) -> None:
        """Metadata names no leader for what is in directories that are missing or have failed."""

        def offline(_path: str = "", _partitions: "Sequence[TopicPartition]" = ()) -> None:
            self._controller.report_offline(directories.offline_ids())

        offline()
        failures.on_offline = offline

    def joined(self) -> None:
        """Nothing waits for it."""

    async def hand_over(self) -> None:
        """There is no other broker to have it."""

    async def leave(self) -> None:
        """End the controller's part."""
        self.control.stop()
        await self.membership.leave()
