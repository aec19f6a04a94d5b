"""Moves partitions between log directories while they serve (KIP-113).

    AlterReplicaLogDirs ─> Move ─> waits for a thread, and for the cleaner to let go of the log
        ─> copied in a thread, again and again, until little is left ─> flushed
        ─> the metadata store says the new place; while it cannot, the log is copied on ─> copied
        ─> the partition is not served for a moment: the log is closed, the rest copied, the copy
           renamed into the log's place ─> served from there

Requests in that moment get a retriable error, as when a leader changes; none waits for the store.
A move is cancelled by one to the directory the partition is in, by a new one elsewhere, by the
topic's deletion, at a stop; then nothing has changed. What a crash leaves is in
`storage.manager.log_moves`.

Source: Kafka, ReplicaManager.scala (alterReplicaLogDirs), ReplicaAlterLogDirsManager.scala.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os.path import normpath
from typing import TYPE_CHECKING, Final, NamedTuple, ParamSpec, TypeVar

from broker.controller.store.metadata_store import StoreError
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from storage.checkpoints.log_directory import LogDirectory
from storage.errors import StorageError
from storage.manager.log_copy import CopyCancelledError, LogCopy, Throttled
from storage.types.partition_directory import FUTURE_NAME_EXTRA, NAME_SIZE_MAX
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from broker.controller.controller import Controller
    from broker.replicas.partition import Partition
    from broker.replicas.replica_manager import ReplicaManager
    from broker.runtime.timer import Timer
    from config.topic import TopicConfig
    from storage.log.log import Log
    from storage.manager.log_manager import LogManager

LOGGER = logging.getLogger(__name__)

CAUGHT_UP_BYTES: Final = 1024 * 1024
"""Most bytes left when the log is taken out: they are copied while the partition is not served."""

CLEANER_RETRY_MS: Final = 200.0
"""Interval of checking whether the cleaner is done with the log."""

NOTE_RETRY_MS: Final = 1_000.0
"""Between two attempts to write the new place down. The log serves where it is."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass(slots=True, eq=False)
class Move:
    """A move under way. `copy` is None until it has begun; `generation`: of the log by then."""

    topic_partition: TopicPartition
    target: LogDirectory
    copy: LogCopy | None = None
    cancelled: bool = False
    generation: int = 0

    def cancel(self) -> None:
        """End the move soon, without a change."""
        self.cancelled = True
        if self.copy is not None:
            self.copy.cancelled = True


class FutureReplica(NamedTuple):
    """A copy as DescribeLogDirs lists it: its bytes, and its lag."""

    topic_partition: TopicPartition
    size_bytes: int
    offset_lag: int


