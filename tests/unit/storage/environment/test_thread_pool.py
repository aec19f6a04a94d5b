"""Threads of a pool on a machine that has none left."""

import threading

import pytest

from storage.environment.thread_pool import ThreadPool


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system gives no further thread, as at a limit of memory or processes."""

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)


def test_there_is_a_thread_before_there_is_work() -> None:
    before = {thread.name for thread in threading.enumerate()}
    with ThreadPool(2, "first"):
        assert len({t.name for t in threading.enumerate()} - before) == 1


def test_work_is_done_by_the_threads_there_are(request: pytest.FixtureRequest) -> None:
    """It is queued, whatever comes of another thread: nobody may be told that it is not."""
    gate = threading.Event()
    with ThreadPool(3, "few") as pool:
        # The only thread is busy: each of these would begin another.
        first = pool.submit(gate.wait, 30)
        request.getfixturevalue("no_threads")
        others = [pool.submit(threading.get_ident) for _ in range(5)]
        gate.set()
        assert first.result(30)
        assert len({other.result(30) for other in others}) == 1


@pytest.mark.usefixtures("no_threads")
def test_a_pool_without_any_thread_is_refused() -> None:
    with pytest.raises(RuntimeError, match="can't start new thread"):
        ThreadPool(3, "none")


def test_so_many_work_at_a_time() -> None:
    together = threading.Barrier(3)
    with ThreadPool(3, "three") as pool:
        waits = [pool.submit(together.wait, 30) for _ in range(3)]
        assert sorted(wait.result(30) for wait in waits) == [0, 1, 2]
