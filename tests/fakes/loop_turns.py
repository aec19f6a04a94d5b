"""Turns of the event loop for tests in which nothing waits for a socket, a thread or a clock."""

import asyncio
from collections.abc import Sized
from typing import cast


async def turns(most: int) -> bool:
    """Let all tasks go on, for at most so many turns, and end once none can.

    What then is to happen, happens by the test: further turns would do nothing, and a thousand of
    them take a hundredth of a second.

    Returns:
        Whether there is still one that can go on.
    """
    # What is to be called in this turn and in the next; there is no other way to ask for it.
    ready = cast("Sized", vars(asyncio.get_running_loop())["_ready"])
    for _ in range(most):
        await asyncio.sleep(0)
        if not ready:
            return False
    return True