class LogMover:
    """See the module. Runs on the loop's thread; disks are touched in threads of its own."""

    def __init__(
        self,
        *,
        controller: "Controller",
        log_manager: "LogManager",
        replicas: "ReplicaManager",
        timer: "Timer",
        resign: Callable[[list[TopicPartition]], None],
        serve: Callable[["Log"], None],
        config_for: Callable[[str], "TopicConfig"],
        throttle: Throttled,
        threads: int,
    ) -> None:
        """Nothing moves yet.

        Args:
            controller: Records partitions' log directories.
            log_manager: Copies and swaps logs.
            replicas: Serves them.
            timer: For waiting.
            resign: Stops serving partitions, in all parts of the broker.
            serve: Serves a log.
            config_for: A topic's settings.
            throttle: Of all moves together; `replica.alter.log.dirs.io.max.bytes.per.second`.
            threads: Moves at the same time; `num.replica.alter.log.dirs.threads`.
        """
        self._controller = controller
        self._log_manager = log_manager
        self._replicas = replicas
        self._timer = timer
        self._resign = resign
        self._serve = serve
        self._config_for = config_for
        self._throttle = throttle
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="log-mover")
        self._free = asyncio.Semaphore(threads)
        self._moves: dict[TopicPartition, Move] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False

    def move(self, topic_partition: TopicPartition, path: str) -> None:
        """Start to move a partition; does nothing if it is being moved there.

        To its own directory: a move under way is cancelled. A partition without a replica here is
        refused; its log is made there if it comes.

        Raises:
            ApiError: INVALID_TOPIC_EXCEPTION: the name is too long for a copy's directory.
                LOG_DIR_NOT_FOUND: there is no such directory. KAFKA_STORAGE_ERROR: it is offline.
                UNKNOWN_TOPIC_OR_PARTITION, REPLICA_NOT_AVAILABLE: the partition is not there, or
                not served.
        """
        name, index = topic_partition
        if len(f"{name}-{index}") + FUTURE_NAME_EXTRA > NAME_SIZE_MAX:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
        target = self._directory(path)
        under_way = self._moves.get(topic_partition)
        if under_way is not None:
            if under_way.target is target and not under_way.cancelled:
                return
            under_way.cancel()
        partition = self._replicas.replica_of(name, index)
        if partition is None:
            raise self._without_replica(topic_partition, target)
        if self._log_manager.directory_of(partition.log) is target or self._stopping:
            return
        move = self._moves[topic_partition] = Move(topic_partition, target)
        task = asyncio.get_running_loop().create_task(self._run(move), name="log move")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def futures_in(self, directory: LogDirectory) -> Iterator[FutureReplica]:
        """The copies that are being made in a directory."""
        for move in self._moves.values():
            if move.target is directory and move.copy is not None and not move.cancelled:
                partition = self._replicas.replica_of(*move.topic_partition)
                end = partition.log.log_end_offset if partition is not None else 0
                yield FutureReplica(
                    move.topic_partition, move.copy.size_bytes, max(end - move.copy.end_offset, 0)
                )

    async def stop(self) -> None:
        """End all moves; those that are swapping finish."""
        self._stopping = True
        for move in self._moves.values():
            move.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        self._pool.shutdown()

    def _without_replica(self, topic_partition: TopicPartition, target: LogDirectory) -> ApiError:
        """Why a partition that is not served cannot be moved.

        Where it has no log here yet, its log will be made in `target`.
        """
        manager = self._log_manager
        assigned = manager.assigned(topic_partition)
        is_lost = assigned is not None and manager.directory_by_id(assigned) is None
        code = ErrorCode.REPLICA_NOT_AVAILABLE
        if self._controller.image.partition(*topic_partition) is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif is_lost or topic_partition in manager.offline:
            code = ErrorCode.KAFKA_STORAGE_ERROR
        if code is not ErrorCode.KAFKA_STORAGE_ERROR and not manager.has(topic_partition):
            manager.preferred.note(topic_partition, target)
        return ApiError(code, code.message)

    # -- one move --------------------------------------------------------------------------------

    def _directory(self, path: str) -> LogDirectory:
        for directory in self._log_manager.directories:
            if directory.path == normpath(path):
                if not directory.is_online:
                    raise ApiError(
                        ErrorCode.KAFKA_STORAGE_ERROR, f"Log directory {path} is offline"
                    )
                return directory
        raise ApiError(
            ErrorCode.LOG_DIR_NOT_FOUND, f"Log directory {path} is not found in the config."
        )

    async def _in_thread(
        self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        return await asyncio.get_running_loop().run_in_executor(
            self._pool, lambda: function(*args, **kwargs)
        )

    async def _pause(self, pause_ms: float) -> None:
        over = asyncio.Event()
        self._timer.call_later_ms(pause_ms, over.set)
        await over.wait()

    async def _run(self, move: Move) -> None:
        try:
            async with self._free:
                while not move.cancelled and not self._paused_cleaning(move):
                    await self._pause(CLEANER_RETRY_MS)
                if not move.cancelled:
                    try:
                        await self._move(move)
                    finally:
                        self._log_manager.cleaning.resume(move.topic_partition)
        except CopyCancelledError:
            LOGGER.info("replica move cancelled partition=%s", move.topic_partition)
        except StorageError as error:
            LOGGER.error(
                "replica move failed partition=%s directory=%s error=%s",
                move.topic_partition,
                move.target.path,
                error,
            )
        except Exception:
            LOGGER.exception("replica move failed partition=%s", move.topic_partition)
        finally:
            if self._moves.get(move.topic_partition) is move:
                del self._moves[move.topic_partition]

    def _paused_cleaning(self, move: Move) -> bool:
        return self._log_manager.cleaning.try_pause(move.topic_partition)

    async def _move(self, move: Move) -> None:
        manager = self._log_manager
        partition = self._replicas.replica_of(*move.topic_partition)
        if partition is None:
            return
        log = partition.log
        move.generation = log.generation
        source = manager.directory_of(log)
        LOGGER.info(
            "moving replica to another log directory partition=%s from=%s to=%s",
            move.topic_partition,
            source.path if source is not None else "",
            move.target.path,
        )
        assert source is not None
        copy = move.copy = await self._in_thread(
            manager.moves.begin_move, log, move.target, self._throttle
        )
        is_noted = is_remembered = False
        try:
            attempts = 0
            while not is_noted:
                if attempts:
                    await self._pause(NOTE_RETRY_MS)
                await self._catch_up(move, partition, copy)
                is_noted = await self._note(partition, move.target, attempts)
                attempts += 1
            await self._in_thread(manager.moves.copy_segments, log, copy)
            self._check(move, partition)
            is_remembered = True
            await self._in_thread(manager.moves.before_take_out, log)
            self._check(move, partition)
        except BaseException:
            if is_remembered:
                await self._in_thread(manager.moves.not_taken_out, log)
            await self._in_thread(manager.moves.drop_copy, copy, move.target)
            if is_noted:
                await self._note(partition, source, stays=True)
            raise
        await self._swap(move, partition, copy)
        LOGGER.info(
            "replica moved to another log directory partition=%s to=%s",
            move.topic_partition,
            move.target.path,
        )

    async def _catch_up(self, move: Move, partition: "Partition", copy: LogCopy) -> None:
        """Copy what there is, and flush it: little is left for the moment without service."""
        copy_segments = self._log_manager.moves.copy_segments
        while True:
            self._check(move, partition)
            if await self._in_thread(copy_segments, partition.log, copy) <= CAUGHT_UP_BYTES:
                break
        # So that closing it is quick.
        while not await partition.commit.flush():
            self._check(move, partition)
        self._check(move, partition)

    def _check(self, move: Move, partition: "Partition") -> None:
        served = self._replicas.replica_of(*move.topic_partition)
        if move.cancelled or served is not partition:
            raise CopyCancelledError(f"{move.topic_partition} is not to be moved any more")
        if partition.is_truncating or partition.log.generation != move.generation:
            # A follower's log has been cut by its leader: the copy has records that it has not.
            raise CopyCancelledError(f"{move.topic_partition} was truncated while it was copied")

    async def _swap(self, move: Move, partition: "Partition", copy: LogCopy) -> None:
        manager, log, target = self._log_manager, partition.log, move.target
        config = self._config_for(move.topic_partition.topic)
        self._resign([move.topic_partition])
        await partition.idle()
        manager.moves.take_out(log)
        # From here on it cannot be cancelled, and is quick: the partition is not served.
        copy.hurry()
        source = manager.directory_of(log)
        assert source is not None
        try:
            await self._in_thread(manager.moves.finish_move, log, copy, target)
            opened = await self._in_thread(manager.moves.swap, log, copy, target, config)
        except StorageError:
            try:
                opened = await self._in_thread(manager.moves.put_back, log, copy, target, config)
                await self._serve_again(opened, partition)
            finally:
                # Also where it cannot be opened there: a start without that disk would take it for
                # lost from the new directory, and make an empty one.
                await self._note(partition, source, stays=True)
            raise
        await self._serve_again(opened, partition)

    async def _note(
        self,
        partition: "Partition",
        directory: LogDirectory,
        attempts: int = 0,
        *,
        stays: bool = False,
    ) -> bool:
        """Write down where the log is to be, or (`stays`) is, if its place is written down at all.

        Returns:
            Whether it is. False: the store cannot now, which is logged unless there were
            `attempts` before; or the topic is about to be deleted.
        """
        if self._log_manager.assigned(partition.topic_partition) is None:
            return True
        assert directory.id is not None, directory
        places = {partition.topic_id: {partition.topic_partition.partition: directory.id}}
        reason = "the store refuses"
        try:
            noted = await self._controller.assign_directories(places, stays=stays)
            if partition.topic_id in noted:
                return True
        except (StoreError, ApiError) as error:
            reason = str(error)
        if not attempts:
            LOGGER.warning(
                "replica is served where it is until its new place can be noted "
                "partition=%s directory=%s reason=%s",
                partition.topic_partition,
                directory.path,
                reason,
            )
        return False

    async def _serve_again(self, log: "Log | None", partition: "Partition") -> None:
        if log is None:
            # It is offline with its directory, of which all parts have been told.
            return
        topic = self._controller.image.topics.get(log.topic_partition.topic)
        if topic is not None and topic.topic_id == partition.topic_id:
            log.update_config(self._config_for(topic.name))
            self._serve(log)
        else:
            # Its topic was deleted while it could not be.
            await self._in_thread(self._log_manager.deletion.delete_all, [log.topic_partition])
