"""Many calls, some at a time, and one answer."""

from collections.abc import Callable

from broker.groups.share.each_partition import AT_A_TIME, each_partition
from tests.fakes.timer import ManualTimer


def test_nothing_to_do() -> None:
    found: list[list[tuple[int, int]]] = []
    each_partition([], lambda item, done: done(item), found.append, ManualTimer())
    assert found == [[]]


def test_results_come_in_order_whenever_they_are_there() -> None:
    waiting: list[tuple[int, Callable[[int], None]]] = []
    found: list[list[tuple[int, int]]] = []
    each_partition(
        [3, 1, 2],
        lambda item, done: waiting.append((item, done)),
        found.append,
        ManualTimer(),
    )
    for item, done in reversed(waiting):
        assert not found
        done(item * 10)
    assert found == [[(3, 30), (1, 10), (2, 20)]]


def test_no_more_than_some_at_a_time() -> None:
    timer = ManualTimer()
    called: list[int] = []
    found: list[list[tuple[int, None]]] = []

    def call(item: int, done: Callable[[None], None]) -> None:
        called.append(item)
        done(None)

    count = 2 * AT_A_TIME + 1
    each_partition(range(count), call, found.append, timer)
    assert len(called) == AT_A_TIME
    timer.advance(0)
    timer.advance(0)
    assert len(called) == count
    assert len(found) == 1
