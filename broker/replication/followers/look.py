"""A look at what a follower's session has: each partition checked, counted, read.

    changed ──each──> checked ──> counted ──> read
                         │           └─> high watermark, ISR
                         └─> an error, or a diverging epoch

A fetch counts as the follower's position only if this broker leads the partition in the epoch that
the follower names (KIP-320), the follower is one of its replicas, it fetches in the life that the
cluster has registered (KIP-903), and its log is a prefix of ours (KIP-595). Anything else moves
neither the high watermark nor the ISR (CVE-2018-1288):

    no registered broker, or an earlier life of one    NOT_LEADER_OR_FOLLOWER
    a life that this broker has not heard of yet       UNKNOWN_LEADER_EPOCH: retried soon
    no replica of the partition                        UNKNOWN_LEADER_EPOCH, likewise
    an older or a newer leader epoch                   FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH
    none                                               NOT_LEADER_OR_FOLLOWER
    an offset that is not here any more                OFFSET_OUT_OF_RANGE, or
                                                       OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405)

A look is made when a request comes and each time records have, most of all for one partition: what
is found right stays so as long as the roles do, and an answer is made of it only when one is given.

Source: Kafka, ReplicaManager.scala (fetchMessages), Partition.scala (fetchRecords).
"""

from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

from broker.runtime.errors import ApiError, code_of
from protocol.error_codes import ErrorCode
from protocol.hot.fetch import FetchPartitionResponse
from storage.errors import DiskError, OffsetNotLocalError, StorageError
from storage.index.reads import NOWAIT, CachedReads, WouldBlockError

if TYPE_CHECKING:
    from broker.replicas.cold_reads import ColdReads
    from broker.replicas.partition import Partition
    from broker.replication.followers.followed_partition import FollowedPartition
    from broker.replication.followers.follower_sessions import FollowerSession
    from broker.replication.quota import ReplicationQuota
    from broker.replication.replica_progress import ReplicaProgress
    from broker.replication.terms import ReplicationTerms
    from broker.runtime.timer import Timer
    from storage.environment.clock import Clock
    from storage.log.log import Log
    from storage.types.file_slice import FileSlice

SLICE_MS: Final = 2.0
"""How long one look at a session's partitions may hold the loop."""

LOOKED_AT_MAX: Final = 1024
"""Partitions of one look: more do not fit into a slice."""

CLOCK_EVERY: Final = 8
"""Partitions between two reads of the clock."""

NO_EPOCH: Final = -1


