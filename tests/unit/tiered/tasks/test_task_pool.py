"""Places, order, resizing, and who hears of a job's end."""

import asyncio

from tiered.tasks.task_pool import TaskPool


class Jobs:
    def __init__(self, pool: TaskPool) -> None:
        self.pool = pool
        self.started: list[int] = []
        self.ended: list[tuple[int, str]] = []
        self.gates: dict[int, asyncio.Event] = {}

    def submit(self, number: int, error: Exception | None = None):  # type: ignore[no-untyped-def]  # a job
        gate = self.gates[number] = asyncio.Event()

        async def work() -> None:
            self.started.append(number)
            await gate.wait()
            if error is not None:
                raise error

        def done(found: BaseException | None) -> None:
            self.ended.append((number, type(found).__name__))

        return self.pool.submit(work, done)


async def _turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_at_most_so_many_at_a_time_in_order() -> None:
    pool = TaskPool("copier", 2)
    jobs = Jobs(pool)
    for number in range(4):
        jobs.submit(number)
    await _turn()
    assert (jobs.started, pool.running, pool.queued, pool.idle_ratio) == ([0, 1], 2, 2, 0.0)
    jobs.gates[1].set()
    await _turn()
    assert jobs.started == [0, 1, 2]
    pool.resize(4)
    await _turn()
    assert (jobs.started, pool.idle_ratio) == ([0, 1, 2, 3], 0.25)
    pool.resize(1)
    jobs.submit(4)
    for number in (0, 2):
        jobs.gates[number].set()
    await _turn()
    assert pool.queued == 1
    await pool.close()
    assert [kind for _, kind in jobs.ended].count("CancelledError") == 2


async def test_tells_errors_and_cancellations_once() -> None:
    pool = TaskPool("expiration", 1)
    jobs = Jobs(pool)
    jobs.submit(0, KeyError())
    waiting = jobs.submit(1)
    await _turn()
    waiting.cancel()
    waiting.cancel()
    assert jobs.ended == [(1, "CancelledError")]
    jobs.gates[0].set()
    await _turn()
    assert jobs.ended == [(1, "CancelledError"), (0, "KeyError")]
    running = jobs.submit(2)
    await _turn()
    running.cancel()
    await _turn()
    assert jobs.ended[-1] == (2, "CancelledError")
    assert jobs.started == [0, 2]
    await pool.close()
    jobs.submit(3)
    await _turn()
    assert jobs.ended[-1] == (3, "CancelledError")
    assert 3 not in jobs.started
