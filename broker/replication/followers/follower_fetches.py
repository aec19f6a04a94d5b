"""Fetch requests of followers: they read to the log end, and where they read is where they are.

    Fetch ──> session: partitions that have changed ──each──> checked ──> counted ──> read
                                                        │         └─> high watermark, ISR
                                                        └─> an error, or a diverging epoch
          ──> answered, or parked until one of them grows

A fetch counts as the follower's position only if this broker leads the partition in the epoch that
the follower names (KIP-320), the follower is one of its replicas, it fetches in the life that the
cluster has registered (KIP-903), and its log is a prefix of ours (KIP-595). Anything else moves
neither the high watermark nor the ISR (CVE-2018-1288):

    not where brokers call                             NOT_LEADER_OR_FOLLOWER
    no registered broker, or an earlier life of one    NOT_LEADER_OR_FOLLOWER
    a life that this broker has not heard of yet       UNKNOWN_LEADER_EPOCH: retried soon
    no replica of the partition                        UNKNOWN_LEADER_EPOCH, likewise
    an older or a newer leader epoch                   FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH
    none                                               NOT_LEADER_OR_FOLLOWER
    an offset that is not here any more                OFFSET_OUT_OF_RANGE, or
                                                       OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405)

The high watermark and the log start go with the next answer; they wake nobody (KAFKA-9731).
Partitions that do not fit into SLICE_MS are looked at in the follower's next request, or, while
nothing was found, in the loop's next iteration.

Source: Kafka, ReplicaManager.scala (fetchMessages), Partition.scala (fetchRecords).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from broker.replication.followers.follower_sessions import (
    NO_SESSION,
    FollowerSession,
    FollowerSessions,
)
from broker.replication.followers.parked_fetch import ParkedFetch
from broker.requests.reply import PARKED, Body, HotResult, Reply
from broker.runtime.errors import ApiError, code_of
from protocol.error_codes import ErrorCode
from protocol.hot.fetch import (
    FIRST_TOPIC_ID_VERSION,
    FetchPartitionResponse,
    encode_response,
)
from storage.errors import DiskError, OffsetNotLocalError, StorageError
from storage.index.reads import NOWAIT, CachedReads, WouldBlockError

if TYPE_CHECKING:
    from broker.network.connection import Connection
    from broker.replicas.cold_reads import ColdReads
    from broker.replicas.partition import Partition
    from broker.replication.followers.followed_partition import FollowedPartition, TopicKey
    from broker.replication.replica_progress import ReplicaProgress
    from broker.replication.terms import ReplicationTerms
    from broker.requests.request_context import RequestContext
    from broker.runtime.timer import Timer
    from protocol.hot.fetch import FetchRequest
    from storage.environment.clock import Clock
    from storage.environment.randomness import Randomness

SLICE_MS: Final = 2.0
"""How long one look at a session's partitions may hold the loop."""

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
    """What one look at a session has found: answers of partitions, and their bytes.

    Attributes:
        is_cut: There was no time for all of them.
        is_urgent: An error or a diverging epoch, which the follower is to hear of at once.
        left_out: Those whose records do not fit.
    """

    __slots__ = ("answers", "is_cut", "is_urgent", "left_out", "size")

    def __init__(self) -> None:
        self.answers: list[tuple[FollowedPartition, FetchPartitionResponse]] = []
        self.size = 0
        self.is_cut = False
        self.is_urgent = False
        self.left_out: set[FollowedPartition] = set()


