"""A fetch that waits for a disk: looks again when all is read, and not longer than it may."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from broker.replicas.cold_reads import ColdReads
from broker.replicas.delayed_cold_fetch import HELD_BACK_MAX_MS, DelayedColdFetch, Missing
from tests.fakes.timer import ManualTimer
from tests.unit.broker.replicas.test_cold_reads import HandDisk


def partition(directory: str) -> Any:
    return SimpleNamespace(log=SimpleNamespace(directory=f"{directory}/t-0"))


class Fetch:
    """One parked fetch whose looks find what `rounds` says; notes how it ended."""

    def __init__(self, *rounds: Sequence[Missing], has_something: bool = False) -> None:
        self.disks = {"/a": HandDisk(), "/b": HandDisk()}
        self.timer = ManualTimer()
        self.rounds = list(rounds)
        self.has_something = has_something
        self.found: list[dict[int, object]] = []
        self.ended: list[bool] = []
        self.gone: set[int] = set()
        reads = ColdReads(self.disks.__getitem__)  # type: ignore[arg-type]  # a part of it
        self.reads = reads
        self.operation = DelayedColdFetch(
            self.rounds.pop(0),
            reads,
            lambda one: id(one) not in self.gone,
            self.look,
            self.ended.append,
        )
        self.operation.begin(self.timer, HELD_BACK_MAX_MS)

    def look(self, operation: DelayedColdFetch) -> tuple[Sequence[Missing], bool]:
        self.found.append({place: dict(kept._kept) for place, kept in operation.found.items()})
        return (self.rounds.pop(0) if self.rounds else ()), self.has_something


def missing(place: int, directory: str, key: str, work: Callable[[], object] = int) -> Missing:
    return Missing(place, partition(directory), key, work)


def test_it_looks_again_when_all_of_a_round_is_read() -> None:
    """One read of a directory at a time, directories side by side; then the next round."""
    fetch = Fetch(
        [missing(0, "/a", "x"), missing(1, "/a", "y"), missing(2, "/b", "z")],
        [missing(0, "/a", "later")],
    )
    assert [len(disk.waiting) for disk in fetch.disks.values()] == [1, 1]
    fetch.disks["/b"].run()
    fetch.disks["/a"].step()
    assert fetch.found == []
    fetch.disks["/a"].step()
    assert [set(found) for found in fetch.found] == [{0, 1, 2}]
    assert fetch.ended == []
    fetch.disks["/a"].step()
    assert fetch.ended == [False]
    assert fetch.operation.found == {}


@pytest.mark.parametrize("has_something", [False, True])
def test_records_are_held_back_no_longer_than_they_may(has_something: bool) -> None:
    """Without records there is nothing to tell, and it goes on waiting."""
    fetch = Fetch([missing(0, "/a", "x")], has_something=has_something)
    fetch.timer.advance(HELD_BACK_MAX_MS - 10)
    assert fetch.ended == []
    fetch.timer.advance(20)
    assert fetch.ended == ([True] if has_something else [])
    fetch.disks["/a"].run()
    assert fetch.ended == ([True] if has_something else [False])


def test_late_records_of_a_fast_directory_go_out_at_once() -> None:
    """The half second is over already when they come."""
    fetch = Fetch([missing(0, "/a", "x"), missing(1, "/b", "y")])
    fetch.timer.advance(HELD_BACK_MAX_MS + 10)
    fetch.has_something = True
    fetch.disks["/b"].run()
    assert fetch.ended == [True]
    fetch.disks["/a"].run()
    assert fetch.ended == [True]


def test_a_partition_that_goes_ends_it() -> None:
    """An append to one is no reason to look."""
    fetch = Fetch([missing(0, "/a", "x")])
    assert fetch.operation.try_complete() is False
    fetch.gone.add(id(fetch.operation.partitions[0]))
    assert fetch.operation.try_complete() is True
    assert fetch.ended == [True]


def test_whose_client_has_gone_reads_nothing_more() -> None:
    fetch = Fetch([missing(0, "/a", "x"), missing(1, "/a", "y")])
    fetch.operation.abandon()
    fetch.disks["/a"].run()
    fetch.timer.advance(HELD_BACK_MAX_MS + 10)
    assert (fetch.ended, fetch.found) == ([], [])
    assert fetch.reads.waiting == fetch.reads.running == 0


def test_where_too_many_wait_it_waits_for_its_time() -> None:
    """Answering at once would bring the client back at once."""
    fetch = Fetch([missing(0, "/a", "x")])
    fetch.reads.capacity = 0
    second = DelayedColdFetch(
        [missing(0, "/a", "other")],
        fetch.reads,
        lambda _one: True,
        fetch.look,
        fetch.ended.append,
    )
    second.begin(fetch.timer, HELD_BACK_MAX_MS)
    assert fetch.reads.refused == 1
    assert fetch.ended == []
    second.complete(expired=True)
    assert fetch.ended == [True]
