"""A follower's Fetch that waits for records, `max_wait_ms` at most; one for each session.

Its time is the session's `Deadline`: most fetches are answered long before, and the next one's time
is later, so that a timer is armed now and then, not for each of them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker.replication.followers.follower_sessions import FollowerSession
    from broker.requests.reply import Body


class OpenReply(Protocol):
    """A place among a connection's answers: `broker.requests.reply.Reply`."""

    def send(self, body: "Body | None") -> None:
        """Fill it."""
        ...

    def when_abandoned(self, callback: Callable[[], None]) -> None:
        """Have the end of the connection call back."""
        ...


class Answers(Protocol):
    """Who makes the answers: `broker.replication.followers.follower_fetches.FollowerFetches`."""

    def answer_to(self, parked: "ParkedFetch", *, force: bool) -> "Body | None":
        """An answer; None while there is too little, if it is not forced."""
        ...

    def left(self, parked: "ParkedFetch") -> None:
        """It waits no longer."""
        ...


class ParkedFetch:
    """See the module.

    Attributes:
        session: Its session.
        version: Of the request.
        min_bytes: As it has asked for.
        max_bytes: Of all records of its answer.
        is_first: It is the session's first.
    """

    __slots__ = (
        "_answers",
        "_reply",
        "is_first",
        "max_bytes",
        "min_bytes",
        "session",
        "version",
    )

    def __init__(
        self,
        answers: Answers,
        reply: OpenReply,
        session: "FollowerSession",
        *,
        version: int,
        min_bytes: int,
        max_bytes: int,
        is_first: bool,
    ) -> None:
        """Wait: `reply` is its place among the connection's answers."""
        self._answers = answers
        self._reply = reply
        self.session = session
        self.version = version
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.is_first = is_first

    def try_again(self) -> None:
        """Answer if there is enough by now."""
        body = self._answers.answer_to(self, force=False)
        if body is not None:
            self._answers.left(self)
            self._reply.send(body)

    def answer(self) -> None:
        """Answer with what there is: its time is over."""
        body = self._answers.answer_to(self, force=True)
        assert body is not None
        self._answers.left(self)
        self._reply.send(body)

    def answer_with(self, body: "Body") -> None:
        """Answer with `body`: the follower has sent its next request."""
        self._answers.left(self)
        self._reply.send(body)

    def abandoned(self) -> None:
        """Its connection has ended."""
        self._answers.left(self)
        self.session.stop_waiting()
