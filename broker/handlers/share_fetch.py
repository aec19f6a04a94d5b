"""ShareFetch (API key 78), versions 1 to 2.

Behaviour:
- Acquires records for a member of a share group and delivers them, from all partitions of its share
  session; it holds them until it acknowledges them, or the acquisition lock expires.
- Waits for `min_bytes` like Fetch, not at all for 0; nothing is acquired while it waits.
- It may carry acknowledgements of earlier records, which are applied first; so records that are
  released may be delivered to the same member at once.
- Records are sent as slices of segment files, whole batches; `acquired_records` lists those that
  may be used.
- Who does not lead a partition names its leader, and where it listens.
- Without room for a session, the error is returned after the maximum wait.

Versions:
- 1   stable in Kafka 4.1                          KIP-932
- 2   exact number of records, renewed locks       KIP-1206, KIP-1222
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from broker.coordinator.persister import SharePartitionKey
from broker.replicas.leader_hints import FETCH_CODES
from broker.requests.reply import PARKED, Body, HotResult, Reply
from broker.requests.request_limits import check_elements, check_size, elements_max_of
from broker.runtime.errors import ApiError
from broker.share.delivery.acknowledgements import (
    RENEW_FROM_VERSION,
    Acknowledgements,
    is_member_id,
)
from broker.share.delivery.delayed_share_fetch import DelayedShareFetch
from broker.share.delivery.read import Delivery, ShareRead, ShareReadTerms
from broker.share.delivery.sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    SessionKey,
    ShareSession,
    TopicPartitionId,
)
from broker.share.delivery.share_partitions import Outcomes, SharePartitions
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.hot.share_fetch import ShareFetchedPartition, encode_response
from protocol.messages.share_fetch import ShareFetchRequest, decode_request
from tiered.remote_read import RemoteRecords

if TYPE_CHECKING:
    from broker.network.connection import Connection
    from broker.replicas.leader_hints import LeaderHints
    from broker.replicas.replica_manager import ReplicaManager
    from broker.requests.request_context import RequestContext
    from protocol.hot.wire import NodeEndpoint

API_KEY = ApiKey.SHARE_FETCH
VERSIONS = (1, 2)

EXACT = 1
"""`share_acquire_mode`: not one record more than `max_records`."""


class ShareFetchHandler:
    """See the module."""

    __slots__ = ("_max_bytes", "_open_reply", "_replicas", "_share")

    def __init__(
        self,
        share: SharePartitions,
        replicas: "ReplicaManager",
        open_reply: "Callable[[Connection, RequestContext], Reply]",
        *,
        max_bytes: int,
    ) -> None:
        self._share = share
        self._replicas = replicas
        self._open_reply = open_reply
        self._max_bytes = max_bytes

    def __call__(
        self, connection: "Connection", context: "RequestContext", frame: memoryview, position: int
    ) -> HotResult:
        """Handle one request in place."""
        check_size(API_KEY, len(frame))
        request = decode_request(frame[position:], context.api_version)
        limit = elements_max_of(API_KEY)
        if len(frame) > limit:
            check_elements(request, limit)
        try:
            return self._handle(connection, context, request)
        except ApiError as error:
            if error.code is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
                return self._refuse_later(connection, context, request.max_wait_ms)
            return _failure(error)

    def _handle(
        self, connection: "Connection", context: "RequestContext", request: ShareFetchRequest
    ) -> HotResult:
        share = self._share
        if not share.is_enabled:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        group_id, member_id = request.group_id, request.member_id
        if not group_id or member_id is None or not is_member_id(member_id):
            raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
        is_renewal = context.api_version >= RENEW_FROM_VERSION and request.is_renew_ack
        if is_renewal:
            _check_renewal(request)
        acknowledgements = Acknowledgements(context.api_version, is_renewal=is_renewal)
        for topic in request.topics:
            for partition in topic.partitions:
                if partition.acknowledgement_batches:
                    key = SharePartitionKey(group_id, topic.topic_id, partition.partition_index)
                    acknowledgements.add(key, partition.acknowledgement_batches)
        is_silent = not acknowledgements.batches and not acknowledgements.decided
        session_key = SessionKey(group_id, member_id)
        session = self._begin(connection, request, session_key, has_acknowledgements=not is_silent)
        answer = _Answer(self, context, request, session_key, session)
        share.acknowledge(
            member_id,
            acknowledgements.batches,
            lambda outcomes: answer.acknowledged({**outcomes, **acknowledgements.decided}),
        )
        if request.share_session_epoch == FINAL_EPOCH or is_renewal:
            answer.fetched({})
        else:
            self._fetch(connection, context, request, answer)
        return answer.result(connection)

    def _begin(
        self,
        connection: "Connection",
        request: ShareFetchRequest,
        key: SessionKey,
        *,
        has_acknowledgements: bool,
    ) -> ShareSession:
        """The session after the request's changes."""
        sessions = self._share.sessions
        epoch = request.share_session_epoch
        listed = [
            (topic.topic_id, partition.partition_index)
            for topic in request.topics
            for partition in topic.partitions
        ]
        if epoch == INITIAL_EPOCH:
            if has_acknowledgements:
                raise ApiError(ErrorCode.INVALID_REQUEST)
            sessions.open(key, listed, connection)
            connection.on_closed = self._share.on_connection_closed
            session = sessions.get(key)
            assert session is not None
            return session
        session = sessions.resume(key, epoch)
        if epoch != FINAL_EPOCH:
            forgotten = [
                (topic.topic_id, index)
                for topic in request.forgotten_topics_data
                for index in topic.partitions
            ]
            sessions.update(session, listed, forgotten)
        return session

    def _fetch(
        self,
        connection: "Connection",
        context: "RequestContext",
        request: ShareFetchRequest,
        answer: "_Answer",
    ) -> None:
        wanted = _rotated(answer.wanted, request.share_session_epoch)
        max_bytes = min(request.max_bytes, self._max_bytes)
        if not wanted or request.max_records <= 0 or max_bytes <= 0:
            answer.fetched({})
            return
        config = self._share.group_configs(answer.group_id)
        terms = ShareReadTerms(
            group_id=answer.group_id,
            member_id=answer.member_id,
            min_bytes=min(request.min_bytes, max_bytes),
            max_bytes=max_bytes,
            max_records=request.max_records,
            batch_size=max(request.batch_size, 1),
            is_exact=context.api_version >= RENEW_FROM_VERSION
            and request.share_acquire_mode == EXACT,
            is_read_committed=config.is_read_committed,
            client=(context.connection.principal, context.client_id or ""),
        )
        read = ShareRead(self._share, self._replicas, terms, wanted)
        delivered = read.take(force=request.max_wait_ms <= 0 or request.min_bytes <= 0)
        if delivered is not None:
            read.release()
            answer.fetched(delivered)
            return
        self._park(connection, request, read, answer)

    def _park(
        self,
        connection: "Connection",
        request: ShareFetchRequest,
        read: ShareRead,
        answer: "_Answer",
    ) -> None:
        def read_and_answer(force: bool) -> bool:
            if connection.closed:
                # Records acquired now would not be acknowledged.
                return True
            delivered = read.take(force=force)
            if delivered is None:
                return False
            read.release()
            answer.fetched(delivered)
            return True

        operation = DelayedShareFetch(read_and_answer)

        def abandon() -> None:
            read.cancel()
            operation.abandon()

        answer.open(connection)
        answer.when_abandoned(abandon)
        watched = read.watched()
        if self._share.purgatory.park_poll(operation, request.max_wait_ms, connection):
            for share_partition, partition in watched:
                share_partition.watchers.add(operation)
                partition.watch_fetch().add(operation)

    def _refuse_later(
        self, connection: "Connection", context: "RequestContext", max_wait_ms: int
    ) -> HotResult:
        error = ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        if max_wait_ms <= 0:
            return _failure(error)
        reply = self._open_reply(connection, context)

        def refuse(force: bool) -> bool:
            if force:
                reply.send(_failure(error))
            return force

        operation = DelayedShareFetch(refuse)
        reply.when_abandoned(operation.abandon)
        self._share.purgatory.park_poll(operation, max_wait_ms, connection)
        return PARKED

    def open_reply(self, connection: "Connection", context: "RequestContext") -> Reply:
        """Reserve the place of a response that is sent later."""
        return self._open_reply(connection, context)

    def end(self, session_key: SessionKey) -> None:
        """End a member's session."""
        self._share.release_session(session_key)

    @property
    def leader_hints(self) -> "LeaderHints | None":
        """Leaders of partitions that are led elsewhere; None: there is no other broker."""
        return self._share.leader_hints

    def lock_ms(self, group_id: str) -> int:
        """Duration of the group's acquisition locks."""
        return self._share.group_configs(group_id).record_lock_duration_ms


