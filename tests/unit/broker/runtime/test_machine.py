"""A worker does one thing after the other, in a thread of its own, and ends when it is closed."""

import threading
import time
from functools import partial
from pathlib import Path

import pytest

from broker.runtime.machine import LOCAL_MACHINE, can_start_threads
from storage.manager.log_jobs import CLOSING_THREADS


def test_a_worker_works_in_order_beside_its_caller() -> None:
    done: list[tuple[int, int]] = []
    gate = threading.Event()

    def work(number: int) -> None:
        assert gate.wait(30)
        done.append((number, threading.get_ident()))

    worker = LOCAL_MACHINE.worker(work, "w")
    for number in range(5):
        worker.put(number)
    assert done == []
    gate.set()
    worker.close()
    assert [number for number, _ in done] == [0, 1, 2, 3, 4]
    assert len({thread for _, thread in done} - {threading.get_ident()}) == 1


def test_a_worker_keeps_nothing_it_has_worked_on() -> None:
    """What a ticket holds, a whole frame, must not live until the next one comes."""

    class Item:
        def __del__(self) -> None:
            gone.set()

    gone = threading.Event()

    def forget(_item: Item) -> None:
        pass

    worker = LOCAL_MACHINE.worker(forget, "w")
    worker.put(Item())
    assert gone.wait(30)
    worker.close()


def test_a_pool_has_so_many_threads() -> None:
    together = threading.Barrier(3)
    with LOCAL_MACHINE.pool(3, "p") as pool:
        waits = [pool.submit(together.wait, 30) for _ in range(3)]
        assert sorted(wait.result() for wait in waits) == [0, 1, 2]


def test_jobs_run_side_by_side() -> None:
    together = threading.Barrier(CLOSING_THREADS)
    LOCAL_MACHINE.run_all([partial(_wait, together)] * CLOSING_THREADS)

    def fail() -> None:
        raise ValueError("one of them")

    with pytest.raises(ValueError, match="one of them"):
        LOCAL_MACHINE.run_all([fail])


def _wait(together: threading.Barrier) -> None:
    together.wait(30)


def test_the_kernels_figures(tmp_path: Path) -> None:
    room = LOCAL_MACHINE.dirty_room(str(tmp_path))()
    assert room is None or room >= 0
    before_ms = LOCAL_MACHINE.cpu_wait_ms()
    time.sleep(0)
    assert LOCAL_MACHINE.cpu_wait_ms() >= before_ms >= 0


def test_threads_are_tried_at_the_same_time_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on processes is met by one more than there may be, not by one after the other."""
    limit = threading.active_count() + 3

    class Limited(threading.Thread):
        def start(self) -> None:
            if threading.active_count() >= limit:
                raise RuntimeError("can't start new thread")
            super().start()

    monkeypatch.setattr(threading, "Thread", Limited)
    assert can_start_threads(3)
    assert not can_start_threads(4)
    assert threading.active_count() == limit - 3
