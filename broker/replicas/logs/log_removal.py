"""Removal of logs: of deleted topics, and of replicas that are assigned elsewhere now.

    image ──in its turn──> partitions closed: nothing is served from them any more
                   └─task─> writes and flushes end ──> directories renamed to `-delete`
                                                       (their files go after `file.delete.delay.ms`)

What is removed was named by the image: a topic that is gone, or the other replicas of a partition.
A log that is only not mentioned is set aside at a start, and never removed.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from protocol.error_codes import ErrorCode
from storage.errors import StorageError
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import TopicImage
    from broker.replicas.partition import Partition
    from broker.replicas.replica_manager import ReplicaManager
    from broker.replicas.role_reconciler import RoleReconciler
    from broker.runtime.disk import Disk
    from storage.manager.log_manager import LogManager

LOGGER = logging.getLogger(__name__)


class LogRemoval:
    """See the module. On the loop's thread; what touches the disk is handed to threads."""

    def __init__(
        self,
        log_manager: "LogManager",
        replicas: "ReplicaManager",
        roles: "RoleReconciler",
        disk: "Disk",
        folders: asyncio.Lock,
        on_deleted: "Callable[[Sequence[Partition]], None]",
    ) -> None:
        """Remove nothing yet.

        Args:
            log_manager: Deletes logs.
            replicas: Has the partitions that are open.
            roles: Close them.
            disk: Threads.
            folders: Held while logs are being made.
            on_deleted: Has partitions of a deleted topic: closed, their logs are still there.
        """
        self._log_manager = log_manager
        self._replicas = replicas
        self._roles = roles
        self._disk = disk
        self._folders = folders
        self._on_deleted = on_deleted
        # The last of each topic name; it ends after those before it.
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def tasks(self) -> "Iterable[asyncio.Task[None]]":
        """What is under way."""
        return self._tasks.values()

    def of(self, topic: str) -> "asyncio.Task[None] | None":
        """The removal that logs of a new topic of this name have to wait for."""
        return self._tasks.get(topic)

    def topic_deleted(self, topic: "TopicImage") -> None:
        """Close its partitions now, remove their logs soon."""
        closed = self._roles.close_topic(topic.name)
        try:
            self._on_deleted(closed)
        except Exception:  # their logs go all the same
            LOGGER.exception("deletion not passed on topic=%s", topic.name)
        self._begin(topic.name, closed, range(len(topic.partitions)))

    def replicas_removed(self, topic: str, indexes: Sequence[int]) -> None:
        """Close partitions that other brokers have now, remove their logs soon.

        Those that are still being recovered leave when all are open.
        """
        closed = [p for index in indexes if (p := self._replicas.replica_of(topic, index))]
        self._roles.close((p.topic_partition for p in closed), ErrorCode.NOT_LEADER_OR_FOLLOWER)
        LOGGER.info("replicas removed topic=%s partitions=%d", topic, len(closed))
        self._begin(topic, closed, indexes)

    def _begin(self, topic: str, closed: "Sequence[Partition]", indexes: Iterable[int]) -> None:
        name = f"removal of {topic}"
        coroutine = self._remove(topic, closed, indexes, self._tasks.get(topic))
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._tasks[topic] = task
        task.add_done_callback(lambda done: self._forget(topic, done))

    def _forget(self, topic: str, task: "asyncio.Task[None]") -> None:
        if self._tasks.get(topic) is task:
            del self._tasks[topic]

    async def _remove(
        self,
        topic: str,
        closed: "Sequence[Partition]",
        indexes: Iterable[int],
        before: "asyncio.Task[None] | None",
    ) -> None:
        if before is not None:
            await asyncio.wait([before])
        manager = self._log_manager
        everything = [TopicPartition(topic, index) for index in indexes]
        try:
            for partition in closed:
                await partition.idle()
            # What was being made meanwhile leaves too, and what could not be opened.
            async with self._folders:
                gone = [
                    one
                    for one in everything
                    if manager.get(one) is not None or manager.is_given_up(one)
                ]
                await self._disk.run(manager.deletion.delete_all, gone)
        except StorageError as error:
            LOGGER.error("logs not deleted topic=%s error=%s", topic, error)
        except Exception:
            # The metadata has them no longer: their names must become free.
            LOGGER.exception("logs not deleted topic=%s", topic)
        finally:
            manager.deletion.forget_offline(everything)
