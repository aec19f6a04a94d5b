"""Look-ups are bounded, counted and given up when the broker stops."""

import asyncio

import pytest

from broker.replicas.lookups import Lookups
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode


async def test_beyond_the_capacity_clients_are_told_to_come_back() -> None:
    lookups = Lookups(capacity=1)
    release = asyncio.Event()

    async def wait() -> int:
        await release.wait()
        return 7

    first = lookups.start(wait())
    with pytest.raises(ApiError) as caught:
        await lookups.start(wait())
    assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
    assert (lookups.running, lookups.refused) == (1, 1)
    release.set()
    assert await first == 7
    await asyncio.sleep(0)
    assert lookups.running == 0
    assert await lookups.start(wait()) == 7


async def test_stop_gives_up_what_is_under_way() -> None:
    lookups = Lookups()
    task = lookups.start(asyncio.Event().wait())
    await lookups.stop()
    assert task.cancelled()
    await lookups.stop()
