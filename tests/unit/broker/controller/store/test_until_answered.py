"""A start waits for a store that does not answer, and not for one that refuses."""

import asyncio

import pytest

from broker.controller.store.metadata_store import (
    OutcomeUnknownError,
    StoreDeniedError,
    StoreUnavailableError,
)
from broker.controller.store.until_answered import TRY_AGAIN_MS, until_answered
from tests.fakes.timer import ManualTimer


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_step_is_repeated_until_it_is_answered() -> None:
    timer = ManualTimer()
    errors = [StoreUnavailableError("away"), OutcomeUnknownError("late")]
    said: list[str] = []

    async def step() -> int:
        if errors:
            raise errors.pop(0)
        return 7

    task = asyncio.ensure_future(until_answered(step, timer, what="the store", waiting=said.append))
    for reason in ("waiting for the store: away", "waiting for the store: late"):
        await turns()
        assert said[-1] == reason
        timer.advance(TRY_AGAIN_MS - 1)
        await turns()
        assert said[-1] == reason
        timer.advance(1)
    assert await task == 7
    assert said[-1] == ""


async def test_what_the_store_refuses_is_not_waited_for() -> None:
    async def step() -> None:
        raise StoreDeniedError("no")

    with pytest.raises(StoreDeniedError):
        await until_answered(step, ManualTimer(), what="the store", waiting=lambda _: None)
