"""Work on many partitions does not hold the loop."""

from collections.abc import Callable
from typing import Any

from broker.replicas.partition_queue import SLICE_MS, PartitionQueue
from tests.fakes.clock import ManualClock


class Bench:
    """A queue whose work takes time of a manual clock; the loop's next turns are the test's."""

    def __init__(self, cost_ms: float) -> None:
        self.clock = ManualClock()
        self.turns: list[Callable[[], None]] = []
        self.done: list[object] = []
        self.cost_ms = cost_ms
        self.queue = PartitionQueue(self.work, self.turns.append, self.clock)

    def work(self, partition: Any) -> None:
        self.done.append(partition)
        self.clock.advance(self.cost_ms)

    def add(self, *partitions: Any) -> None:
        for partition in partitions:
            self.queue.add(partition)

    def discard(self, partition: Any) -> None:
        self.queue.discard(partition)


def test_a_slice_is_done_at_once_and_the_rest_in_later_turns() -> None:
    bench = Bench(cost_ms=SLICE_MS / 2)
    bench.add(*range(5))
    bench.queue.run()
    assert (bench.done, len(bench.queue), len(bench.turns)) == ([0, 1], 3, 1)
    bench.turns.pop()()
    assert bench.done == [0, 1, 2, 3]
    bench.turns.pop()()
    assert (bench.done, len(bench.queue), bench.turns) == ([0, 1, 2, 3, 4], 0, [])


def test_one_that_waits_is_not_added_again() -> None:
    """There are never more than partitions here; it keeps its place."""
    bench = Bench(cost_ms=SLICE_MS)
    bench.add("a", "b", "a")
    bench.queue.run()
    bench.add("b")
    bench.turns.pop()()
    assert (bench.done, bench.turns) == (["a", "b"], [])


def test_one_turn_is_asked_for_at_a_time() -> None:
    bench = Bench(cost_ms=SLICE_MS)
    bench.add(*range(4))
    bench.queue.run()
    bench.queue.run()
    assert (bench.done, len(bench.turns)) == ([0, 1], 1)


def test_what_is_discarded_is_not_worked_on() -> None:
    bench = Bench(cost_ms=0)
    bench.add("a", "b")
    for partition in ("a", "not there"):
        bench.discard(partition)
    bench.queue.run()
    assert bench.done == ["b"]
