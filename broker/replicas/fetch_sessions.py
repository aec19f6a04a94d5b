"""Incremental fetch sessions (KIP-227): a consumer of many partitions names only what has changed.

    request (id, epoch)   meaning                                  answer
    (any, -1)             no session; end the one named            everything, session id 0
    (any,  0)             everything is listed; open a session     everything, a new session id
    (id, n > 0)           changes since request n - 1              partitions that have changed

The cache holds at most `max.incremental.fetch.session.cache.slots` sessions. When it is full, a
session unused for two minutes is evicted; otherwise a smaller one of that age is evicted for a
larger one; otherwise the client gets no session, which is always correct. The same holds for the
limit of the sessions' partitions. One that outgrows it is closed: its client gets
FETCH_SESSION_ID_NOT_FOUND, and lists everything again.

Source: Kafka, FetchSession.scala.
"""

from typing import TYPE_CHECKING, Final

from protocol.error_codes import ErrorCode
from storage.environment.clock import Clock
from storage.environment.randomness import Randomness

if TYPE_CHECKING:
    from protocol.hot.fetch import FetchPartition, FetchRequest

TopicKey = str | bytes
"""A topic's name up to version 12, its id (16 bytes) from version 13."""

FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
NO_SESSION: Final = 0
EPOCH_MAX: Final = 2**31 - 1
EVICTION_AGE_MS = 120_000.0
PARTITIONS_MAX = 10_000
"""Partitions of one session: as many as a request may list."""

TOTAL_PARTITIONS_MAX = 500_000
"""Partitions of all sessions, existing or made up, at 300 bytes each: 150 MB."""


class SessionPartition:
    """A partition of a session: the client's parameters and the last response's offsets."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "last_fetched_epoch",
        "last_log_start_offset",
        "log_start_offset",
        "max_bytes",
        "partition",
        "topic",
    )

    def __init__(self, topic: TopicKey, wanted: "FetchPartition") -> None:
        self.topic = topic
        self.partition = wanted.partition
        self.high_watermark = -1
        self.last_log_start_offset = -1
        self.update(wanted)

    def update(self, wanted: "FetchPartition") -> None:
        """Update the client's parameters."""
        self.current_leader_epoch = wanted.current_leader_epoch
        self.fetch_offset = wanted.fetch_offset
        self.last_fetched_epoch = wanted.last_fetched_epoch
        self.log_start_offset = wanted.log_start_offset
        self.max_bytes = wanted.max_bytes


Wanted = list[tuple[TopicKey, "FetchPartition | SessionPartition"]]
"""The partitions to read, in order of preference."""


class FetchSession:
    """One client's session. `epoch` is the one expected in its next request."""

    __slots__ = (
        "created_ms",
        "epoch",
        "last_used_ms",
        "partitions",
        "session_id",
        "uses_topic_ids",
    )

    def __init__(self, session_id: int, now_ms: float, *, uses_topic_ids: bool) -> None:
        self.session_id = session_id
        self.epoch = 1
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.uses_topic_ids = uses_topic_ids
        self.partitions: dict[tuple[TopicKey, int], SessionPartition] = {}

    def update(self, request: "FetchRequest") -> None:
        """Apply the changes a request lists."""
        partitions = self.partitions
        for topic in request.topics:
            key: TopicKey = topic.topic_id if self.uses_topic_ids else topic.name or ""
            for wanted in topic.partitions:
                known = partitions.get((key, wanted.partition))
                if known is None:
                    partitions[(key, wanted.partition)] = SessionPartition(key, wanted)
                else:
                    known.update(wanted)
        for forgotten, indexes in request.forgotten:
            for index in indexes:
                partitions.pop((forgotten, index), None)

    def wanted(self) -> Wanted:
        """Everything the session covers, least recently answered first."""
        return [(partition.topic, partition) for partition in self.partitions.values()]

    def answered(self, partition: SessionPartition) -> None:
        """Move `partition`, whose records were sent, behind the others."""
        key = (partition.topic, partition.partition)
        if self.partitions.pop(key, None) is not None:
            self.partitions[key] = partition


