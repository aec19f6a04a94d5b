"""Repair of followers' logs: truncation where they have diverged, or a new start at another offset.

    the log has records that no leader epoch names     cut at the high watermark
    the leader's log has diverged                      cut by its epochs (`divergence`)
    the fetch offset is outside the leader's log       ask where it begins and ends (ListOffsets)
        the leader ends before                         cut there
        the leader begins behind                       begin there, empty
    an empty log's end lies in a batch                 begin where the batch does

A thread does it (`Partition.truncate`); afterwards the partition is fetched again. What is cut
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
from broker.replication.fetcher.stats import FetcherStats
from protocol.error_codes import ErrorCode
from protocol.hot.follower_fetch import FetchedPartition
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from storage.errors import DiskError

if TYPE_CHECKING:
    from broker.peers.peers import Peers
    from storage.log.log import Log

LOGGER = logging.getLogger(__name__)

LIST_OFFSETS_VERSION: Final = 7
LATEST: Final = -1
EARLIEST: Final = -2
LIST_OFFSETS_USE: Final = "fetch-offsets"
NO_EPOCH: Final = -1


class Truncations(Protocol):
    """Truncates logs in a thread: `storage.manager.log_truncations.LogTruncations`."""

    def truncate_to(self, log: "Log", offset: int) -> None:
        """Remove everything from `offset` on."""
        ...

    def start_at(self, log: "Log", offset: int) -> None:
        """Remove everything; the log begins at `offset`."""
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
    """See the module. Each repair is a task, which ends with a call of `RepairedPartitions`."""

    def __init__(
        self,
        node_id: int,
        peers: "Peers",
        truncations: Truncations,
        stats: FetcherStats,
        *,
        timeout_ms: Callable[[], float],
    ) -> None:
        """`timeout_ms`: `replica.socket.timeout.ms`."""
        self._node_id = node_id
        self._peers = peers
        self._truncations = truncations
        self._stats = stats
        self._timeout_ms = timeout_ms
        # In the order in which they began.
        self._tasks: dict[asyncio.Task[None], None] = {}

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
        kept = fetched._replace(records=memoryview(bytes(fetched.records)))
        self._begin(owner, followed, self._start_with(followed, kept, offset))

    def out_of_range(self, owner: RepairedPartitions, followed: FollowedPartition) -> None:
        """Ask the leader where its log begins and ends."""
        self._begin(owner, followed, self._find(followed))

    # -- how -------------------------------------------------------------------------------------

    def _begin(
        self,
        owner: RepairedPartitions,
        followed: FollowedPartition,
        work: Coroutine[Any, Any, None],
    ) -> None:
        async def run() -> None:
            error: Exception | None = None
            try:
                await work
            except (PeerUnavailableError, _LeaderError):
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
        task.add_done_callback(self._forget)

    def _forget(self, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(task, None)

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
        topic, index = followed.partition.topic_partition
        request = ListOffsetsRequest(
            replica_id=self._node_id,
            isolation_level=0,
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=index,
                            current_leader_epoch=followed.leader_epoch,
                            timestamp=timestamp,
                        )
                    ],
                )
            ],
        )
        answer = await self._peers.request(
            followed.leader_id,
            request,
            LIST_OFFSETS_VERSION,
            timeout_ms=self._timeout_ms(),
            use=LIST_OFFSETS_USE,
        )
        assert isinstance(answer, ListOffsetsResponse)
        for found in answer.topics:
            for partition in found.partitions:
                if partition.error_code == ErrorCode.NONE and partition.offset >= 0:
                    return partition.offset
                LOGGER.warning(
                    "leader gives no offset partition=%s leader=%d error=%d",
                    followed.partition.topic_partition,
                    followed.leader_id,
                    partition.error_code,
                )
        raise _LeaderError

    async def close(self) -> None:
        """Wait for the repairs that are under way."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))


class _LeaderError(Exception):
    """The leader has not said where its log begins or ends."""


def _is_told(times: int) -> bool:
    """Whether the log has a line for it: for the first, second, fourth, eighth ... of a role."""
    return times & (times - 1) == 0
