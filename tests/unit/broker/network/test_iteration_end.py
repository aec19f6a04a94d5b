"""The end of a turn of the loop."""

from collections.abc import Callable

import pytest

from broker.network.iteration_end import LIMIT_MS, IterationEnd
from tests.fakes.clock import ManualClock


class Loop:
    """`call_soon`, and turns that the test takes."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.soon: list[Callable[[], None]] = []
        self.iteration_end = IterationEnd(self.soon.append, self.clock)
        self.done: list[str] = []

    def turn(self) -> None:
        soon, self.soon[:] = list(self.soon), []
        for callback in soon:
            callback()

    def note(self, text: str) -> Callable[[], None]:
        return lambda: self.done.append(text)


def test_sends_come_after_all_work_whatever_the_order() -> None:
    loop = Loop()
    loop.iteration_end.call_last(loop.note("send a"))
    loop.iteration_end.call(loop.note("append 1"))
    loop.iteration_end.call_last(loop.note("send b"))
    loop.iteration_end.call(loop.note("append 2"))
    assert len(loop.soon) == 1
    loop.turn()
    assert loop.done == ["append 1", "append 2", "send a", "send b"]
    assert loop.soon == []


def test_sends_that_work_asks_for_are_part_of_the_same_end() -> None:
    loop = Loop()
    loop.iteration_end.call(lambda: loop.iteration_end.call_last(loop.note("send")))
    loop.turn()
    assert loop.done == ["send"]
    assert loop.soon == []


def test_what_a_send_makes_possible_has_an_end_of_its_own() -> None:
    """A connection that has its answers goes on reading, and somebody gathers again."""
    loop = Loop()
    loop.iteration_end.call_last(lambda: loop.iteration_end.call(loop.note("more")))
    loop.turn()
    assert loop.done == []
    loop.turn()
    assert loop.done == ["more"]


def test_work_without_end_lets_others_have_a_turn() -> None:
    loop = Loop()
    for number in range(3):
        loop.iteration_end.call(lambda: loop.clock.advance(LIMIT_MS))
        loop.iteration_end.call(loop.note(f"work {number}"))
    loop.iteration_end.call_last(loop.note("send"))
    loop.turn()
    assert loop.done == ["send"]
    for _ in range(3):
        loop.turn()
    assert loop.done == ["send", "work 0", "work 1", "work 2"]
    assert loop.soon == []


def test_one_that_fails_does_not_harm_the_others(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    loop = Loop()
    loop.iteration_end.call(fail)
    loop.iteration_end.call(loop.note("work"))
    loop.iteration_end.call_last(fail)
    loop.iteration_end.call_last(loop.note("send"))
    loop.turn()
    assert loop.done == ["work", "send"]
    assert caplog.text.count("work at the end of an event loop iteration failed") == 2
