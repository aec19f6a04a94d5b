"""The metadata topic of a cluster, for its tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.broker.remote.leader_world import LeaderWorld


@pytest.fixture
async def w(tmp_path: Path) -> AsyncIterator[LeaderWorld]:
    made = LeaderWorld(tmp_path)
    yield made
    made.close()
