"""A parked fetch is answered once: when there is enough, or when its time is over."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from broker.replication.followers.parked_fetch import ParkedFetch
from tests.fakes.timer import ManualTimer


class Reply:
    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.abandoned: Callable[[], None] | None = None

    def when_abandoned(self, callback: Callable[[], None]) -> None:
        self.abandoned = callback

    def send(self, body: Any) -> None:
        self.sent.append(body)


@pytest.fixture
def p() -> SimpleNamespace:
    timer, reply = ManualTimer(), Reply()
    found: list[bytes] = []
    left: list[int] = []

    def make(force: bool) -> bytes | None:
        return b"".join(found) if found or force else None

    parked: Any = ParkedFetch(reply, timer, 500, make, lambda: left.append(1))  # type: ignore[arg-type]  # as much of a reply as it needs
    return SimpleNamespace(timer=timer, reply=reply, found=found, left=left, parked=parked)


def test_it_waits_until_there_is_enough(p: SimpleNamespace) -> None:
    p.parked.try_again()
    assert p.reply.sent == []
    p.found.append(b"records")
    p.parked.try_again()
    assert p.reply.sent == [b"records"]
    p.timer.advance(1000)
    assert (p.reply.sent, p.left) == ([b"records"], [1])


def test_its_time_ends(p: SimpleNamespace) -> None:
    p.timer.advance(499)
    assert p.reply.sent == []
    p.timer.advance(1)
    assert (p.reply.sent, p.left) == ([b""], [1])


def test_who_has_gone_is_not_answered(p: SimpleNamespace) -> None:
    p.reply.abandoned()
    p.timer.advance(1000)
    assert (p.reply.sent, p.left) == ([], [1])


def test_another_answer_can_take_its_place(p: SimpleNamespace) -> None:
    p.found.append(b"records")
    p.parked.answer_with(b"nothing")
    p.timer.advance(1000)
    assert (p.reply.sent, p.left) == ([b"nothing"], [1])
