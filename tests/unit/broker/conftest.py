"""Fixtures shared by the broker's tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from protocol.hot import produce
from tests.code_path import CODE
from tests.unit.broker.plain_produce import read_plain_produce
from tests.unit.broker.world import World


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    """A router with Produce, Fetch and offsets over an empty directory."""
    made = World(tmp_path)
    yield made
    made.close()


@pytest.fixture(params=["general"] if CODE.modules else ["general", "plain"])
def produce_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python both ways: of most requests compiled code knows at once that they are plain."""
    if request.param == "plain":
        monkeypatch.setattr(produce, "_read_plain_produce", read_plain_produce)
