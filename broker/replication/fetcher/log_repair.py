"""Repair of followers' logs: truncation where they have diverged, or a new start at another offset.

    the log has records that no leader epoch names     cut at the high watermark
    the leader's log has diverged                      cut by its epochs (`divergence`)
    the fetch offset is outside the leader's log       ask where it begins and ends (ListOffsets)
        the leader ends before                         cut there
        the leader begins behind                       begin there, empty
    it is to be cut within its remote part             begin where the leader's log does, empty
    an empty log's end lies in a batch                 begin where the batch does
    the leader has the offset in remote storage only   begin behind that, with the leader epochs and
                                                       producers of what lies there (KIP-405)

A thread does it (`Partition.truncate`); afterwards the partition is fetched again. What is missing
of remote storage, or of the leader's answers, is asked for again after a delay: the log stays as it
is meanwhile, and nothing else waits for it. What is cut
below the high watermark was committed: by an unclean election, or because the cluster's state is
older than the log. It follows the leader all the same, as Kafka's followers do, and says so.

Source: Kafka, AbstractFetcherThread.scala (fetchOffsetAndTruncate, truncateToHighWatermark).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.peers.errors import PeerUnavailableError
from broker.replication.fetcher.divergence import truncation_offset
from broker.replication.fetcher.followed_partition import FollowedPartition
from broker.replication.fetcher.leader_endpoint import (
    EARLIEST,
    LATEST,
    LeaderAnswerError,
    LeaderEndpoint,
)
from broker.replication.fetcher.stats import FetcherStats
from protocol.hot.follower_fetch import FetchedPartition
from storage.errors import DiskError
from tiered.errors import RemoteStorageError, TieredError
from tiered.segment_metadata import TopicIdPartition
from tiered.tasks.follower import install_auxiliary_state

if TYPE_CHECKING:
    from broker.peers.peers import Peers
    from storage.environment.clock import Clock
    from storage.log.log import Log
    from storage.log.truncation import StateBelow

LOGGER = logging.getLogger(__name__)

NO_EPOCH: Final = -1


class Truncations(Protocol):
    """Truncates logs in a thread: `storage.manager.log_truncations.LogTruncations`."""

    def truncate_to(self, log: "Log", offset: int) -> None:
        """Remove everything from `offset` on."""
        ...

    def start_at(self, log: "Log", offset: int) -> None:
        """Remove everything; the log begins at `offset`."""
        ...

    def start_behind(self, log: "Log", install: "Callable[[Log], None]") -> None:
        """Have `install` let the log go on behind its remote part."""
        ...


class RemoteState(Protocol):
    """What remote storage has of a log's past: `broker.remote.remote_storage.RemoteStorage`."""

    async def state_below(
        self,
        partition: TopicIdPartition,
        log: "Log",
        leader: LeaderEndpoint,
        *,
        leader_epoch: int,
    ) -> "StateBelow":
        """What is to be known of the records that the leader has in remote storage only.

        Raises:
            TieredError, OSError: To be tried again.
        """
        ...


class RepairedPartitions(Protocol):
    """Whose logs are repaired: a `ReplicaFetcher`."""

    def repaired(self, followed: FollowedPartition) -> None:
        """Its log is as it should be."""
        ...

    def not_repaired(self, followed: FollowedPartition, error: Exception | None) -> None:
        """It is not; None: the leader has not answered."""
        ...


