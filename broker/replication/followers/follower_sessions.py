"""Fetch sessions of followers (KIP-227): the cost of a fetch is by what has changed.

A session keeps a set of the partitions that may have something for its follower: those that the
latest request names, that have grown, whose high watermark or log start has moved, and those that
were answered with records or an error. All others cost nothing, however many there are.

They are not among the clients' sessions: a client cannot displace a follower, and nothing but the
number of partitions bounds one. A broker has a few of them (one for each of its fetchers); those of
an earlier life of it are dropped with its first fetch in a new one.

Source: Kafka, FetchSession.scala.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Protocol

from broker.replication.followers.followed_partition import FollowedPartition
from broker.replication.terms import LastFetch
from broker.runtime.deadline import Deadline
from protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from broker.replication.followers.followed_partition import TopicKey
    from broker.requests.reply import Body
    from broker.runtime.timer import Timer
    from protocol.hot.fetch import FetchRequest
    from storage.environment.clock import Clock
    from storage.environment.randomness import Randomness

FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
NO_SESSION: Final = 0
EPOCH_MAX: Final = 2**31 - 1

SESSIONS_PER_REPLICA_MAX: Final = 64
"""Sessions of one follower; the one that was opened first is dropped. It has as many fetchers as
`num.replica.fetchers`, which is 1 by default."""

PARTITIONS_MAX: Final = 1_000_000
"""Partitions of one session: more than a broker can hold."""


class WaitingFetch(Protocol):
    """A request that waits for records: `broker.replication.followers.parked_fetch.ParkedFetch`."""

    def try_again(self) -> None:
        """Answer if there is enough by now."""
        ...

    def answer(self) -> None:
        """Answer with what there is."""
        ...

    def answer_with(self, body: "Body") -> None:
        """Answer with `body`."""
        ...


class FollowerSession:
    """One session. `epoch` is the one expected in its next request; see the module.

    Attributes:
        replica_id: The follower.
        replica_epoch: Its life that has opened the session.
        session_id: `NO_SESSION`: it ends with its first answer.
        partitions: All that it follows.
        changed: Those to look at, in order; a set with an order.
        parked: The request that waits for records, if one does.
        wait: Its time; None before the first.
        answered_ms: Monotonic time of its last answer.
        fetched_ms: See `FollowsChanges`.
        confirmed_ms: Likewise.
        is_due: It is to be tried again.
        has_more: There may be records that came while no request was parked.
    """

    __slots__ = (
        "_on_due",
        "answered_ms",
        "changed",
        "confirmed_ms",
        "epoch",
        "fetched_ms",
        "has_more",
        "is_due",
        "parked",
        "partitions",
        "replica_epoch",
        "replica_id",
        "session_id",
        "uses_topic_ids",
        "wait",
    )

    def __init__(
        self,
        request: "FetchRequest",
        session_id: int,
        on_due: "Callable[[FollowerSession], None]",
        *,
        uses_topic_ids: bool,
    ) -> None:
        """`on_due`: called when there may be records for a parked request, once until it ran."""
        self.replica_id = request.replica_id
        self.replica_epoch = request.replica_epoch
        self.session_id = session_id
        self.epoch = INITIAL_EPOCH + 1
        self.uses_topic_ids = uses_topic_ids
        self.partitions: dict[tuple[TopicKey, int], FollowedPartition] = {}
        self.changed: dict[FollowedPartition, None] = {}
        self.parked: WaitingFetch | None = None
        self.wait: Deadline | None = None
        self.is_due = False
        self.has_more = False
        self._on_due = on_due
        self.answered_ms = float("-inf")
        self.fetched_ms = float("-inf")
        self.confirmed_ms = float("-inf")

    def update(self, request: "FetchRequest", now_ms: float) -> None:
        """Apply what a request lists, and look at it."""
        self.fetched_ms = now_ms
        # It names the epoch that the last answer has made: its follower had that when it sent it.
        self.confirmed_ms = self.answered_ms
        partitions, changed = self.partitions, self.changed
        for topic in request.topics:
            key: TopicKey = topic.topic_id if self.uses_topic_ids else topic.name or ""
            for wanted in topic.partitions:
                known = partitions.get((key, wanted.partition))
                if known is None:
                    known = FollowedPartition(self, key, wanted)
                    partitions[(key, wanted.partition)] = known
                else:
                    known.list(wanted)
                changed[known] = None
        for forgotten, indexes in request.forgotten:
            for index in indexes:
                gone = partitions.pop((forgotten, index), None)
                if gone is not None:
                    gone.leave()
                    changed.pop(gone, None)

    def changed_at(self, followed: FollowedPartition, *, has_records: bool) -> None:
        """See `FollowsChanges`."""
        self.changed[followed] = None
        followed.is_marked = True
        if not has_records:
            return
        if self.parked is None:
            self.has_more = True
        elif not self.is_due:
            self.is_due = True
            self._on_due(self)

    def put_last(self, followed: FollowedPartition) -> None:
        """Look at a partition again after all others."""
        del self.changed[followed]
        self.changed[followed] = None

    def wait_until(self, due_ms: float, timer: "Timer", clock: "Clock") -> None:
        """Answer the request that is parked then with what there is."""
        if self.wait is None:
            self.wait = Deadline(timer, clock, self._wait_is_over)
        self.wait.move_to(due_ms)

    def _wait_is_over(self) -> None:
        if self.parked is not None:
            self.parked.answer()

    def stop_waiting(self) -> None:
        """No request is parked, and none is expected soon."""
        if self.wait is not None:
            self.wait.cancel()

    def end(self) -> None:
        """Nothing of it is followed any more."""
        self.stop_waiting()
        for followed in self.partitions.values():
            followed.leave()
        self.partitions = {}
        self.changed = {}


class FollowerSessions:
    """All sessions of followers of this broker."""

    __slots__ = ("_on_due", "_randomness", "_sessions")

    def __init__(self, randomness: "Randomness", on_due: Callable[[FollowerSession], None]) -> None:
        """`on_due`: as `FollowerSession` has it."""
        self._randomness = randomness
        self._on_due = on_due
        # By follower, in order of opening.
        self._sessions: dict[int, dict[int, FollowerSession]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._sessions.values()))

    @property
    def partition_count(self) -> int:
        """Partitions over all sessions."""
        return sum(
            len(session.partitions) for own in self._sessions.values() for session in own.values()
        )

    def last_fetches(self) -> "Iterator[LastFetch]":
        """The last fetch of each session."""
        for own in self._sessions.values():
            for session in own.values():
                yield LastFetch(session.replica_id, session.replica_epoch, session.fetched_ms)

    def parked_of(self, request: "FetchRequest") -> "WaitingFetch | None":
        """The request of the same session that waits still."""
        own = self._sessions.get(request.replica_id)
        found = None if own is None else own.get(request.session_id)
        return None if found is None else found.parked

    def begin(
        self, request: "FetchRequest", now_ms: float, *, uses_topic_ids: bool
    ) -> FollowerSession | ErrorCode:
        """Open or go on with the request's session; an error of the whole request otherwise."""
        session_id, epoch = request.session_id, request.session_epoch
        own = self._sessions.setdefault(request.replica_id, {})
        if epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            self._drop(own, session_id)
            kept = NO_SESSION if epoch == FINAL_EPOCH else self._make_room(own, request)
            session = FollowerSession(request, kept, self._on_due, uses_topic_ids=uses_topic_ids)
            if kept != NO_SESSION:
                own[kept] = session
            session.update(request, now_ms)
            return session
        found = own.get(session_id)
        if found is None or found.replica_epoch != request.replica_epoch:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if found.epoch != epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        if found.uses_topic_ids != uses_topic_ids:
            return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        found.epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        found.update(request, now_ms)
        if len(found.partitions) > PARTITIONS_MAX:
            self._drop(own, session_id)
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        return found

    def _make_room(self, own: dict[int, FollowerSession], request: "FetchRequest") -> int:
        """The id of a new session; those of earlier lives of the follower end."""
        for session in list(own.values()):
            if session.replica_epoch != request.replica_epoch:
                self._drop(own, session.session_id)
        while len(own) >= SESSIONS_PER_REPLICA_MAX:
            self._drop(own, next(iter(own)))
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in own:
            session_id = 1 + self._randomness.below(EPOCH_MAX - 1)
        return session_id

    @staticmethod
    def _drop(own: dict[int, FollowerSession], session_id: int) -> None:
        dropped = own.pop(session_id, None)
        if dropped is not None:
            if dropped.parked is not None:
                dropped.parked.answer()
            dropped.end()