class _Answer:
    """The response, combined of fetched records and results of acknowledgements."""

    __slots__ = (
        "_abandoned",
        "_body",
        "_context",
        "_delivered",
        "_handler",
        "_is_initial",
        "_is_last",
        "_outcomes",
        "_reply",
        "_session",
        "_session_key",
        "wanted",
    )

    def __init__(
        self,
        handler: ShareFetchHandler,
        context: "RequestContext",
        request: ShareFetchRequest,
        session_key: SessionKey,
        session: ShareSession,
    ) -> None:
        self._handler = handler
        self._context = context
        self._session_key = session_key
        self._session = session
        self._is_initial = request.share_session_epoch == INITIAL_EPOCH
        self._is_last = request.share_session_epoch == FINAL_EPOCH
        self.wanted = [
            SharePartitionKey(session_key.group_id, topic_id, index)
            for topic_id, index in session.partitions
        ]
        self._delivered: Mapping[SharePartitionKey, Delivery] | None = None
        self._outcomes: Outcomes | None = None
        self._reply: Reply | None = None
        self._abandoned: Callable[[], None] | None = None
        self._body: Body | None = None

    @property
    def group_id(self) -> str:
        """The group of the request."""
        return self._session_key.group_id

    @property
    def member_id(self) -> str:
        """The member of the request."""
        return self._session_key.member_id

    def acknowledged(self, outcomes: Outcomes) -> None:
        """Set the results of the acknowledgements."""
        self._outcomes = outcomes
        self._settle()

    def fetched(self, delivered: Mapping[SharePartitionKey, Delivery]) -> None:
        """Set the fetched records."""
        self._delivered = delivered
        self._settle()

    def open(self, connection: "Connection") -> None:
        """Reserve the place of the response, which is sent later."""
        if self._reply is None:
            self._reply = self._handler.open_reply(connection, self._context)

    def when_abandoned(self, callback: Callable[[], None]) -> None:
        """Call `callback` if the client disconnects before it is answered."""
        assert self._reply is not None
        self._reply.when_abandoned(callback)

    def result(self, connection: "Connection") -> HotResult:
        """The response for the router, if it is complete."""
        if self._reply is not None:
            return PARKED
        if self._body is not None:
            return self._body
        self.open(connection)
        return PARKED

    def _settle(self) -> None:
        if self._delivered is None or self._outcomes is None:
            return
        body = self._encode(self._delivered, self._outcomes)
        if self._is_last:
            self._handler.end(self._session_key)
        if self._reply is not None:
            self._reply.send(body)
        else:
            self._body = body

    def _encode(self, delivered: Mapping[SharePartitionKey, Delivery], outcomes: Outcomes) -> Body:
        topics: dict[UUID, list[ShareFetchedPartition]] = {}
        included = set()
        for key, delivery in delivered.items():
            place: TopicPartitionId = (key.topic_id, key.partition)
            must_include = self._session.must_include(
                place,
                has_records=delivery.records is not None,
                has_failed=delivery.error_code != 0,
            )
            if must_include or self._is_initial:
                included.add(key)
                topics.setdefault(key.topic_id, []).append(
                    _partition_response(key, delivery, outcomes.get(key, ErrorCode.NONE))
                )
        for key, code in outcomes.items():
            if key not in included:
                topics.setdefault(key.topic_id, []).append(_partition_response(key, None, code))
        hints = self._handler.leader_hints
        endpoints: Sequence[NodeEndpoint] = ()
        if hints is not None:
            listener = self._context.connection.listener_name
            endpoints = hints.add(
                ((topic_id.bytes, responses) for topic_id, responses in topics.items()),
                FETCH_CODES,
                listener,
            )
        return _flat(
            encode_response(
                list(topics.items()),
                lock_timeout_ms=self._handler.lock_ms(self.group_id),
                node_endpoints=endpoints,
            )
        )


