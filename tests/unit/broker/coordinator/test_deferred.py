"""Calls that wait for a shard: each ends once."""

import pytest

from broker.coordinator import deferred
from broker.coordinator.deferred import DeferredCalls
from protocol.error_codes import ErrorCode as E
from tests.fakes.timer import ManualTimer


class Calls:
    def __init__(self) -> None:
        self.timer = ManualTimer()
        self.calls: DeferredCalls[str] = DeferredCalls(self.timer, 100)
        self.ends: list[object] = []

    def wait(self, partition: int, name: str) -> None:
        self.calls.wait(
            partition,
            lambda shard: self.ends.append((name, shard)),
            lambda code: self.ends.append((name, code)),
        )


@pytest.fixture
def c() -> Calls:
    return Calls()


def test_served_in_order_and_once(c: Calls) -> None:
    for name in "ab":
        c.wait(0, name)
    c.wait(1, "other")
    assert (len(c.calls), c.calls.partitions) == (3, [0, 1])
    c.calls.serve(0, "shard")
    c.calls.serve(0, "again")
    c.calls.refuse(0, E.NOT_COORDINATOR)
    assert c.ends == [("a", "shard"), ("b", "shard")]
    assert (len(c.calls), c.timer.pending) == (1, 1)


def test_refused(c: Calls) -> None:
    c.wait(0, "a")
    c.calls.refuse(0, E.NOT_COORDINATOR)
    assert c.ends == [("a", E.NOT_COORDINATOR)]
    assert (len(c.calls), c.timer.pending) == (0, 0)


def test_too_long(c: Calls) -> None:
    c.wait(0, "a")
    c.timer.advance(50)
    c.wait(0, "b")
    c.timer.advance(50)
    assert c.ends == [("a", E.COORDINATOR_NOT_AVAILABLE)]
    c.calls.serve(0, "shard")
    assert c.ends[1:] == [("b", "shard")]
    assert c.calls.partitions == []


def test_bounded(c: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred, "DEFERRED_MAX", 2)
    for name in "abc":
        c.wait(0, name)
    assert c.ends == [("c", E.COORDINATOR_NOT_AVAILABLE)]
    c.timer.advance(100)
    c.wait(0, "d")
    assert len(c.calls) == 1, "room again"


def test_one_that_fails_keeps_no_other_from_its_turn(
    c: Calls, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("bug")

    c.calls.wait(0, fail, fail)
    c.wait(0, "a")
    c.calls.serve(0, "shard")
    assert c.ends == [("a", "shard")]
    c.calls.wait(0, fail, fail)
    c.wait(0, "b")
    c.calls.refuse(0, E.NOT_COORDINATOR)
    assert c.ends[1:] == [("b", E.NOT_COORDINATOR)]
    assert "request that waited for its coordinator failed partition=0" in caplog.text
    assert (
        "request that waited for its coordinator could not be refused code=NOT_COORDINATOR"
        in caplog.text
    )


def test_who_waits_again_waits_for_the_next_shard(c: Calls) -> None:
    c.calls.wait(0, lambda _: c.wait(0, "again"), lambda _: None)
    c.calls.serve(0, "first")
    assert c.ends == []
    c.calls.serve(0, "second")
    assert c.ends == [("again", "second")]
