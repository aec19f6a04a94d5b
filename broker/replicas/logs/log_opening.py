"""Opening the logs found at a start, in threads, each served as soon as it is open.

    listed ──assigned here──> jobs ──recover in threads──> handed over to the loop ──> a role
       ├──assigned to other brokers──> deleted: the partition's record says so
       └──not in the image──> set aside, not deleted

A log may be ready after its topic was deleted, or its replica was assigned elsewhere: then it
leaves when all are open. Of a single node, one that is damaged although it was closed waits for a
leader epoch (`broker.replicas.logs.new_epochs`).
"""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from storage.errors import DiskError
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from uuid import UUID

    from broker.controller.images.cluster_image import ClusterImage
    from broker.replicas.logs.assignment import Assignment
    from broker.replicas.logs.new_epochs import NewEpochs
    from broker.replicas.replica_manager import ReplicaManager
    from broker.replicas.role_reconciler import RoleReconciler
    from broker.runtime.disk import Disk
    from config.topic import TopicConfig
    from storage.checkpoints.log_loading import LoadJob
    from storage.log.log import Log
    from storage.manager.log_manager import LogManager

LOGGER = logging.getLogger(__name__)


class LogOpening:
    """See the module. On the loop's thread; what touches the disk is handed to threads."""

    def __init__(
        self,
        assignment: "Assignment",
        log_manager: "LogManager",
        replicas: "ReplicaManager",
        roles: "RoleReconciler",
        disk: "Disk",
        epochs: "NewEpochs",
        on_serving: Callable[[], None],
    ) -> None:
        """`on_serving`: called for each log that is open, before it has a role."""
        self._assignment = assignment
        self._log_manager = log_manager
        self._replicas = replicas
        self._roles = roles
        self._disk = disk
        self._epochs = epochs
        self._on_serving = on_serving
        self._loop = asyncio.get_running_loop()
        self._hand_over_lock = threading.Lock()
        self._handed_over: list[Log] = []
        self._configs: dict[str, TopicConfig] = {}
        # The image that the settings are of.
        self._opened_for: ClusterImage | None = None
        self._outdated: list[TopicPartition] = []
        # Logs that are open and wait for a leader epoch.
        self._cut: list[Log] = []
        self._begun: dict[TopicPartition, int] = {}
        self._is_done = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def find(self) -> "Sequence[LoadJob]":
        """List what is there; what the image does not have is set aside.

        Raises:
            LoadingStoppedError: The broker stops.
            StorageError: The same partition lies in two directories, or no directory works.
        """
        image, assignment = self._assignment.image, self._assignment
        defaults = assignment.defaults()
        jobs: Sequence[LoadJob] = await self._disk.run(
            self._log_manager.startup.load_jobs,
            lambda topic: self._configs.get(topic, defaults),
            on_loaded=self._hand_over,
            is_stray=lambda one, topic_id: assignment.topic_of(one, topic_id, image) is None,
            is_removed=lambda one, topic_id: assignment.is_elsewhere(one, topic_id, image),
            new_epoch_of=self._begun.get,
            latest_epoch_of=self._latest_epoch,
            topic_id_of=self._topic_id,
            is_replicated=self._is_replicated,
        )
        return jobs

    def _topic_id(self, topic_partition: TopicPartition) -> "UUID | None":
        """The id of the topic that the image has; in any thread."""
        image = self._opened_for
        found = None if image is None else image.topics.get(topic_partition.topic)
        return None if found is None else found.topic_id

    def _latest_epoch(self, topic_partition: TopicPartition) -> int | None:
        """The leader epoch that the image has; in any thread."""
        image = self._opened_for
        found = None if image is None else image.partition(*topic_partition)
        return None if found is None else found.leader_epoch

    def _is_replicated(self, topic_partition: TopicPartition) -> bool:
        """Whether the image has it on other brokers, too; in any thread."""
        image = self._opened_for
        found = None if image is None else image.partition(*topic_partition)
        return found is not None and len(found.replicas) > 1

    async def open(self, jobs: "Sequence[LoadJob]", *, threads: int) -> None:
        """Open logs; those with least to recover serve first."""
        unclean = [job.topic_partition for job in jobs if not job.directory.had_clean_shutdown]
        self._begun.update(await self._epochs.begin(unclean))
        await self._assignment.record_directories(self._log_manager.found_elsewhere)
        self._opened_for = self._assignment.image
        config_for = self._assignment.config_for
        self._configs.update((name, config_for(name)) for name in self._opened_for.topics)
        LOGGER.info(
            "loading logs partitions=%d bytes_to_recover=%d",
            len(jobs),
            self._log_manager.progress.bytes_total,
        )
        waiting = deque(jobs)

        def work() -> None:
            # One call into a thread for all jobs: a call for each would cost more than opening a
            # log that has nothing to recover.
            while True:
                try:
                    job = waiting.popleft()
                except IndexError:
                    return
                job()

        threads = max(1, min(threads, len(jobs)))
        with ThreadPoolExecutor(threads, thread_name_prefix="recovery") as pool:
            workers = [self._loop.run_in_executor(pool, work) for _ in range(threads)]
            await asyncio.gather(*workers)
        if self._log_manager.progress.is_stopped:
            return
        self._serve_handed_over()
        self._is_done = True
        await self._serve_in_new_epochs()
        await self._remove_outdated()

    async def _remove_outdated(self) -> None:
        outdated, self._outdated = self._outdated, []
        if outdated:
            await self._disk.run(self._log_manager.deletion.delete_all, outdated)

    def _begin(self, coroutine: Coroutine[Any, Any, None]) -> None:
        async def logged() -> None:
            try:
                await coroutine
            except Exception:  # the next start does it
                LOGGER.exception("logs neither served nor removed")

        task = self._loop.create_task(logged(), name="opened logs")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def serve(self, log: "Log") -> None:
        """Give a log that is open to the replica manager, and its partition a role."""
        topic, index = log.topic_partition
        image = self._assignment.image
        found = self._assignment.topic_of(log.topic_partition, log.topic_id, image)
        if found is None:
            # Deleted while it was recovering, and perhaps created again: then this is not its log.
            self._outdated.append(log.topic_partition)
            if self._is_done:
                self._begin(self._remove_outdated())
            return
        served = self._replicas.replica_of(topic, index)
        if served is not None and served.log is log:
            return
        if image is not self._opened_for:
            # Settings may have changed while it was recovering.
            log.update_config(self._assignment.config_for(topic))
        opened = self._replicas.open_partition(log.topic_partition, found.topic_id, log)
        self._on_serving()
        directory = self._log_manager.directory_of(log)
        if directory is not None and directory.id is not None:
            self._assignment.report(found.topic_id, index, directory.id)
        self._roles.opened(opened)

    def _hand_over(self, log: "Log") -> None:
        """Pass an open log to the loop, which is woken once for many; called in threads."""
        with self._hand_over_lock:
            self._handed_over.append(log)
            if len(self._handed_over) > 1:
                return
        self._loop.call_soon_threadsafe(self._serve_handed_over)

    def _serve_handed_over(self) -> None:
        with self._hand_over_lock:
            logs, self._handed_over = self._handed_over, []
        for log in logs:
            if not log.needs_new_epoch:
                self.serve(log)
            elif self._epochs.is_alone:
                self._cut.append(log)
            else:
                # The epoch of its next role began after this process did.
                log.needs_new_epoch = False
                self.serve(log)
        if self._cut and self._is_done:
            # One for which there was no room before.
            self._begin(self._serve_in_new_epochs())

    async def _serve_in_new_epochs(self) -> None:
        """Serve logs that were closed cleanly and have turned out damaged."""
        logs, self._cut = self._cut, []
        if not logs:
            return
        begun = await self._epochs.begin(log.topic_partition for log in logs)

        def begin() -> None:
            for log in logs:
                epoch = begun.get(log.topic_partition)
                try:
                    if epoch is not None:
                        log.begin_epoch(epoch)
                except DiskError as error:
                    self._log_manager.fail_log(log, error)

        await self._disk.run(begin)
        for log in logs:
            log.needs_new_epoch = False
            if log.failure is None:
                self.serve(log)
