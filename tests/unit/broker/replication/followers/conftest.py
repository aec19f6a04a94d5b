"""A world with followers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.broker.replication.followers.follower_world import FollowerWorld


@pytest.fixture
async def f(tmp_path: Path) -> AsyncIterator[FollowerWorld]:
    made = FollowerWorld(tmp_path)
    yield made
    made.close()
