"""Slices: planning lets the loop turn."""

import asyncio

from broker.controller.active.slices import SLICE_MS, Slices
from tests.fakes.clock import ManualClock


async def test_the_loop_turns_only_when_a_slice_is_used_up() -> None:
    clock = ManualClock()
    turns: list[str] = []

    async def other() -> None:
        turns.append("other")

    slices = Slices(clock)
    task = asyncio.ensure_future(other())
    await slices.turn()
    assert not turns
    clock.advance(SLICE_MS)
    assert slices.is_over
    await slices.turn()
    assert turns
    assert not slices.is_over
    await task
