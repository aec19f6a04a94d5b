"""The world of each test, with either kind of snapshot store."""

from collections.abc import AsyncIterator

import pytest

from tests.contract.metadata_manager.world import World


@pytest.fixture(params=["local", "bucket"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    made = World(request.param)
    yield made
    for manager in made.managers:
        await manager.close()
