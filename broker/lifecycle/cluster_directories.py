"""Log directories of a member of a cluster, as the controller hears of them (KIP-858).

log opened         ──> ReplicaPlaces ──────────> AssignReplicasToDirs, if the image lacks it
directory failed   ──> FailedDirectoryReports ─> offline/<id> in the store
                   └─> ReplicaPlaces             what lay there and the image does not know of
no room, or again  ──> FailedDirectoryReports: others lead what lies there meanwhile
let in             ──> what waits is reported
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from broker.membership.failed_directories import FailedDirectoryReports
from broker.membership.replica_places import ReplicaPlaces
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.controller.channel import ControllerChannel
    from broker.controller.controller import Controller
    from broker.controller.store.metadata_store import MetadataStore
    from broker.membership.membership import Membership
    from broker.node.node_directories import NodeDirectories
    from broker.replicas.logs.log_lifecycle import LogLifecycle
    from storage.environment.environment import Environment
    from storage.manager.log_manager import LogManager


LOOK_FOR_ROOM_MS: Final = 200.0
"""Between two looks at which directories have room."""


class ClusterDirectories:
    """See the module. Runs on the loop's thread.

    Attributes:
        failed: Reports of directories that have failed.
        places: Reports of where replicas lie.
    """

    def __init__(
        self,
        controller: "Controller",
        channel: "ControllerChannel",
        membership: "Membership",
        log_manager: "LogManager",
        store: "MetadataStore",
        environment: "Environment",
        fail: Callable[[str], None],
    ) -> None:
        """Report nothing yet.

        Args:
            controller: Of this broker.
            channel: To the active controller.
            membership: Of this broker.
            log_manager: Has the directories.
            store: Of the cluster.
            environment: Clock and timer.
            fail: Ends the broker, with a reason for the operator.
        """
        settings = controller.settings
        self._controller = controller
        self._membership = membership
        self._log_manager = log_manager
        self._timer = environment.timer
        self._is_closed = False
        self.failed = FailedDirectoryReports(
            store,
            settings.node_id,
            clock=environment.clock,
            timer=environment.timer,
            timeout_ms=settings.log_dir_failure_timeout_ms,
            fail=fail,
        )
        self.places = ReplicaPlaces(
            channel,
            node_id=settings.node_id,
            broker_epoch=lambda: membership.broker_epoch,
            is_let_in=lambda: membership.is_let_in(controller.image),
            image=lambda: controller.image,
            timer=environment.timer,
        )
        controller.assign_by_controller = self.places.assign
        controller.subscribe_now(lambda _old, _new: self.places.image_changed())

    def follow(self, lifecycle: "LogLifecycle", directories: "NodeDirectories") -> None:
        """Hear of logs that are opened; before the load."""
        lifecycle.report_places(self.places.found, directories.begins_anew)

    def joined(self) -> None:
        """This broker is registered."""
        self.failed.begin(self._membership.broker_epoch)
        self.places.image_changed()
        self._look_for_room()

    def _look_for_room(self) -> None:
        if self._is_closed:
            return
        self.failed.set_full(
            tuple(
                directory.id
                for directory in self._log_manager.directories
                if directory.id is not None and directory.is_online and directory.is_full
            )
        )
        self._timer.call_later_ms(LOOK_FOR_ROOM_MS, self._look_for_room)

    def directory_offline(self, path: str, partitions: list[TopicPartition]) -> None:
        """See `DiskFailures.on_offline`."""
        self._membership.disk_failed()
        for directory in self._log_manager.directories:
            if directory.path == path and directory.id is not None:
                for topic_partition in partitions:
                    topic = self._controller.image.topics.get(topic_partition.topic)
                    if topic is not None:
                        self.places.found(topic.topic_id, topic_partition.partition, directory.id)
                self.failed.add(directory.id)

    async def aclose(self) -> None:
        """Report nothing more."""
        self._is_closed = True
        await self.places.aclose()
        await self.failed.aclose()
