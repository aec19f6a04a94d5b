"""A copy is stalled while it moves nothing, and only then."""

from uuid import UUID

from tests.fakes.timer import ManualTimer
from tiered.tasks.copy_watch import CopyWatch

ID = UUID(int=1)


def test_without_knowledge_of_progress_time_counts() -> None:
    timer = ManualTimer()
    watch = CopyWatch(timer.clock, timer)
    with watch.watching(ID, 1000):
        timer.advance(999)
        assert watch.stalled == 0
        timer.advance(1)
        assert (watch.stalled, watch.stalls) == (1, 1)
        timer.advance(5000)
        assert watch.stalls == 1
    assert (watch.stalled, timer.pending) == (0, 0)


def test_who_moves_is_not_stalled() -> None:
    timer = ManualTimer()
    moved = 0
    watch = CopyWatch(timer.clock, timer, lambda segment: moved)
    with watch.watching(ID, 1000):
        moved = 5
        timer.advance(250)
        timer.advance(999)
        assert watch.stalls == 0
        timer.advance(1)
        assert watch.stalled == 1, "from when it stopped, not from a look long after"
        moved += 1
        timer.advance(250)
        assert watch.stalled == 0
    watch.stalls = 0
    with watch.watching(ID, 1000):
        for _ in range(10):
            moved += 1
            timer.advance(900)
        assert watch.stalls == 0
        timer.advance(1300)
        assert watch.stalled == 1
        moved += 1
        timer.advance(250)
        assert (watch.stalled, watch.stalls) == (0, 1)