class FollowerFetches:
    """See the module.

    Attributes:
        sessions: Of the followers.
        parked: Requests that wait.
        bytes_out: Bytes of records sent to followers.
    """

    __slots__ = (
        "_clock",
        "_due",
        "_is_from_broker",
        "_led",
        "_max_bytes",
        "_open_reply",
        "bytes_out",
        "parked",
        "sessions",
    )

    def __init__(
        self,
        led: LedPartitions,
        clock: "Clock",
        randomness: "Randomness",
        open_reply: "Callable[[Connection, RequestContext], Reply]",
        *,
        is_from_broker: "Callable[[RequestContext], bool]",
        max_bytes: int,
    ) -> None:
        """Serve no follower yet.

        Args:
            led: The partitions.
            clock: For lag.
            randomness: For ids of sessions.
            open_reply: For answers that are given later.
            is_from_broker: Whether a request has come in where brokers call.
            max_bytes: Of an answer, whatever a follower asks for.
        """
        self._led = led
        self._clock = clock
        self._open_reply = open_reply
        self._is_from_broker = is_from_broker
        self._max_bytes = max_bytes
        self.sessions = FollowerSessions(randomness, self._later)
        self._due: list[FollowerSession] = []
        self.parked = 0
        self.bytes_out = 0

    def handle(
        self, connection: "Connection", context: "RequestContext", request: "FetchRequest"
    ) -> HotResult:
        """Answer a request with a replica id of 0 or above, or park it."""
        version = context.api_version
        by_id = version >= FIRST_TOPIC_ID_VERSION
        terms = self._led.terms
        if terms.registered_epoch(request.replica_id) is None or not self._is_from_broker(context):
            return self._refuse(request, version, by_id=by_id)
        waiting = self.sessions.parked_of(request)
        if waiting is not None:
            # Without records: their follower does not ask for them at another offset yet, and
            # would get them twice.
            waiting.answer_with(encode_response([], version, session_id=request.session_id))
        session = self.sessions.begin(request, self._clock.monotonic_ms(), uses_topic_ids=by_id)
        if isinstance(session, ErrorCode):
            return encode_response([], version, error_code=session)
        is_first = session.session_id != request.session_id or session.session_id == NO_SESSION
        forces = request.max_wait_ms <= 0 or not session.partitions

        def make_answer(force: bool) -> Body | None:
            look = self._look(session, request, is_first=is_first)
            if (
                force
                or look.is_urgent
                or look.size >= request.min_bytes
                or (look.is_cut and look.answers)
            ):
                return self._answer(session, look, version)
            if look.is_cut:
                self._later(session)
            return None

        body = make_answer(forces)
        if body is not None:
            if session.session_id == NO_SESSION:
                session.end()
            return body
        reply = self._open_reply(connection, context)
        self.parked += 1

        def left() -> None:
            self.parked -= 1
            session.parked = None
            if session.session_id == NO_SESSION:
                session.end()

        session.parked = ParkedFetch(reply, self._led.timer, request.max_wait_ms, make_answer, left)
        if session.has_more and not session.is_due:
            # What this look itself has brought about: see `FollowedPartition.is_marked`.
            self._later(session)
        return PARKED

    @staticmethod
    def _refuse(request: "FetchRequest", version: int, *, by_id: bool) -> Body:
        """Answer what no registered broker has asked for."""
        topics: list[tuple[TopicKey, list[FetchPartitionResponse]]] = [
            (
                topic.topic_id if by_id else topic.name or "",
                [
                    _failure(wanted.partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return encode_response(topics, version)

    # -- parked requests -------------------------------------------------------------------------

    def _later(self, session: FollowerSession) -> None:
        """Try a session again in the loop's next iteration: a burst of appends wakes it once."""
        session.is_due = True
        if not self._due:
            self._led.call_soon(self._run)
        self._due.append(session)

    def _run(self) -> None:
        due, self._due = self._due, []
        for session in due:
            session.is_due = False
            if session.parked is not None:
                session.parked.try_again()

    # -- partitions ------------------------------------------------------------------------------

    def _look(self, session: FollowerSession, request: "FetchRequest", *, is_first: bool) -> Look:
        """Look at what has changed; what turns out to be quiet is not looked at again."""
        look = Look()
        left = min(request.max_bytes, self._max_bytes)
        clock = self._clock
        now_ms = clock.monotonic_ms()
        until_ms = now_ms + SLICE_MS
        changed = session.changed
        session.has_more = False
        for followed in list(changed):
            followed.is_marked = False
            response = self._look_at(session, followed, left, look, now_ms)
            if response is None:
                if not followed.is_marked:
                    changed.pop(followed, None)
                continue
            records = response.records
            if records is not None:
                look.size += records.length
                left -= records.length
            elif followed in look.left_out and not is_first and _is_sent(followed, response):
                continue
            look.answers.append((followed, response))
            if clock.monotonic_ms() >= until_ms:
                look.is_cut = len(changed) > len(look.answers)
                break
        return look

    def _look_at(
        self,
        session: FollowerSession,
        followed: "FollowedPartition",
        left: int,
        look: Look,
        now_ms: float,
    ) -> FetchPartitionResponse | None:
        """The answer of one partition; None: there is nothing to say."""
        try:
            partition, progress = self._checked(session, followed)
        except ApiError as error:
            look.is_urgent = True
            return _failure(followed.index, error.code)
        log = partition.log
        is_new = followed.is_listed or progress.followed is not followed
        try:
            if is_new and followed.last_fetched_epoch != NO_EPOCH:
                diverging = _diverging_epoch(partition, followed)
                if diverging is not None:
                    look.is_urgent = True
                    return _at(partition, followed.index, diverging)
            records = log.reader.read(
                followed.fetch_offset,
                max_bytes=max(min(followed.max_bytes, left), 0),
                end_offset=log.log_end_offset,
                min_one_batch=look.size == 0,
                reads=followed.found or NOWAIT,
            )
        except WouldBlockError as need:
            if is_new:
                self._count(partition, progress, followed, now_ms)
            self._read_cold(session, followed, partition, need)
            return None
        except (StorageError, ApiError) as error:
            look.is_urgent = True
            if isinstance(error, OffsetNotLocalError):
                return _failure(followed.index, ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE)
            if isinstance(error, DiskError):
                self._led.disk_failed(partition, error)
            return _failure(followed.index, code_of(error))
        if is_new:
            self._count(partition, progress, followed, now_ms)
        response = _at(partition, followed.index, None)
        if records is not None:
            if followed.found is not None:
                records.is_doubted = True
            if records.length:
                response.records = records
            else:
                look.left_out.add(followed)
            return response
        return None if _is_sent(followed, response) else response

    def _checked(
        self, session: FollowerSession, followed: "FollowedPartition"
    ) -> "tuple[Partition, ReplicaProgress]":
        """The partition, and the follower's progress in it.

        Raises:
            ApiError: It may not follow it here and now: see the module.
        """
        led = self._led
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
        epoch = led.terms.registered_epoch(session.replica_id)
        if epoch is None or session.replica_epoch < epoch:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        leading = partition.leading
        progress = None if leading is None else leading.follower(session.replica_id)
        if progress is None or session.replica_epoch > epoch:
            raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)
        return partition, progress

    @staticmethod
    def _count(
        partition: "Partition",
        progress: "ReplicaProgress",
        followed: "FollowedPartition",
        now_ms: float,
    ) -> None:
        """Take the fetch as the follower's position."""
        followed.is_listed = False
        session = followed.session
        assert isinstance(session, FollowerSession)
        progress.followed = followed
        progress.fetched(
            followed.fetch_offset,
            followed.log_start_offset,
            session.replica_epoch,
            partition.log.log_end_offset,
            now_ms,
        )
        partition.follower_fetched(progress, now_ms)

    def _read_cold(
        self,
        session: FollowerSession,
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
            # Too many wait: the follower's next request tries again.
            session.changed_at(followed, has_records=False)

    # -- answers ---------------------------------------------------------------------------------

    def _answer(self, session: FollowerSession, look: Look, version: int) -> Body:
        topics: list[tuple[TopicKey, list[FetchPartitionResponse]]] = []
        for followed, response in look.answers:
            if topics and topics[-1][0] == followed.topic:
                topics[-1][1].append(response)
            else:
                topics.append((followed.topic, [response]))
            followed.sent_high_watermark = response.high_watermark
            followed.sent_log_start_offset = response.log_start_offset
            if response.records is not None:
                # The same again, unless the follower's next request says that it has them.
                self.bytes_out += response.records.length
                session.put_last(followed)
            elif (
                not response.error_code
                and response.diverging_epoch is None
                and followed not in look.left_out
                and not followed.is_marked
            ):
                del session.changed[followed]
            followed.end_reads()
        return encode_response(topics, version, session_id=session.session_id)


def _is_sent(followed: "FollowedPartition", response: FetchPartitionResponse) -> bool:
    """Whether the follower has had the high watermark and the log start."""
    return (
        response.high_watermark == followed.sent_high_watermark
        and response.log_start_offset == followed.sent_log_start_offset
    )


def _diverging_epoch(
    partition: "Partition", followed: "FollowedPartition"
) -> tuple[int, int] | None:
    """Where the follower's log has left ours; None: it is a prefix of it (KIP-595, KIP-279).

    Raises:
        ApiError: OFFSET_OUT_OF_RANGE: nothing is known of its epoch here any more.
    """
    log = partition.log
    epoch, end = log.reader.end_offset_for_epoch(followed.last_fetched_epoch)
    if epoch < 0 or end < 0 or followed.fetch_offset < log.log_start_offset:
        raise ApiError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < followed.last_fetched_epoch or end < followed.fetch_offset:
        return epoch, end
    return None


def _at(
    partition: "Partition", index: int, diverging_epoch: tuple[int, int] | None
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


def _failure(index: int, code: ErrorCode) -> FetchPartitionResponse:
    """A partition's error; offsets are -1, as Kafka sends them."""
    return FetchPartitionResponse(index, code, -1, -1, -1, aborted=[])
