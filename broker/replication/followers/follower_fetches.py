"""Fetch requests of followers: they read to the log end, and where they read is where they are.

    Fetch ──> session: partitions that have changed ──each──> checked ──> counted ──> read
                                                        │         └─> high watermark, ISR
                                                        └─> an error, or a diverging epoch
          ──> answered, or parked until one of them grows

What counts, and what gets an error, `look` says. A request that comes in where brokers do not call,
or of no registered broker, gets NOT_LEADER_OR_FOLLOWER for all partitions.

The high watermark and the log start go with the next answer; they wake nobody (KAFKA-9731).
Partitions that do not fit into SLICE_MS are looked at in the follower's next request, or, while
nothing was found, in the loop's next iteration.

Source: Kafka, ReplicaManager.scala (fetchMessages), Partition.scala (fetchRecords).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.replication.followers.follower_sessions import (
    NO_SESSION,
    FollowerSession,
    FollowerSessions,
)
from broker.replication.followers.look import LedPartitions, Look, Looks, failure, response_of
from broker.replication.followers.parked_fetch import OpenReply, ParkedFetch
from broker.replication.followers.shared_records import SharedRecords
from broker.requests.reply import PARKED, Body, HotResult
from protocol.error_codes import ErrorCode
from protocol.hot.fetch import (
    FIRST_TOPIC_ID_VERSION,
    FetchPartitionResponse,
    encode_response,
)

if TYPE_CHECKING:
    from broker.network.connection import Connection
    from broker.replication.followers.followed_partition import TopicKey
    from broker.requests.request_context import RequestContext
    from protocol.hot.fetch import FetchRequest
    from storage.environment.clock import Clock
    from storage.environment.randomness import Randomness


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
        "_looks",
        "_max_bytes",
        "_now_s",
        "_open_reply",
        "_shared",
        "bytes_out",
        "parked",
        "sessions",
    )

    def __init__(
        self,
        led: LedPartitions,
        clock: "Clock",
        randomness: "Randomness",
        open_reply: "Callable[[Connection, RequestContext], OpenReply]",
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
        self._now_s = clock.monotonic_s
        self._looks = Looks(led, clock)
        self._open_reply = open_reply
        self._is_from_broker = is_from_broker
        self._max_bytes = max_bytes
        self.sessions = FollowerSessions(randomness, self._later)
        led.terms.last_fetches = self.sessions.last_fetches
        self._due: list[FollowerSession] = []
        # While several followers are answered one after the other.
        self._shared: SharedRecords | None = None
        self.parked = 0
        self.bytes_out = 0

    def handle(
        self, connection: "Connection", context: "RequestContext", request: "FetchRequest"
    ) -> HotResult:
        """Answer a request with a replica id of 0 or above, or park it."""
        version = context.api_version
        by_id = version >= FIRST_TOPIC_ID_VERSION
        terms = self._led.terms
        epoch = terms.registered_epoch(request.replica_id)
        if epoch is None or not self._is_from_broker(context):
            return self._refuse(request, version, by_id=by_id)
        waiting = self.sessions.parked_of(request)
        if waiting is not None:
            # Without records: their follower does not ask for them at another offset yet, and
            # would get them twice.
            waiting.answer_with(encode_response([], version, session_id=request.session_id))
        now_ms = self._now_s() * 1000.0
        session = self.sessions.begin(request, now_ms, uses_topic_ids=by_id)
        if not isinstance(session, FollowerSession):
            return encode_response([], version, error_code=session)
        is_first = session.session_id != request.session_id or session.session_id == NO_SESSION
        forces = request.max_wait_ms <= 0 or not session.partitions

        max_bytes = min(request.max_bytes, self._max_bytes)
        min_bytes = request.min_bytes
        look = Look(session, epoch, now_ms, terms.limiting_quota)
        self._looks.look(look, max_bytes, is_first=is_first)
        if forces or self._is_enough(look, min_bytes):
            body = self._answer(session, look, version)
            if session.session_id == NO_SESSION:
                session.end()
            return body
        reply = self._open_reply(connection, context)
        self.parked += 1
        parked = ParkedFetch(
            self,
            reply,
            session,
            version=version,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            is_first=is_first,
        )
        reply.when_abandoned(parked.abandoned)
        session.parked = parked
        session.wait_until(now_ms + request.max_wait_ms, self._led.timer, self._clock)
        if session.has_more and not session.is_due:
            # What this look itself has brought about: see `FollowedPartition.is_marked`.
            self._later(session)
        return PARKED

    def _is_enough(self, look: Look, min_bytes: int) -> bool:
        """Whether a look has found an answer; otherwise what it had no time for comes later."""
        if look.urgent or look.size >= min_bytes or (look.is_cut and look.found):
            return True
        if look.is_cut:
            self._later(look.session)
        return False

    @staticmethod
    def _refuse(request: "FetchRequest", version: int, *, by_id: bool) -> Body:
        """Answer what no registered broker has asked for."""
        topics: list[tuple[TopicKey, list[FetchPartitionResponse]]] = [
            (
                topic.topic_id if by_id else topic.name or "",
                [
                    failure(wanted.partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return encode_response(topics, version)

    # -- parked requests -------------------------------------------------------------------------

    def answer_to(self, parked: ParkedFetch, *, force: bool) -> Body | None:
        """An answer to a request that waits; None while there is too little."""
        session, terms = parked.session, self._led.terms
        look = Look(
            session,
            terms.registered_epoch(session.replica_id),
            self._now_s() * 1000.0,
            terms.limiting_quota,
        )
        self._looks.look(look, parked.max_bytes, is_first=parked.is_first)
        if force or self._is_enough(look, parked.min_bytes):
            return self._answer(session, look, parked.version)
        return None

    def left(self, parked: ParkedFetch) -> None:
        """A request waits no longer."""
        self.parked -= 1
        session = parked.session
        session.parked = None
        if session.session_id == NO_SESSION:
            session.end()

    def _later(self, session: FollowerSession) -> None:
        """Try a session again in the loop's next iteration: a burst of appends wakes it once."""
        session.is_due = True
        if not self._due:
            self._led.call_soon(self._run)
        self._due.append(session)

    def _run(self) -> None:
        due, self._due = self._due, []
        self._shared = SharedRecords() if len(due) > 1 else None
        try:
            for session in due:
                session.is_due = False
                if session.parked is not None:
                    session.parked.try_again()
        finally:
            self._shared = None

    # -- answers ---------------------------------------------------------------------------------

    def _answer(self, session: FollowerSession, look: Look, version: int) -> Body:
        session.answered_ms = look.now_ms
        answers = look.urgent
        shared = self._shared if len(look.found) == 1 else None
        for followed, partition, records in look.found:
            response = response_of(partition, followed.index)
            if records is not None:
                # The same again, unless the follower's next request says that it has them.
                response.records = records if shared is None else shared.of(records)
                self.bytes_out += records.length
                leading = partition.leading
                if leading is not None and session.replica_id in leading.adding:
                    partition.stats.reassignment_bytes_out += records.length
                session.put_last(followed)
            elif followed not in look.left_out and not followed.is_marked:
                del session.changed[followed]
            answers.append((followed, response))
        topics: list[tuple[TopicKey, list[FetchPartitionResponse]]] = []
        for followed, response in answers:
            followed.sent_high_watermark = response.high_watermark
            followed.sent_log_start_offset = response.log_start_offset
            if topics and topics[-1][0] == followed.topic:
                topics[-1][1].append(response)
            else:
                topics.append((followed.topic, [response]))
            followed.end_reads()
        body = encode_response(topics, version, session_id=session.session_id)
        if shared is not None:
            shared.sent_in(body)
        return body
