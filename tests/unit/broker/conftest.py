"""Fixtures shared by the broker's tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.unit.broker.world import World


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A router with Produce, Fetch and offsets over an empty directory."""
    made = World(tmp_path)
    yield made
    made.close()
