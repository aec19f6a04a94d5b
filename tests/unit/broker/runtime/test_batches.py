"""Some members at a time."""

import pytest

from broker.runtime.batches import BATCH_SIZE, in_batches
from tests.fakes.timer import ManualTimer


def test_few_are_served_at_once() -> None:
    timer = ManualTimer()
    served: list[int] = []
    in_batches(timer, range(BATCH_SIZE), served.append)
    assert served == list(range(BATCH_SIZE))
    assert not timer.pending


def test_many_are_served_in_order_and_others_in_between() -> None:
    timer = ManualTimer()
    served: list[int] = []
    count = 2 * BATCH_SIZE + 1
    in_batches(timer, range(count), served.append)
    assert len(served) == BATCH_SIZE
    timer.call_later_ms(0, lambda: served.append(-1))
    timer.advance(0)
    assert served == [*range(2 * BATCH_SIZE), -1, count - 1]


def test_nobody_is_served() -> None:
    timer = ManualTimer()
    served: list[int] = []
    in_batches(timer, [], served.append)
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
        in_batches(timer, range(BATCH_SIZE + 1), serve)
    timer.advance(0)
    assert served == [BATCH_SIZE]