class LedPartitions(Protocol):
    """What is led here: `broker.replicas.replica_manager.ReplicaManager`."""

    cold_reads: "ColdReads"
    timer: "Timer"
    terms: "ReplicationTerms"
    call_soon: Callable[[Callable[[], None]], object]

    def leader_of(self, topic: str, index: int) -> "Partition | None":
        """A partition that is led here."""
        ...

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of a topic."""
        ...

    def missing_error(self, topic: str, index: int) -> ErrorCode:
        """Why a partition is not led here."""
        ...

    def disk_failed(self, partition: "Partition", error: DiskError) -> None:
        """Report a disk error."""
        ...


class Look:
    """What one look at a session has found.

    Attributes:
        session: Of the follower.
        replica_epoch: Its life that is registered; None: none is.
        now_ms: Monotonic.
        urgent: Errors and diverging epochs, which the follower is to hear of at once.
        found: Partitions with records, or with other news (None); in order.
        size: Bytes of the records.
        is_alone: Only one partition is looked at.
        is_cut: There was no time for all of them.
        left_out: Those whose records do not fit, or have to wait for the quota.
        quota: Of this broker as a leader; None: nothing limits it.
    """

    __slots__ = (
        "found",
        "is_alone",
        "is_cut",
        "left_out",
        "now_ms",
        "quota",
        "replica_epoch",
        "session",
        "size",
        "urgent",
    )

    def __init__(
        self,
        session: "FollowerSession",
        replica_epoch: int | None,
        now_ms: float,
        quota: "ReplicationQuota | None",
    ) -> None:
        self.session = session
        self.replica_epoch = replica_epoch
        self.now_ms = now_ms
        self.urgent: list[tuple[FollowedPartition, FetchPartitionResponse]] = []
        self.found: list[tuple[FollowedPartition, Partition, FileSlice | None]] = []
        self.size = 0
        self.is_alone = False
        self.is_cut = False
        self.left_out: set[FollowedPartition] = set()
        self.quota = quota


class Looks:
    """Looks at what is led here; see the module."""

    __slots__ = ("_clock", "_led")

    def __init__(self, led: LedPartitions, clock: "Clock") -> None:
        """`clock`: for lag, and for the slices."""
        self._led = led
        self._clock = clock

    def look(self, look: Look, max_bytes: int, *, is_first: bool) -> None:
        """Look at what has changed; what turns out to be quiet is not looked at again.

        Args:
            look: With nothing found yet.
            max_bytes: Of all records; the first batch may be larger.
            is_first: The session's first answer, which has every partition.
        """
        session = look.session
        changed = session.changed
        session.has_more = False
        if len(changed) == 1:
            look.is_alone = True
            (followed,) = changed
            followed.is_marked = False
            if (
                not self._look_at(look, followed, max_bytes, is_first=is_first)
                and not followed.is_marked
            ):
                changed.pop(followed, None)
            return
        looked_at = 0
        look.is_cut = len(changed) > LOOKED_AT_MAX
        for followed in tuple(islice(changed, LOOKED_AT_MAX)):
            if looked_at >= CLOCK_EVERY:
                looked_at = 0
                if self._clock.monotonic_ms() - look.now_ms >= SLICE_MS:
                    look.is_cut = True
                    break
            looked_at += 1
            followed.is_marked = False
            if (
                not self._look_at(look, followed, max_bytes - look.size, is_first=is_first)
                and not followed.is_marked
            ):
                changed.pop(followed, None)

    def _look_at(
        self, look: Look, followed: "FollowedPartition", left: int, *, is_first: bool
    ) -> bool:
        """Look at one partition; False: there is nothing to say, until it changes."""
        try:
            if not self._is_as_checked(look, followed):
                self._check(look, followed)
        except ApiError as error:
            look.urgent.append((followed, failure(followed.index, error.code)))
            return True
        partition, progress = followed.partition, followed.progress
        assert partition is not None
        assert progress is not None
        log = partition.log
        is_new = followed.is_listed or progress.followed is not followed
        try:
            if is_new and followed.last_fetched_epoch != NO_EPOCH:
                diverging = _diverging_epoch(partition, followed)
                if diverging is not None:
                    look.urgent.append(
                        (followed, response_of(partition, followed.index, diverging))
                    )
                    return True
            is_held_back = look.quota is not None and _is_held_back(look.quota, look, partition)
            records = (
                None
                if is_held_back or log.reader.is_at_end(followed.fetch_offset)
                else log.reader.read(
                    followed.fetch_offset,
                    max_bytes=max(min(followed.max_bytes, left), 0),
                    end_offset=log.log_end_offset,
                    min_one_batch=look.size == 0,
                    reads=followed.found or NOWAIT,
                )
            )
        except WouldBlockError as need:
            if is_new:
                _count(partition, progress, followed, look)
            self._read_cold(look.session, followed, partition, need)
            return False
        except OffsetNotLocalError:
            moved = response_of(partition, followed.index)
            moved.error_code = ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
            look.urgent.append((followed, moved))
            return True
        except (StorageError, ApiError) as error:
            look.urgent.append((followed, failure(followed.index, self._code(partition, error))))
            return True
        if is_new:
            _count(partition, progress, followed, look)
        if is_held_back:
            look.left_out.add(followed)
            if not is_first and _is_sent(followed, log):
                return True
        elif records is not None:
            if followed.found is not None:
                records.is_doubted = True
            if look.quota is not None and look.quota.covers(partition.topic_partition, log.config):
                look.quota.record(records.length)
            look.size += records.length
            if not records.length:
                look.left_out.add(followed)
                if not is_first and _is_sent(followed, log):
                    return True
                records = None
        elif _is_sent(followed, log):
            return False
        look.found.append((followed, partition, records))
        return True

    @staticmethod
    def _is_as_checked(look: Look, followed: "FollowedPartition") -> bool:
        """Whether all is as it was when the partition was found right."""
        partition = followed.partition
        if partition is None or look.replica_epoch != look.session.replica_epoch:
            return False
        leading = partition.leading
        return (
            partition.role_number == followed.role_number
            and partition.leader_epoch == followed.current_leader_epoch
            and leading is not None
            and leading.followers is followed.followers
        )

    def _check(self, look: Look, followed: "FollowedPartition") -> None:
        """Find the partition, and the follower's progress in it.

        Raises:
            ApiError: It may not follow it here and now: see the module.
        """
        led, session = self._led, look.session
        followed.partition = None
        topic = followed.topic
        name = led.topic_name(topic) if isinstance(topic, bytes) else topic
        if name is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        partition = led.leader_of(name, followed.index)
        if partition is None:
            raise ApiError(led.missing_error(name, followed.index))
        if isinstance(topic, bytes) and partition.topic_id.bytes != topic:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        if followed.current_leader_epoch == NO_EPOCH:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        partition.check_leader_epoch(followed.current_leader_epoch)
        epoch = look.replica_epoch
        if epoch is None or session.replica_epoch < epoch:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        leading = partition.leading
        progress = None if leading is None else leading.follower(session.replica_id)
        if leading is None or progress is None or session.replica_epoch > epoch:
            raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)
        followed.found_right(partition, leading.followers, progress)

    def _code(self, partition: "Partition", error: StorageError | ApiError) -> ErrorCode:
        if isinstance(error, DiskError):
            self._led.disk_failed(partition, error)
        return code_of(error)

    def _read_cold(
        self,
        session: "FollowerSession",
        followed: "FollowedPartition",
        partition: "Partition",
        need: WouldBlockError,
    ) -> None:
        """Have a thread read what is not in memory; it is looked at again afterwards."""
        if followed.cold is not None:
            return
        key, work = need.key, need.work

        def done(result: object, error: StorageError | None) -> None:
            followed.cold = None
            if followed.found is None:
                followed.found = CachedReads()
            followed.found.keep(key, result, error)
            session.changed_at(followed, has_records=True)

        directory = partition.log.directory.rpartition("/")[0]
        followed.cold = self._led.cold_reads.start(directory, key, work, done)
        if followed.cold is None:
            # Too many wait: the follower's next request tries again, the others first.
            session.changed_at(followed, has_records=False)
            session.put_last(followed)


def _is_held_back(quota: "ReplicationQuota", look: Look, partition: "Partition") -> bool:
    """Whether a follower that is out of sync gets no records for now."""
    leading = partition.leading
    return (
        leading is not None
        and look.session.replica_id not in leading.isr
        and quota.covers(partition.topic_partition, partition.log.config)
        and quota.wait_ms() > 0
    )


def _count(
    partition: "Partition",
    progress: "ReplicaProgress",
    followed: "FollowedPartition",
    look: Look,
) -> None:
    """Take the fetch as the follower's position."""
    followed.is_listed = False
    progress.followed = followed
    progress.fetched(
        followed.fetch_offset,
        followed.log_start_offset,
        look.session.replica_epoch,
        partition.log.log_end_offset,
        look.now_ms,
    )
    partition.follower_fetched(progress, look.now_ms, is_alone=look.is_alone)


