"""Records that wait for company: when they are written at the latest."""

from collections.abc import Callable

import pytest

from broker.coordinator.deferred_records import (
    DEFER_MS,
    RETRY_MAX_MS,
    RETRY_MS,
    DeferredRecords,
)
from tests.fakes.clock import ManualClock
from tests.fakes.timer import ManualTimer


class Log:
    """Counts how often it was asked; holds back again what is `refused`."""

    def __init__(self, held: DeferredRecords) -> None:
        self.held = held
        self.writes = 0
        self.refused = 0
        self.refusals = 0
        self.error: Exception | None = None

    def write_held(self) -> None:
        self.writes += 1
        if self.error is not None:
            raise self.error
        if self.refused:
            self.refused -= 1
            self.refusals += 1
            self.held.add(self, self.refusals)


def test_time_to_wait() -> None:
    """At least DEFER_MS, less than twice that; one timer for all."""
    timer = ManualTimer(ManualClock())
    held = DeferredRecords(timer)
    early, late = Log(held), Log(held)
    held.add(early)
    timer.advance(DEFER_MS - 1)
    held.add(late)
    timer.advance(1)
    assert (early.writes, late.writes) == (0, 0)
    timer.advance(DEFER_MS)
    assert (early.writes, late.writes) == (1, 1)
    timer.advance(10 * DEFER_MS)
    assert (early.writes, late.writes) == (1, 1)
    held.add(late)
    timer.advance(2 * DEFER_MS)
    assert (early.writes, late.writes) == (1, 2)


def test_time_begins_anew_with_the_first_record_behind_others() -> None:
    """Else a log in use would write what it has just deferred in every second pass."""
    timer = ManualTimer(ManualClock())
    held = DeferredRecords(timer)
    log = Log(held)
    for _ in range(20):
        held.add(log)
        timer.advance(DEFER_MS * 0.8)
    assert log.writes == 0
    timer.advance(2 * DEFER_MS)
    assert log.writes == 1


def test_what_is_refused_is_tried_less_and_less_often() -> None:
    timer = ManualTimer(ManualClock())
    held = DeferredRecords(timer)
    log = Log(held)
    log.refused = 100
    held.add(log)
    timer.advance(2 * DEFER_MS)
    assert log.writes == 1
    for writes, delay_ms in enumerate([40, 80, 160, 320, 640, RETRY_MAX_MS, RETRY_MAX_MS], 2):
        timer.advance(delay_ms - 1)
        assert log.writes == writes - 1
        timer.advance(1)
        assert log.writes == writes
    log.refused = 0
    timer.advance(RETRY_MAX_MS)
    writes = log.writes
    timer.advance(10 * RETRY_MAX_MS)
    assert log.writes == writes


def test_what_is_refused_again_meanwhile_has_one_time() -> None:
    timer = ManualTimer(ManualClock())
    held = DeferredRecords(timer)
    log = Log(held)
    held.add(log, 1)
    held.add(log, 2)
    timer.advance(3 * RETRY_MS)
    assert log.writes == 0
    timer.advance(10 * RETRY_MS)
    assert log.writes == 1


def test_one_log_is_written_in_an_iteration() -> None:
    """Requests that have come meanwhile are served between two logs."""
    timer = ManualTimer(ManualClock())
    turns: list[Callable[[], None]] = []
    held = DeferredRecords(timer, turns.append)
    logs = [Log(held) for _ in range(3)]
    for log in logs:
        held.add(log)
    timer.advance(2 * DEFER_MS)
    assert [log.writes for log in logs] == [1, 0, 0]
    # It is asked to write what it has deferred since, behind those that were due before.
    held.add(logs[0])
    timer.advance(2 * DEFER_MS)
    assert [log.writes for log in logs] == [1, 0, 0]
    for written in ([1, 1, 0], [1, 1, 1], [2, 1, 1]):
        (turn,) = turns
        turns.clear()
        turn()
        assert [log.writes for log in logs] == written
    assert not turns


def test_a_stop_writes_what_is_due_too() -> None:
    timer = ManualTimer(ManualClock())
    turns: list[Callable[[], None]] = []
    held = DeferredRecords(timer, turns.append)
    logs = [Log(held) for _ in range(3)]
    for log in logs:
        held.add(log)
    timer.advance(2 * DEFER_MS)
    held.stop()
    assert [log.writes for log in logs] == [1, 1, 1]
    turns[0]()
    assert [log.writes for log in logs] == [1, 1, 1]


def test_a_stop_writes_all() -> None:
    timer = ManualTimer(ManualClock())
    held = DeferredRecords(timer)
    logs = [Log(held) for _ in range(3)]
    held.add(logs[0])
    timer.advance(DEFER_MS)
    held.add(logs[1])
    held.add(logs[2], 5)
    logs[0].refused = 1
    held.stop()
    assert [log.writes for log in logs] == [1, 1, 1]
    timer.advance(10 * DEFER_MS)
    assert [log.writes for log in logs] == [1, 1, 1]


@pytest.mark.parametrize("stops", [False, True])
def test_one_that_fails_harms_no_other(stops: bool, caplog: pytest.LogCaptureFixture) -> None:
    timer = ManualTimer(ManualClock())
    held = DeferredRecords(timer)
    bad, good, late = (Log(held) for _ in range(3))
    bad.error = RuntimeError("a bug")
    held.add(bad)
    held.add(good)
    timer.advance(DEFER_MS)
    held.add(late)
    if stops:
        held.stop()
    else:
        timer.advance(2 * DEFER_MS)
    assert (good.writes, late.writes) == (1, 1)
    assert "deferred records could not be appended" in caplog.text
