"""Whose turn it is."""

from hypothesis import given
from hypothesis import strategies as st

from tiered.cache.fair_queue import Client, FairQueue

A, B, C = ("User:a", "1"), ("User:b", "1"), ("User:b", "2")


class _Job:
    def __init__(self, queue: FairQueue, name: str) -> None:
        self.queue = queue
        self.name = name
        self.started = False
        self.was_refused = False

    def start(self) -> None:
        assert not self.started
        assert not self.was_refused
        self.started = True

    def refused(self) -> None:
        self.was_refused = True

    def finish(self) -> None:
        assert self.started
        self.queue.done(self)


def _queue(running: int = 1, waiting: int = 10) -> FairQueue:
    return FairQueue(running, waiting)


def _submit(queue: FairQueue, name: str, client: Client, *, prefetch: bool = False) -> _Job:
    job = _Job(queue, name)
    assert queue.submit(job, client, prefetch=prefetch)
    return job


def _order(queue: FairQueue, jobs: list[_Job]) -> list[str]:
    """Finish what runs until nothing does; the order of starting."""
    order = []
    left = list(jobs)
    while left:
        job = next(job for job in left if job.started)
        left.remove(job)
        order.append(job.name)
        job.finish()
    return order


def test_clients_take_turns() -> None:
    queue = _queue()
    jobs = [_submit(queue, f"a{n}", A) for n in range(4)]
    jobs += [_submit(queue, "b0", B), _submit(queue, "c0", C), _submit(queue, "b1", B)]
    assert _order(queue, jobs) == ["a0", "a1", "b0", "c0", "a2", "b1", "a3"]
    assert queue.running == queue.waiting == 0


def test_prefetches_come_after_everybody_who_waits() -> None:
    queue = _queue()
    jobs = [_submit(queue, "now", A)]
    jobs += [_submit(queue, "ahead", A, prefetch=True), _submit(queue, "waits", B)]
    assert _order(queue, jobs) == ["now", "waits", "ahead"]


def test_prefetches_leave_a_place_free() -> None:
    queue = _queue(running=4)
    ahead = [_submit(queue, f"p{n}", A, prefetch=True) for n in range(4)]
    assert [job.started for job in ahead] == [True, True, True, False]
    assert queue.running_prefetches == 3
    assert _submit(queue, "demand", B).started
    assert len(queue._prefetches) == 1


def test_a_promoted_prefetch_is_a_demand() -> None:
    queue = _queue()
    running = _submit(queue, "running", A)
    ahead = _submit(queue, "ahead", A, prefetch=True)
    queue.promote(ahead, B)
    assert (queue.waiting, len(queue._prefetches)) == (1, 0)
    queue.promote(ahead, B)
    running.finish()
    assert ahead.started


def test_a_running_prefetch_that_is_promoted_frees_its_share() -> None:
    queue = _queue(running=2)
    first = _submit(queue, "first", A, prefetch=True)
    second = _submit(queue, "second", A, prefetch=True)
    assert not second.started
    queue.promote(first, B)
    assert second.started


def test_too_many_are_refused() -> None:
    queue = _queue(running=1, waiting=1)
    _submit(queue, "runs", A)
    _submit(queue, "waits", A)
    assert not queue.submit(_Job(queue, "late"), A)
    assert not queue.submit(_Job(queue, "other"), B), "one against one: who came first stays"
    assert queue.rejected == 2
    assert queue.submit(_Job(queue, "ahead"), A, prefetch=True)
    assert not queue.submit(_Job(queue, "ahead"), A, prefetch=True)
    assert queue.dropped_prefetches == 1


def test_one_client_cannot_shut_out_the_others() -> None:
    queue = _queue(running=1, waiting=3)
    _submit(queue, "runs", A)
    waiting = [_submit(queue, f"a{n}", A) for n in range(3)]
    newcomer = _submit(queue, "b0", B)
    assert [job.was_refused for job in waiting] == [False, False, True]
    assert queue.waiting == 3
    assert not newcomer.was_refused


def test_without_a_line_only_free_places_count() -> None:
    queue = _queue(running=1, waiting=0)
    runs = _submit(queue, "runs", A)
    assert not queue.submit(_Job(queue, "late"), B)
    runs.finish()
    assert _submit(queue, "next", B).started


def test_who_is_withdrawn_never_starts() -> None:
    queue = _queue()
    runs = _submit(queue, "runs", A)
    waits = _submit(queue, "waits", A)
    assert queue.withdraw(waits)
    assert not queue.withdraw(waits)
    assert not queue.withdraw(runs)
    runs.finish()
    assert not waits.started


def test_more_places_start_more_at_once() -> None:
    queue = _queue()
    jobs = [_submit(queue, str(n), A) for n in range(4)]
    queue.resize(3, 10)
    assert [job.started for job in jobs] == [True, True, True, False]
    queue.resize(1, 10)
    assert queue.idle_ratio() == 0.0


def test_idle_is_the_share_of_free_places() -> None:
    queue = FairQueue(2, 10)
    first, second = _submit(queue, "1", A), _submit(queue, "2", A)
    assert queue.idle_ratio() == 0.0
    first.finish()
    assert queue.idle_ratio() == 0.5
    second.finish()
    assert queue.idle_ratio() == 1.0


@given(
    st.integers(1, 4),
    st.integers(0, 5),
    st.lists(st.tuples(st.sampled_from(["submit", "ahead", "finish", "leave"]), st.integers(0, 9))),
)
def test_limits_hold_whatever_comes(
    running: int, waiting: int, steps: list[tuple[str, int]]
) -> None:
    queue = _queue(running, waiting)
    alive: list[_Job] = []
    for step, number in steps:
        if step in ("submit", "ahead"):
            job = _Job(queue, str(number))
            if queue.submit(job, (str(number % 3), ""), prefetch=step == "ahead"):
                alive.append(job)
        elif step == "finish":
            started = [job for job in alive if job.started]
            if started:
                job = started[number % len(started)]
                alive.remove(job)
                job.finish()
        elif alive:
            job = alive[number % len(alive)]
            if queue.withdraw(job):
                alive.remove(job)
        alive = [job for job in alive if not job.was_refused]
        assert queue.running <= running
        assert queue.waiting <= waiting
        assert len(queue._prefetches) <= waiting
        assert queue.running == sum(job.started for job in alive)
        assert queue.running + queue.waiting + len(queue._prefetches) == len(alive)
        if queue.waiting:
            assert queue.running == running
    for job in [job for job in alive if job.started]:
        job.finish()