class LogRepair:
    """See the module. Each repair is a task, which ends with a call of `RepairedPartitions`.

    Attributes:
        remote: Of this broker; None: it has no remote storage.
    """

    def __init__(
        self,
        node_id: int,
        peers: "Peers",
        truncations: Truncations,
        stats: FetcherStats,
        *,
        timeout_ms: Callable[[], float],
        clock: "Clock",
    ) -> None:
        """`timeout_ms`: `replica.socket.timeout.ms`; `clock`: for producers that are silent."""
        self.remote: RemoteState | None = None
        self._clock = clock
        self._node_id = node_id
        self._peers = peers
        self._truncations = truncations
        self._stats = stats
        self._timeout_ms = timeout_ms
        # In the order in which they began.
        self._tasks: dict[asyncio.Task[None], None] = {}
        # Of those, what only waits for remote storage.
        self._asking: dict[asyncio.Task[None], None] = {}

    # -- what is to be done ----------------------------------------------------------------------

    def prepare(self, owner: RepairedPartitions, followed: FollowedPartition) -> bool:
        """See to it that a log can be fetched for; whether it can be right now."""
        log = followed.partition.log
        if log.write_queue is not None or log.disk_work.is_under_way:
            # What was appended while the partition was led here is not written yet.
            self._begin(owner, followed, self._settle(followed))
            return False
        if log.latest_leader_epoch == NO_EPOCH and log.log_end_offset > log.high_watermark:
            self._begin(owner, followed, self._cut(followed, log.high_watermark))
            return False
        return True

    def diverged(
        self, owner: RepairedPartitions, followed: FollowedPartition, diverging: tuple[int, int]
    ) -> None:
        """Cut a log that has diverged."""
        log = followed.partition.log
        offset = truncation_offset(log.leader_epochs, log.log_end_offset, diverging)
        self._begin(owner, followed, self._cut(followed, offset))

    def begins_with(
        self,
        owner: RepairedPartitions,
        followed: FollowedPartition,
        fetched: FetchedPartition,
        offset: int,
    ) -> None:
        """Begin an empty log with batches that begin at `offset`, before its end.

        At once with them: the leader's log may begin behind `offset`, and would refuse a Fetch.
        """
        # What was received is not valid any longer by then.
        kept = fetched.with_own_records()
        self._begin(owner, followed, self._start_with(followed, kept, offset))

    def out_of_range(self, owner: RepairedPartitions, followed: FollowedPartition) -> None:
        """Ask the leader where its log begins and ends."""
        self._begin(owner, followed, self._find(followed))

    def moved_to_remote(
        self, owner: RepairedPartitions, followed: FollowedPartition, leader_log_start: int
    ) -> None:
        """Begin a log behind what the leader has in remote storage only.

        `leader_log_start`: as the leader's answer said; -1: it did not.
        """
        work = self._begin_behind_remote(followed, leader_log_start)
        self._begin(owner, followed, work, asks=True)

    # -- how -------------------------------------------------------------------------------------

    def _begin(
        self,
        owner: RepairedPartitions,
        followed: FollowedPartition,
        work: Coroutine[Any, Any, None],
        *,
        asks: bool = False,
    ) -> None:
        async def run() -> None:
            error: Exception | None = None
            try:
                await work
            except (PeerUnavailableError, LeaderAnswerError, TieredError):
                owner.not_repaired(followed, None)
                return
            except DiskError as failure:
                error = failure
            except Exception as failure:
                LOGGER.exception(
                    "follower's log not repaired partition=%s", followed.partition.topic_partition
                )
                error = failure
            if error is not None:
                owner.not_repaired(followed, error)
            else:
                owner.repaired(followed)

        task = asyncio.get_running_loop().create_task(run())
        self._tasks[task] = None
        if asks:
            self._asking[task] = None
        task.add_done_callback(self._forget)

    def _forget(self, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(task, None)
        self._asking.pop(task, None)

    async def _settle(self, followed: FollowedPartition) -> None:
        await followed.partition.idle()
        log = followed.partition.log
        if log.latest_leader_epoch == NO_EPOCH and log.log_end_offset > log.high_watermark:
            await self._cut(followed, log.high_watermark)

    async def _cut(self, followed: FollowedPartition, offset: int) -> None:
        partition = followed.partition
        log = partition.log
        if not followed.is_current:
            return
        if (
            offset < log.local_log_start_offset
            and log.log_start_offset < log.local_log_start_offset
        ):
            # Cut there it would have neither the epochs nor the producers of what lies before.
            start_offset = await self._ask(followed, EARLIEST)
            await self._start(followed, start_offset)
            return
        self._count(followed)
        is_told = _is_told(followed.truncations)
        if offset < log.high_watermark:
            self._stats.truncations_below_high_watermark += 1
        if offset < log.high_watermark and is_told:
            LOGGER.error(
                "committed records are truncated, as the leader does not have them partition=%s "
                "leader=%d leader_epoch=%d high_watermark=%d log_end=%d truncated_to=%d times=%d",
                partition.topic_partition,
                followed.leader_id,
                followed.leader_epoch,
                log.high_watermark,
                log.log_end_offset,
                offset,
                followed.truncations,
            )
        elif offset < log.log_end_offset and is_told:
            LOGGER.info(
                "follower's log is truncated partition=%s leader=%d leader_epoch=%d log_end=%d "
                "truncated_to=%d",
                partition.topic_partition,
                followed.leader_id,
                followed.leader_epoch,
                log.log_end_offset,
                offset,
            )
        truncate = self._truncations.truncate_to
        await partition.truncate(lambda log: truncate(log, offset))

    async def _start(self, followed: FollowedPartition, offset: int) -> None:
        partition = followed.partition
        if not followed.is_current:
            return
        log = partition.log
        self._count(followed)
        if log.high_watermark > log.log_start_offset:
            self._stats.truncations_below_high_watermark += 1
        if _is_told(followed.truncations):
            LOGGER.warning(
                "follower's log starts again, empty partition=%s leader=%d leader_epoch=%d "
                "log_start=%d log_end=%d begins_at=%d times=%d",
                partition.topic_partition,
                followed.leader_id,
                followed.leader_epoch,
                log.log_start_offset,
                log.log_end_offset,
                offset,
                followed.truncations,
            )
        start_at = self._truncations.start_at
        await partition.truncate(lambda log: start_at(log, offset))

    async def _start_with(
        self, followed: FollowedPartition, fetched: FetchedPartition, offset: int
    ) -> None:
        await self._start(followed, offset)
        if not followed.is_current:
            return
        partition = followed.partition
        settled: asyncio.Future[DiskError | None] = asyncio.get_running_loop().create_future()
        if not partition.append_fetched(
            fetched.records, fetch_offset=offset, settled=settled.set_result
        ):
            error = await settled
            if error is not None:
                raise error
        if followed.is_current:
            partition.follow_high_watermark(fetched.high_watermark, fetched.log_start_offset)

    async def _find(self, followed: FollowedPartition) -> None:
        log = followed.partition.log
        end_offset = await self._ask(followed, LATEST)
        if not followed.is_current:
            return
        if end_offset < log.log_end_offset:
            await self._cut(followed, end_offset)
            return
        start_offset = await self._ask(followed, EARLIEST)
        if followed.is_current and start_offset > log.log_end_offset:
            await self._start(followed, start_offset)

    def _count(self, followed: FollowedPartition) -> None:
        self._stats.truncations += 1
        followed.truncations += 1

    async def _ask(self, followed: FollowedPartition, timestamp: int) -> int:
        """The leader's log end (not its high watermark: a follower asks), or its log start."""
        leader = self._leader_of(followed)
        found = await leader.offset(
            followed.partition.topic_partition, followed.leader_epoch, timestamp
        )
        return found.offset

    def _leader_of(self, followed: FollowedPartition) -> LeaderEndpoint:
        return LeaderEndpoint(
            self._node_id, self._peers, followed.leader_id, timeout_ms=self._timeout_ms
        )

    async def _begin_behind_remote(
        self, followed: FollowedPartition, leader_log_start: int
    ) -> None:
        partition = followed.partition
        name = TopicIdPartition(partition.topic_id, *partition.topic_partition)
        try:
            if self.remote is None:
                raise RemoteStorageError(
                    "the leader has the records in remote storage, and this broker has none: set "
                    "remote.log.storage.system.enable"
                )
            below = await self.remote.state_below(
                name, partition.log, self._leader_of(followed), leader_epoch=followed.leader_epoch
            )
            if leader_log_start < 0:
                leader_log_start = await self._ask(followed, EARLIEST)
        except (TieredError, OSError) as error:
            # Only with what is missing: the log of a follower never begins without its past.
            if followed.is_current and _is_told(followed.failures + 1):
                LOGGER.warning(
                    "follower waits for the state of records in remote storage partition=%s "
                    "leader=%d leader_epoch=%d log_end=%d times=%d error=%s",
                    partition.topic_partition,
                    followed.leader_id,
                    followed.leader_epoch,
                    partition.log.log_end_offset,
                    followed.failures + 1,
                    error,
                )
            raise
        task = asyncio.current_task()
        assert task is not None
        self._asking.pop(task, None)
        if not followed.is_current:
            return
        log = partition.log
        LOGGER.info(
            "follower's log begins behind remote storage partition=%s leader=%d leader_epoch=%d "
            "log_start=%d log_end=%d begins_at=%d",
            partition.topic_partition,
            followed.leader_id,
            followed.leader_epoch,
            log.log_start_offset,
            log.log_end_offset,
            below.next_offset,
        )
        self._stats.rebuilt_from_remote += 1
        followed.truncations += 1
        now_ms = self._clock.now_ms()

        def install(log: "Log") -> None:
            install_auxiliary_state(log, below, log_start_offset=leader_log_start, now_ms=now_ms)

        start_behind = self._truncations.start_behind
        await partition.truncate(lambda log: start_behind(log, install))

    async def close(self) -> None:
        """Wait for the repairs that are under way, but not for remote storage."""
        for task in list(self._asking):
            task.cancel()
        while self._tasks:
            await asyncio.wait(list(self._tasks))


def _is_told(times: int) -> bool:
    """Whether the log has a line for it: for the first, second, fourth, eighth ... of a role."""
    return times & (times - 1) == 0
