"""A bounded amount: never more than all of it, nobody overtakes, nothing is lost."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tiered.worker.turns import settled
from tiered.errors import QueueFullError
from tiered.worker.budget import Budget


async def test_waits_for_its_turn_in_order() -> None:
    budget = Budget("bytes", 10, waiting_max=10)
    first = await budget.take(6)
    order: list[str] = []

    async def use(name: str, share: int) -> None:
        async with budget.share(share):
            order.append(name)

    large = asyncio.create_task(use("large", 8))
    await settled()
    small = asyncio.create_task(use("small", 1))
    await settled()
    assert (order, budget.waiting) == ([], 2)
    budget.give_back(first)
    await asyncio.gather(large, small)
    assert order == ["large", "small"]
    assert budget.statistics() == {
        "size": 10,
        "taken": 0,
        "taken_max": 9,
        "waiting": 0,
        "waited": 2,
        "refused": 0,
    }


async def test_more_than_all_of_it_runs_alone() -> None:
    budget = Budget("bytes", 10, waiting_max=1)
    assert await budget.take(99) == 10
    waiting = asyncio.create_task(budget.take(1))
    await settled()
    assert not waiting.done()
    budget.give_back(10)
    assert await waiting == 1


async def test_queue_is_bounded_and_counted() -> None:
    budget = Budget("slots", 1, waiting_max=1)
    await budget.take(1)
    waiting = asyncio.create_task(budget.take(1))
    await settled()
    with pytest.raises(QueueFullError, match="1 calls wait for slots"):
        await budget.take(1)
    assert budget.refused == 1
    budget.give_back(1)
    await waiting


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("take"), st.integers(1, 6)),
            st.tuples(st.sampled_from(["give", "cancel", "turn"]), st.integers(0, 9)),
        ),
        max_size=40,
    )
)
def test_any_sequence(steps: list[tuple[str, int]]) -> None:
    """Takers, cancelled ones among them: what was given back is all there again."""

    async def run() -> None:
        budget = Budget("b", 5, waiting_max=4)
        tasks: list[asyncio.Task[int]] = []
        held: list[int] = []

        def collect() -> None:
            for task in [task for task in tasks if task.done()]:
                tasks.remove(task)
                if not task.cancelled() and task.exception() is None:
                    held.append(task.result())

        for what, number in steps:
            if what == "take":
                tasks.append(asyncio.create_task(budget.take(number)))
            elif what == "give" and held:
                budget.give_back(held.pop(number % len(held)))
            elif what == "cancel" and tasks:
                tasks[number % len(tasks)].cancel()
            elif what == "turn":
                await settled(3)
                collect()
                assert sum(held) == budget.taken
            assert 0 <= budget.taken <= 5
        while tasks or held:
            await settled(3)
            collect()
            for share in held:
                budget.give_back(share)
            held.clear()
        assert (budget.taken, budget.waiting) == (0, 0)

    asyncio.run(run())