class FetchContext:
    """The session context of one request."""

    __slots__ = ("error", "incremental", "session", "session_id", "wanted")

    def __init__(
        self,
        wanted: Wanted,
        *,
        session: FetchSession | None = None,
        incremental: bool = False,
        error: ErrorCode = ErrorCode.NONE,
        session_id: int = NO_SESSION,
    ) -> None:
        self.wanted = wanted
        self.session = session
        self.incremental = incremental
        self.error = error
        self.session_id = session_id


def listed(request: "FetchRequest", *, uses_topic_ids: bool) -> Wanted:
    """The partitions a request names, in its order."""
    wanted: Wanted = []
    for topic in request.topics:
        key: TopicKey = topic.topic_id if uses_topic_ids else topic.name or ""
        wanted.extend((key, partition) for partition in topic.partitions)
    return wanted


class FetchSessionCache:
    """All sessions of this broker, least recently used first."""

    __slots__ = ("_clock", "_randomness", "_sessions", "evicted", "slots")

    def __init__(self, slots: int, clock: Clock, randomness: Randomness) -> None:
        self.slots = slots
        self.evicted = 0
        self._clock = clock
        self._randomness = randomness
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """Partitions over all sessions."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def begin(self, request: "FetchRequest", *, uses_topic_ids: bool) -> FetchContext:
        """Open, update or close the request's session (see the module's table)."""
        session_id, epoch = request.session_id, request.session_epoch
        if epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            if session_id != NO_SESSION:
                self._sessions.pop(session_id, None)
            wanted = listed(request, uses_topic_ids=uses_topic_ids)
            if epoch == FINAL_EPOCH:
                return FetchContext(wanted)
            return self._open(request, wanted, uses_topic_ids=uses_topic_ids)
        session = self._sessions.get(session_id)
        if session is None:
            return FetchContext([], error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return FetchContext([], error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return FetchContext([], error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        session.last_used_ms = self._clock.monotonic_ms()
        self._sessions[session_id] = self._sessions.pop(session_id)
        before = len(session.partitions)
        session.update(request)
        now = len(session.partitions)
        if now > before and (now > PARTITIONS_MAX or self.partition_count > TOTAL_PARTITIONS_MAX):
            del self._sessions[session_id]
            return FetchContext([], error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        return FetchContext(
            session.wanted(), session=session, incremental=True, session_id=session_id
        )

    def _open(
        self, request: "FetchRequest", wanted: Wanted, *, uses_topic_ids: bool
    ) -> FetchContext:
        now_ms = self._clock.monotonic_ms()
        if not wanted or len(wanted) > PARTITIONS_MAX or not self._make_room(len(wanted), now_ms):
            return FetchContext(wanted)
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = 1 + self._randomness.below(EPOCH_MAX - 1)
        session = FetchSession(session_id, now_ms, uses_topic_ids=uses_topic_ids)
        session.update(request)
        self._sessions[session_id] = session
        return FetchContext(session.wanted(), session=session, session_id=session_id)

    def _make_room(self, size: int, now_ms: float) -> bool:
        total = self.partition_count
        while len(self._sessions) >= self.slots or total + size > TOTAL_PARTITIONS_MAX:
            victim = self._victim(size, now_ms)
            if victim is None:
                return False
            del self._sessions[victim.session_id]
            total -= len(victim.partitions)
            self.evicted += 1
        return True

    def _victim(self, size: int, now_ms: float) -> FetchSession | None:
        """The session that is evicted for one of `size` partitions; None: none may be."""
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now_ms - oldest.last_used_ms > EVICTION_AGE_MS:
            return oldest
        smallest = min(
            (s for s in self._sessions.values() if now_ms - s.created_ms > EVICTION_AGE_MS),
            key=lambda s: len(s.partitions),
            default=None,
        )
        return smallest if smallest is not None and len(smallest.partitions) < size else None
