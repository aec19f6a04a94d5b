"""Of those who work in slices, one works per turn of the loop, the longest waiting first."""

import asyncio
from collections.abc import Iterator

from tiered.slicer import STEPS_PER_SLICE, Slicer


async def test_one_per_turn_in_order() -> None:
    slicer = Slicer()
    done: list[int] = []

    async def work(number: int) -> None:
        for _ in range(3):
            await slicer.pause()
            done.append(number)

    tasks = [asyncio.ensure_future(work(number)) for number in range(4)]
    per_turn = []
    while not all(task.done() for task in tasks):
        before = len(done)
        await asyncio.sleep(0)
        per_turn.append(len(done) - before)
    assert max(per_turn) == 1
    assert done == [0, 1, 2, 3] * 3


async def test_a_pause_comes_after_a_slice_of_all_together() -> None:
    slicer = Slicer()
    await slicer.pause()
    others = 0

    async def other() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    task = asyncio.ensure_future(other())
    await slicer.worked(STEPS_PER_SLICE - 1)
    assert others == 0
    await slicer.worked(1)
    assert others > 0
    task.cancel()


async def test_steps_are_gone_through() -> None:
    done: list[int] = []
    slicer = Slicer()
    pauses = 0

    async def count() -> None:
        nonlocal pauses
        while True:
            pauses += 1
            await asyncio.sleep(0)

    def steps() -> Iterator[None]:
        for step in range(5 * STEPS_PER_SLICE):
            done.append(step)
            yield

    task = asyncio.ensure_future(count())
    await slicer.go_through(steps())
    assert done == list(range(5 * STEPS_PER_SLICE))
    assert pauses >= 4
    task.cancel()


async def test_who_is_cancelled_keeps_nobody_waiting() -> None:
    slicer = Slicer()
    first = asyncio.ensure_future(slicer.pause())
    second = asyncio.ensure_future(slicer.pause())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait_for(second, 30)
