"""A replica fetcher: all that this broker follows of one leader, over one connection.

    IDLE ──something is to be fetched──> FETCHING ──answered──> APPENDING ──all settled──> FETCHING
      ^                                  │  ^                                       (or IDLE)
      │                                  │  └── the wait is over
      └── nothing is left to be fetched  v
                               no answer, an error of the session: BACKING_OFF
    any ──close──> CLOSED

A request names what has changed (`session`), and waits at the leader until there are records, at
most `replica.fetch.wait.max.ms`. The next one leaves when all records of an answer are in their
logs, and on disk where `flush.messages` asks for it: by its offsets the leader knows that. One that
waits is not in the way of a partition that has just come to this leader: a second request is sent
behind it, which ends the first.

An answer is appended in slices of the loop, half as long while partitions catch up. Partitions are
apart: an error of one delays that one, a failed disk ends those on it.

Source: Kafka, AbstractFetcherThread.scala, ReplicaFetcherThread.scala.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final

from broker.network.stream import Poller
from broker.peers.errors import PeerUnavailableError
from broker.peers.peer_request import PeerRequest
from broker.replication.fetcher.answer import Answer
from broker.replication.fetcher.delays import Delays
from broker.replication.fetcher.followed_partition import FollowedPartition, FollowedState
from broker.replication.fetcher.log_repair import LogRepair
from broker.replication.fetcher.session import CATCH_UP_BYTES, FollowerSession
from broker.replication.fetcher.settings import FetcherSettings
from broker.replication.fetcher.stats import FetcherStats
from broker.replication.quota import ReplicationQuota
from broker.runtime.errors import ApiError
from broker.runtime.timer import Timer
from protocol.error_codes import ErrorCode
from protocol.hot.follower_fetch import (
    API_KEY,
    VERSION,
    FetchedPartition,
    FollowerAnswer,
    decode_answer,
    encode_request,
)
from storage.environment.clock import Clock
from storage.errors import BatchError, DiskError, FollowerOffsetError

if TYPE_CHECKING:
    from broker.peers.connection import PeerConnection
    from broker.runtime.timer import TimerHandle

LOGGER = logging.getLogger(__name__)

SLICE_MS: Final = 2.0
"""Records are appended for so long before the loop goes on with requests."""

CATCH_UP_SLICE_MS: Final = SLICE_MS / 2
"""Likewise, for an answer with partitions that are far behind."""

RETRY_MS: Final = 20.0
"""First delay of a partition whose leader has not heard of its role yet, and of a request that was
not answered; doubled up to `replica.fetch.backoff.ms`."""

DOUBLINGS_MAX: Final = 10

TRUNCATIONS_AT_ONCE: Final = 4
"""Of a partition in one role; then each is followed by a wait. As many steps of KIP-279 are rare:
each is a change of leaders that the follower has missed."""

REPAIR_DOUBLINGS_MAX: Final = 3
"""Of `replica.fetch.backoff.ms`, between attempts to repair a log: remote storage may be away."""

BACK_OFF_MAX_MS: Final = 200.0
"""Of a request: its connection waits by itself before it connects again."""

_NEW_SESSION: Final = frozenset(
    (
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    )
)

_SOON: Final = frozenset(
    (
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
)
"""Codes that end with the next image, here or there; or when the leader's log has been opened."""


class FetcherState(Enum):
    """See the module."""

    IDLE = "idle"
    FETCHING = "fetching"
    APPENDING = "appending"
    BACKING_OFF = "backing off"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class FetcherResources:
    """Parts that all fetchers of a broker share.

    Attributes:
        node_id: This broker.
        broker_epoch: Of this broker, as it is registered now.
        settings: The current ones.
        poller: For the loop's next turn.
        timer: For delays.
        clock: For the slices.
        repair: Truncates logs.
        stats: Counted by the fetchers.
        quota: How fast replicas here that are out of sync may catch up.
    """

    node_id: int
    broker_epoch: "Callable[[], int]"
    settings: "Callable[[], FetcherSettings]"
    poller: "Poller"
    timer: "Timer"
    clock: "Clock"
    repair: "LogRepair"
    stats: "FetcherStats"
    quota: "ReplicationQuota"


