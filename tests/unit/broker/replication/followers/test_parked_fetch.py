"""A parked fetch is answered once: when there is enough, or when its time is over."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from broker.replication.followers.follower_sessions import FollowerSession
from broker.replication.followers.parked_fetch import ParkedFetch
from protocol.hot.fetch import FetchRequest
from tests.fakes.timer import ManualTimer


class Reply:
    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def send(self, body: Any) -> None:
        self.sent.append(body)

    def when_abandoned(self, callback: Callable[[], None]) -> None:
        raise AssertionError("the caller's")


class Answers:
    def __init__(self) -> None:
        self.found: list[bytes] = []
        self.gone: list[object] = []

    def answer_to(self, parked: object, *, force: bool) -> Any:
        return b"".join(self.found) if self.found or force else None

    def left(self, parked: object) -> None:
        self.gone.append(parked)


@pytest.fixture
def p() -> SimpleNamespace:
    answers, reply = Answers(), Reply()
    request = FetchRequest(2, 500, 1, 1000, 0, 0, 0, [], [], replica_epoch=20)
    session = FollowerSession(request, 7, lambda _session: None, uses_topic_ids=True)
    timer = ManualTimer()
    session.wait_until(500.0, timer, timer.clock)
    parked = ParkedFetch(
        answers, reply, session, version=17, min_bytes=1, max_bytes=100, is_first=False
    )
    return SimpleNamespace(reply=reply, answers=answers, session=session, parked=parked)


def test_it_waits_until_there_is_enough(p: SimpleNamespace) -> None:
    p.parked.try_again()
    assert p.reply.sent == []
    p.answers.found.append(b"records")
    p.parked.try_again()
    assert (p.reply.sent, p.answers.gone) == ([b"records"], [p.parked])


def test_its_time_ends(p: SimpleNamespace) -> None:
    p.parked.answer()
    assert (p.reply.sent, p.answers.gone) == ([b""], [p.parked])


def test_another_answer_can_take_its_place(p: SimpleNamespace) -> None:
    p.answers.found.append(b"records")
    p.parked.answer_with(b"nothing")
    assert (p.reply.sent, p.answers.gone) == ([b"nothing"], [p.parked])


def test_a_connection_that_ends_ends_its_time_too(p: SimpleNamespace) -> None:
    p.parked.abandoned()
    assert (p.reply.sent, p.answers.gone) == ([], [p.parked])
    assert not p.session.wait.pending