def _flat(body: list[Any]) -> Body:
    """Split remote records into their slices: a piece is bytes or one slice."""
    if not any(isinstance(piece, RemoteRecords) for piece in body):
        return body
    pieces: list[Any] = []
    for piece in body:
        if isinstance(piece, RemoteRecords):
            pieces += piece.slices
        else:
            pieces.append(piece)
    return pieces


def _partition_response(
    key: SharePartitionKey, delivery: Delivery | None, outcome: ErrorCode
) -> ShareFetchedPartition:
    code = ErrorCode(delivery.error_code) if delivery is not None else ErrorCode.NONE
    return ShareFetchedPartition(
        key.partition,
        code,
        outcome,
        None if delivery is None else delivery.records,
        () if delivery is None else delivery.acquired,
        None if code is ErrorCode.NONE else code.message,
        None if outcome is ErrorCode.NONE else outcome.message,
    )


def _failure(error: ApiError) -> Body:
    return encode_response((), error_code=error.code, error_message=error.message)


def _check_renewal(request: ShareFetchRequest) -> None:
    """Check that a renewal fetches nothing: the wait could outlast the renewed lock."""
    wrong = [
        name
        for name, value in (
            ("maxBytes", request.max_bytes),
            ("minBytes", request.min_bytes),
            ("maxRecords", request.max_records),
            ("maxWaitMs", request.max_wait_ms),
        )
        if value
    ]
    if wrong:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "".join(f"{name} must be set to 0, " for name in wrong) + "if isRenewAck is true.",
        )


def _rotated(wanted: Sequence[SharePartitionKey], epoch: int) -> Sequence[SharePartitionKey]:
    """Rotate the partitions with every request, so that none starves."""
    if len(wanted) < 2 or epoch < 1:
        return wanted
    at = epoch % len(wanted)
    return [*wanted[at:], *wanted[:at]]
