"""The total deadline of a call, and trying again within it."""

import asyncio

import pytest

from storage.environment.randomness import SeededRandomness
from tiered.errors import StoreDeniedError, StoreTimeoutError, StoreUnavailableError
from tiered.object_store.base import StoreDeadlines
from tiered.object_store.deadline import (
    BACKOFF_MAX_MS,
    DEADLINE_UNIT_BYTES,
    Deadline,
    NotRetriedError,
    Retry,
    total_ms,
)


def test_a_call_gets_its_time_for_every_started_64_mib() -> None:
    deadlines = StoreDeadlines(total_ms=10)
    sizes = (0, 1, DEADLINE_UNIT_BYTES, DEADLINE_UNIT_BYTES + 1, 16 * DEADLINE_UNIT_BYTES)
    assert [total_ms(deadlines, size) for size in sizes] == [10, 10, 10, 20, 160]


async def test_what_takes_too_long_is_stopped() -> None:
    stopped = False

    async def work() -> None:
        nonlocal stopped
        async with Deadline(20, "put x"):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                stopped = True
                raise

    with pytest.raises(StoreTimeoutError, match="put x: not done within 20 ms"):
        await work()
    assert stopped


async def test_cancelling_from_outside_stays_cancelling() -> None:
    async def work() -> None:
        async with Deadline(60_000, "put x"):
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_time_out_inside_is_not_ours() -> None:
    with pytest.raises(TimeoutError) as caught:
        async with Deadline(60_000, "put x"):
            raise TimeoutError("another's")
    assert not isinstance(caught.value, StoreTimeoutError)


async def test_the_clock_can_stand() -> None:
    """And goes on with what was left."""
    loop = asyncio.get_running_loop()
    async with Deadline(30, "put x") as deadline:
        deadline.pause()
        deadline.pause()
        await asyncio.sleep(0.06)
        deadline.resume()
        deadline.resume()

    async def work() -> None:
        async with Deadline(60, "put x") as deadline:
            await asyncio.sleep(0.03)
            deadline.pause()
            deadline.resume()
            await asyncio.Event().wait()

    begin = loop.time()
    with pytest.raises(StoreTimeoutError):
        await work()
    # Were it to begin anew it would be 90 ms; a busy machine may take its time.
    assert loop.time() - begin >= 0.05


class Sleeps:
    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


async def attempt(errors: list[Exception], retry: Retry) -> tuple[int, object]:
    """How often it was tried again, and what came of it."""
    again = 0

    def count() -> None:
        nonlocal again
        again += 1

    async def work() -> str:
        if errors:
            raise errors.pop(0)
        return "done"

    try:
        return again, await retry.run(work, count)
    except Exception as error:  # noqa: BLE001 - it is what the caller looks at
        return again, error


async def test_only_what_is_unavailable_is_tried_again() -> None:
    sleeps = Sleeps()
    retry = Retry(3, SeededRandomness(1), sleeps)
    down = StoreUnavailableError("down")
    assert (await attempt([down, StoreTimeoutError("late")], retry))[1] == "done"
    assert len(sleeps.seconds) == 2
    assert (await attempt([down, down, down], retry))[1] is down
    denied = StoreDeniedError("no")
    assert (await attempt([denied], retry))[1] is denied
    short = NotRetriedError("short")
    assert (await attempt([short], retry))[1] is short


async def test_waiting_is_doubled_up_to_a_bound_and_spread() -> None:
    sleeps = Sleeps()
    await attempt([StoreUnavailableError("down")] * 10, Retry(11, SeededRandomness(1), sleeps))
    bounds_ms = [min(50 << number, BACKOFF_MAX_MS) for number in range(10)]
    for seconds, bound_ms in zip(sleeps.seconds, bounds_ms, strict=True):
        assert bound_ms / 2 <= seconds * 1000 <= bound_ms
    assert (
        len(
            {
                seconds * 1000 / bound
                for seconds, bound in zip(sleeps.seconds, bounds_ms, strict=True)
            }
        )
        > 3
    )


async def test_there_is_at_least_one_attempt() -> None:
    assert await attempt([], Retry(0, SeededRandomness(1))) == (0, "done")
