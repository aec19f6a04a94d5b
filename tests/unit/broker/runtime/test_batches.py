"""Some members at a time."""

import pytest

from broker.runtime.batches import PER_TURN, in_turns
from tests.fakes.timer import ManualTimer


def test_few_are_served_at_once() -> None:
    timer = ManualTimer()
    served: list[int] = []
    in_turns(timer, range(PER_TURN), served.append)
    assert served == list(range(PER_TURN))
    assert not timer.pending


def test_many_are_served_in_order_and_others_in_between() -> None:
    timer = ManualTimer()
    served: list[int] = []
    count = 2 * PER_TURN + 1
    in_turns(timer, range(count), served.append)
    assert len(served) == PER_TURN
    timer.call_later_ms(0, lambda: served.append(-1))
    timer.advance(0)
    assert served == [*range(2 * PER_TURN), -1, count - 1]


def test_nobody_is_served() -> None:
    timer = ManualTimer()
    served: list[int] = []
    in_turns(timer, [], served.append)
    assert not served
    assert not timer.pending


def test_one_that_fails_does_not_keep_later_turns_from_coming() -> None:
    timer = ManualTimer()
    served: list[int] = []

    def serve(number: int) -> None:
        if not number:
            raise RuntimeError("no")
        served.append(number)

    with pytest.raises(RuntimeError):
        in_turns(timer, range(PER_TURN + 1), serve)
    timer.advance(0)
    assert served == [PER_TURN]