def _is_sent(followed: "FollowedPartition", log: "Log") -> bool:
    """Whether the follower has had the high watermark and the log start."""
    return (
        log.high_watermark == followed.sent_high_watermark
        and log.log_start_offset == followed.sent_log_start_offset
    )


def _diverging_epoch(
    partition: "Partition", followed: "FollowedPartition"
) -> tuple[int, int] | None:
    """Where the follower's log has left ours; None: it is a prefix of it (KIP-595, KIP-279).

    Raises:
        ApiError: OFFSET_OUT_OF_RANGE: nothing is known of its epoch here any more.
    """
    log = partition.log
    offset = followed.fetch_offset
    if (
        followed.last_fetched_epoch == log.latest_leader_epoch
        and log.log_start_offset <= offset <= log.log_end_offset
    ):
        return None
    epoch, end = log.reader.end_offset_for_epoch(followed.last_fetched_epoch)
    if epoch < 0 or end < 0 or offset < log.log_start_offset:
        raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < followed.last_fetched_epoch or end < offset:
        return epoch, end
    return None


def response_of(
    partition: "Partition", index: int, diverging_epoch: tuple[int, int] | None = None
) -> FetchPartitionResponse:
    """An answer without records and without an error."""
    log = partition.log
    return FetchPartitionResponse(
        index,
        0,
        log.high_watermark,
        log.last_stable_offset,
        log.log_start_offset,
        diverging_epoch=diverging_epoch,
    )


def failure(index: int, code: ErrorCode) -> FetchPartitionResponse:
    """A partition's error; offsets are -1, as Kafka sends them."""
    return FetchPartitionResponse(index, code, -1, -1, -1, aborted=[])
