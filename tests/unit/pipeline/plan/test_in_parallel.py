import asyncio

import pytest

from pipeline.plan.in_parallel import in_parallel


async def test_no_more_at_a_time_than_told_and_results_in_order() -> None:
    running = most = 0

    async def work(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return number * 2

    assert await in_parallel(range(20), work, 3) == [number * 2 for number in range(20)]
    assert most == 3
    assert await in_parallel([], work) == []


async def test_the_first_error_is_what_the_caller_sees_and_the_rest_is_not_begun() -> None:
    begun = []

    async def work(number: int) -> None:
        begun.append(number)
        await asyncio.sleep(0)
        if number == 1:
            raise KeyError(number)
        await asyncio.Event().wait()

    with pytest.raises(KeyError):
        await in_parallel(range(100), work, 2)
    assert begun == [0, 1]
