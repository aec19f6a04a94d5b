"""Waiting for offsets: settled in order, in slices, once, and as was decided when it happened."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.replicas.offset_waits import OffsetWaits
from broker.runtime.watchers import Waker
from protocol.error_codes import ErrorCode
from tests.fakes.clock import ManualClock


class Operation:
    """Notes what it is settled with."""

    def __init__(self, *, is_internal: bool = False, on_settled: Any = None) -> None:
        self.completed = False
        self.is_internal = is_internal
        self.codes: list[ErrorCode] = []
        self._on_settled = on_settled

    def settle(self, _part: Any, code: ErrorCode) -> None:
        self.codes.append(code)
        if self._on_settled is not None:
            self._on_settled()


class Loop:
    """Calls to be made in the next iteration."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], None]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.calls.append(callback)

    def turn(self) -> int:
        calls, self.calls = self.calls, []
        for call in calls:
            call()
        return len(calls)


class Waiting:
    def __init__(self) -> None:
        self.loop = Loop()
        self.clock = ManualClock()
        self.waits = OffsetWaits(Waker(self.loop.call_soon, self.clock))

    def add(self, end_offset: int, **options: Any) -> Operation:
        operation = Operation(**options)
        self.waits.add(end_offset, operation, None)
        return operation


@pytest.fixture
def w() -> Waiting:
    return Waiting()


def test_those_behind_the_offset_are_not_looked_at(w: Waiting) -> None:
    first, second, third = w.add(10), w.add(20), w.add(30)
    w.waits.reached(20)
    assert (first.codes, second.codes, third.codes) == ([ErrorCode.NONE], [ErrorCode.NONE], [])
    w.waits.reached(29)
    assert third.codes == []
    w.waits.reached(30)
    assert third.codes == [ErrorCode.NONE]
    assert len(w.waits) == 0


def test_a_retry_waits_for_its_own_offset(w: Waiting) -> None:
    """Others were appended behind the batch that it repeats."""
    later, retry = w.add(30), w.add(10)
    w.waits.reached(10)
    assert (retry.codes, later.codes) == ([ErrorCode.NONE], [])


def test_many_are_settled_in_slices(w: Waiting) -> None:
    many = [w.add(1, on_settled=lambda: w.clock.advance(0.5)) for _ in range(100)]
    w.waits.reached(1)
    assert 0 < sum(len(one.codes) for one in many) < 100
    while w.loop.turn():
        pass
    assert all(one.codes == [ErrorCode.NONE] for one in many)


def test_what_was_decided_stands_while_others_are_settled(w: Waiting) -> None:
    """The role ends, and the next begins at a lower offset, before their turn has come."""
    many = [w.add(10, on_settled=lambda: w.clock.advance(1.0)) for _ in range(10)]
    behind = w.add(11)
    w.waits.reached(10)
    w.waits.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    again = w.add(5)
    while w.loop.turn():
        pass
    assert all(one.codes == [ErrorCode.NONE] for one in many)
    assert behind.codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert again.codes == []
    w.waits.reached(5)
    assert again.codes == [ErrorCode.NONE]


def test_only_those_above_an_offset_are_lost(w: Waiting) -> None:
    """Queued records that were not written: their offsets are assigned again."""
    kept, lost = w.add(10), w.add(11)
    w.waits.fail(ErrorCode.KAFKA_STORAGE_ERROR, from_offset=10)
    assert (kept.codes, lost.codes) == ([], [ErrorCode.KAFKA_STORAGE_ERROR])
    w.waits.reached(11)
    assert kept.codes == [ErrorCode.NONE]


def test_clients_and_coordinators_end_for_different_reasons(w: Waiting) -> None:
    client, coordinator = w.add(10), w.add(10, is_internal=True)
    w.waits.fail_where(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, is_internal=False)
    assert client.codes == [ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND]
    assert coordinator.codes == []
    w.waits.fail_where(ErrorCode.NOT_LEADER_OR_FOLLOWER, is_internal=True)
    assert coordinator.codes == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_completed_ones_are_dropped(w: Waiting) -> None:
    """They time out for as long as nothing is committed, and would pile up."""
    for _ in range(1000):
        w.add(10).completed = True
    assert len(w.waits) <= 65
    live = w.add(10)
    w.waits.reached(10)
    assert live.codes == [ErrorCode.NONE]


def test_a_failure_of_one_keeps_no_other_waiting(w: Waiting) -> None:
    def fail() -> None:
        raise RuntimeError("a fault of ours")

    bad, good = w.add(10, on_settled=fail), w.add(10)
    w.waits.reached(10)
    assert (bad.codes, good.codes) == ([ErrorCode.NONE], [ErrorCode.NONE])


@given(st.data())
def test_each_is_settled_once_and_rightly(data: st.DataObject) -> None:
    """Against a list that is gone through at every event."""
    w = Waiting()
    model: list[tuple[int, Operation]] = []
    expected: dict[Operation, ErrorCode] = {}
    reached = 0
    for _ in range(data.draw(st.integers(1, 30))):
        event = data.draw(st.sampled_from(["add", "reach", "fail", "turn"]))
        if event == "add":
            end = data.draw(st.integers(reached + 1, reached + 10))
            model.append((end, w.add(end, on_settled=lambda: w.clock.advance(0.7))))
        elif event == "reach":
            reached += data.draw(st.integers(0, 5))
            w.waits.reached(reached)
            expected |= {one: ErrorCode.NONE for end, one in model if end <= reached}
            model = [(end, one) for end, one in model if end > reached]
        elif event == "fail":
            above = data.draw(st.integers(reached, reached + 10))
            w.waits.fail(ErrorCode.KAFKA_STORAGE_ERROR, from_offset=above)
            expected |= {one: ErrorCode.KAFKA_STORAGE_ERROR for end, one in model if end > above}
            model = [(end, one) for end, one in model if end <= above]
        else:
            w.loop.turn()
    while w.loop.turn():
        pass
    assert all(one.codes == [code] for one, code in expected.items())
    assert all(one.codes == [] for _, one in model)