class ReplicaFetcher:
    """See the module. On the loop's thread only.

    Attributes:
        leader_id: The leader.
        state: Of the module's table.
        requests: Fetches that were answered.
    """

    def __init__(
        self, leader_id: int, connection: "PeerConnection", resources: FetcherResources
    ) -> None:
        self.leader_id = leader_id
        self.state = FetcherState.IDLE
        self.requests = 0
        self._connection = connection
        self._resources = resources
        self._session = FollowerSession(resources.settings().max_bytes)
        self._delays = Delays(resources.timer, resources.clock, self._due)
        self._answer: Answer | None = None
        self._in_flight = 0
        self._timer: TimerHandle | None = None
        self._is_called_soon = False
        self._failures = 0

    # -- partitions ------------------------------------------------------------------------------

    def add(self, followed: FollowedPartition) -> None:
        """Fetch a partition from now on, once its log is as it should be."""
        if self._resources.repair.prepare(self, followed):
            self._fetch(followed)

    def remove(self, followed: FollowedPartition) -> None:
        """Fetch a partition no longer."""
        followed.state = FollowedState.DROPPED
        self._session.remove(followed)

    def repaired(self, followed: FollowedPartition) -> None:
        """See `RepairedPartitions`."""
        if self.state is FetcherState.CLOSED or not followed.is_current:
            return
        if followed.truncations > TRUNCATIONS_AT_ONCE:
            # The leader gives what it then denies: its epochs are not those of its log.
            self._delay(followed, self._delay_ms(followed.truncations - TRUNCATIONS_AT_ONCE))
        else:
            self._fetch(followed)

    def not_repaired(self, followed: FollowedPartition, error: Exception | None) -> None:
        """See `RepairedPartitions`."""
        if self.state is FetcherState.CLOSED or not followed.is_current:
            return
        if isinstance(error, DiskError) and error.is_disk_failure:
            followed.state = FollowedState.FAILED
        else:
            doubled = 2 ** min(followed.failures, REPAIR_DOUBLINGS_MAX)
            self._delay(followed, self._resources.settings().backoff_ms * doubled)

    def _fetch(self, followed: FollowedPartition) -> None:
        followed.state = FollowedState.FETCHING
        self._session.add(followed)
        self._send_soon()

    def _delay(self, followed: FollowedPartition, delay_ms: float) -> None:
        followed.failures += 1
        followed.state = FollowedState.DELAYED
        self._session.remove(followed)
        self._delays.add(followed, delay_ms)

    def _due(self, delayed: list[FollowedPartition]) -> None:
        for followed in delayed:
            if followed.is_current and followed.state is FollowedState.DELAYED:
                wait_ms = self._held_back_ms(followed)
                if wait_ms:
                    self._delays.add(followed, wait_ms)
                    continue
                followed.state = FollowedState.REPAIRING
                self.add(followed)

    def _held_back_ms(self, followed: FollowedPartition) -> float:
        """How long a replica that is out of sync has to wait for the quota."""
        quota, partition = self._resources.quota, followed.partition
        if (
            quota.is_limited
            and followed.lag
            and quota.covers(partition.topic_partition, partition.log.config)
        ):
            return quota.wait_ms()
        return 0.0

    def _begin_repair(self, followed: FollowedPartition) -> None:
        followed.state = FollowedState.REPAIRING
        self._session.remove(followed)

    # -- requests --------------------------------------------------------------------------------

    def _send_soon(self) -> None:
        """Send in the loop's next turn: many partitions may come in this one."""
        if not self._is_called_soon:
            self._is_called_soon = True
            self._resources.poller.call_soon(self._send_called)

    def _send_called(self) -> None:
        self._is_called_soon = False
        self._send()

    def _send(self) -> None:
        """Send the next request, if it is time for one."""
        session = self._session
        if self.state is FetcherState.FETCHING:
            # It waits for records at the leader. Another behind it ends that.
            if self._in_flight != 1 or not session.has_changes or not session.is_open:
                return
        elif self.state is not FetcherState.IDLE or not session.members:
            return
        resources = self._resources
        settings = resources.settings()
        session.max_bytes = settings.max_bytes
        ids, topics, forgotten = session.next_request()
        body = encode_request(
            replica_id=resources.node_id,
            replica_epoch=resources.broker_epoch(),
            # What did not fit is sent at once.
            max_wait_ms=0 if session.has_changes else settings.wait_max_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.response_max_bytes,
            session=ids,
            topics=topics,
            forgotten=forgotten,
        )
        self.state = FetcherState.FETCHING
        self._in_flight += 1
        resources.stats.requests += 1
        self._connection.send(
            PeerRequest(API_KEY, VERSION, body, _Exchange(self, session.requests)),
            settings.socket_timeout_ms + settings.wait_max_ms,
        )

    def failed(self, error: PeerUnavailableError) -> None:
        """A request has no answer; whether the leader has acted on it is not known."""
        self._in_flight -= 1
        if self.state is FetcherState.CLOSED:
            return
        self._session.reset()
        self._back_off(str(error))

    def _back_off(self, reason: str) -> None:
        self._resources.stats.failed_requests += 1
        self._failures += 1
        if self._failures == 1:
            LOGGER.info("fetch failed leader=%d error=%s", self.leader_id, reason)
        if self._timer is not None or self._answer is not None:
            return
        self.state = FetcherState.BACKING_OFF
        self._timer = self._resources.timer.call_later_ms(
            min(self._delay_ms(self._failures), BACK_OFF_MAX_MS), self._wait_is_over
        )

    def _delay_ms(self, failures: int) -> float:
        most = float(self._resources.settings().backoff_ms)
        return min(RETRY_MS * 2.0 ** min(failures - 1, DOUBLINGS_MAX), most)

    def _wait_is_over(self) -> None:
        self._timer = None
        self.state = FetcherState.FETCHING if self._in_flight else FetcherState.IDLE
        self._send()

    # -- answers ---------------------------------------------------------------------------------

    def answered(self, number: int, answer: FollowerAnswer) -> None:
        """Take the answer to the request of this number."""
        self._in_flight -= 1
        if self.state is FetcherState.CLOSED:
            return
        if answer.error_code:
            self._session_failed(answer.error_code)
            return
        self._failures = 0
        self.requests += 1
        self._session.answered(answer.session_id)
        if not answer.partitions:
            self._appended()
            return
        self.state = FetcherState.APPENDING
        self._answer = Answer(number, answer.partitions, self._connection.hold(), self._appended)
        self._append()

    def _session_failed(self, error_code: int) -> None:
        self._session.reset()
        if error_code in _NEW_SESSION and not self._failures:
            self._failures = 1
            self._resources.stats.failed_requests += 1
            self._appended()
        else:
            self._back_off(f"error code {error_code}")

    def _append(self) -> None:
        """Append what was fetched, for one slice of the loop."""
        answer = self._answer
        if answer is None:
            return
        clock = self._resources.clock
        partitions, count = answer.partitions, len(answer.partitions)
        # What is behind the last one is little: of one partition no slice is measured.
        began_ms = clock.monotonic_ms() if count - answer.taken_count > 1 else 0.0
        while answer.taken_count < count:
            fetched = partitions[answer.taken_count]
            answer.taken_count += 1
            try:
                self._take(answer, fetched)
            except Exception:  # whatever it is, the other partitions are unharmed
                LOGGER.exception("fetched partition not taken leader=%d", self.leader_id)
                followed = self._session.members.get((fetched.topic_id, fetched.partition))
                if followed is not None:
                    self._delay(followed, self._resources.settings().backoff_ms)
            if answer.taken_count == count:
                break
            slice_ms = CATCH_UP_SLICE_MS if answer.is_catching_up else SLICE_MS
            if clock.monotonic_ms() - began_ms >= slice_ms:
                self._resources.poller.call_soon(self._append)
                return
        answer.taken()

    def _appended(self) -> None:
        """All of an answer is settled: the next request may leave."""
        self._answer = None
        if self.state is FetcherState.CLOSED:
            return
        if self._timer is not None:
            self.state = FetcherState.BACKING_OFF
            return
        self.state = FetcherState.FETCHING if self._in_flight else FetcherState.IDLE
        self._send()

    def _take(self, answer: Answer, fetched: FetchedPartition) -> None:
        followed = self._session.members.get((fetched.topic_id, fetched.partition))
        if followed is None or not followed.is_current:
            return
        partition = followed.partition
        if followed.is_behind:
            answer.is_catching_up = True
        if followed.sent_in > answer.number or (
            followed.sent_offset != partition.log.log_end_offset
        ):
            # A second request had left before this one's answer was appended: the leader gives
            # again what it gave, or what was asked for before. The rest is true all the same.
            self._resources.stats.late_records += len(fetched.records) > 0
            if not fetched.error_code and fetched.diverging_epoch is None:
                partition.follow_high_watermark(fetched.high_watermark, fetched.log_start_offset)
            return
        if fetched.error_code:
            self._partition_failed(followed, fetched)
            return
        followed.leader_high_watermark = fetched.high_watermark
        if fetched.diverging_epoch is not None:
            self._begin_repair(followed)
            self._resources.repair.diverged(self, followed, fetched.diverging_epoch)
            return
        if fetched.records and not self._append_records(answer, followed, fetched):
            return
        followed.failures = 0
        partition.follow_high_watermark(fetched.high_watermark, fetched.log_start_offset)
        self._go_on(followed, len(fetched.records))

    def _append_records(
        self, answer: Answer, followed: FollowedPartition, fetched: FetchedPartition
    ) -> bool:
        """Append records; whether they are settled, and nothing is wrong."""
        try:
            if followed.partition.append_fetched(
                fetched.records,
                fetch_offset=followed.sent_offset,
                settled=partial(self._settled, answer, followed, fetched),
                memory=answer,
            ):
                return True
        except FollowerOffsetError as error:
            log = followed.partition.log
            if log.log_start_offset == log.log_end_offset <= error.last_offset:
                # The log start, here or there, lies in the batch: records before it are deleted.
                self._begin_repair(followed)
                self._resources.repair.begins_with(self, followed, fetched, error.first_offset)
            else:
                self._refuse(followed, error)
        except BatchError as error:
            self._refuse(followed, error)
        except DiskError as error:
            self._disk_failed(followed, error)
        except ApiError:
            # It has another role by now.
            self._session.remove(followed)
        else:
            answer.settles()
        return False

    def _settled(
        self,
        answer: Answer,
        followed: FollowedPartition,
        fetched: FetchedPartition,
        error: DiskError | None,
    ) -> None:
        """Records that were to be written by a thread, or flushed, are; or they are lost."""
        if self.state is not FetcherState.CLOSED and followed.is_current:
            if error is not None:
                self._disk_failed(followed, error)
            else:
                followed.failures = 0
                followed.partition.follow_high_watermark(
                    fetched.high_watermark, fetched.log_start_offset
                )
                if followed.state is FollowedState.FETCHING:
                    self._go_on(followed, len(fetched.records))
        answer.settled()

    def _go_on(self, followed: FollowedPartition, size: int) -> None:
        """Fetch on from the log's end; later, if the quota is used up and it is out of sync."""
        followed.is_behind = size >= CATCH_UP_BYTES and followed.lag > 0
        quota = self._resources.quota
        if quota.is_limited and size:
            partition = followed.partition
            if quota.covers(partition.topic_partition, partition.log.config):
                quota.record(size)
                wait_ms = quota.wait_ms() if followed.lag else 0.0
                if wait_ms:
                    followed.state = FollowedState.DELAYED
                    self._session.remove(followed)
                    self._delays.add(followed, wait_ms)
                    return
        self._session.look_at(followed)

    # -- errors ----------------------------------------------------------------------------------

    def _partition_failed(self, followed: FollowedPartition, fetched: FetchedPartition) -> None:
        """The leader has an error for a partition."""
        resources, error_code = self._resources, fetched.error_code
        resources.stats.partition_errors += 1
        if error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._begin_repair(followed)
            resources.repair.out_of_range(self, followed)
            return
        if error_code in _SOON:
            self._delay(followed, self._delay_ms(followed.failures + 1))
            return
        if error_code == ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE:
            resources.stats.moved_to_remote += 1
            self._begin_repair(followed)
            resources.repair.moved_to_remote(self, followed, fetched.log_start_offset)
            return
        if not followed.failures:
            LOGGER.warning(
                "leader refuses a fetch partition=%s leader=%d leader_epoch=%d offset=%d error=%d",
                followed.partition.topic_partition,
                self.leader_id,
                followed.leader_epoch,
                followed.sent_offset,
                error_code,
            )
        self._delay(followed, resources.settings().backoff_ms)

    def _refuse(self, followed: FollowedPartition, error: Exception) -> None:
        """Records are damaged, or do not follow: they are never appended."""
        self._resources.stats.corrupt_batches += 1
        if not followed.failures:
            LOGGER.error(
                "fetched records are refused partition=%s leader=%d leader_epoch=%d offset=%d "
                "error=%s",
                followed.partition.topic_partition,
                self.leader_id,
                followed.leader_epoch,
                followed.sent_offset,
                error,
            )
        self._delay(followed, self._resources.settings().backoff_ms)

    def _disk_failed(self, followed: FollowedPartition, error: DiskError) -> None:
        """Its directory has taken care of itself; without room it is tried again."""
        if error.is_disk_failure or followed.partition.log.failure is not None:
            followed.state = FollowedState.FAILED
            self._session.remove(followed)
        else:
            self._delay(followed, self._resources.settings().backoff_ms)

    def close(self) -> None:
        """Fetch nothing any more; what is being written is written."""
        self.state = FetcherState.CLOSED
        self._delays.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Exchange:
    """`broker.peers.peer_request.Receiver` of one Fetch."""

    __slots__ = ("_fetcher", "_number")

    def __init__(self, fetcher: ReplicaFetcher, number: int) -> None:
        self._fetcher = fetcher
        self._number = number

    def on_answer(self, body: memoryview) -> None:
        self._fetcher.answered(self._number, decode_answer(body))

    def on_failure(self, error: PeerUnavailableError) -> None:
        self._fetcher.failed(error)
