"""Nodes whose logs follow images."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.broker.controller import open_controller
from tests.fakes.broker.metadata_store import MemoryStore
from tests.unit.broker.replicas.logs.node import Member, Node


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
async def nodes(tmp_path: Path, store: MemoryStore) -> AsyncIterator[Any]:
    """Make a node on some directories, over the same metadata; the one before is stopped."""
    made: list[Node] = []

    async def make(*directories: str) -> Node:
        if made:
            made.pop().close()
        paths = [tmp_path / name for name in directories or ("data",)]
        made.append(
            Node(paths, await open_controller(store, remote_log_storage_system_enable=True))
        )
        return made[-1]

    yield make
    for node in made:
        node.close()


@pytest.fixture
async def node(nodes: Any) -> Node:
    """Started, with nothing in it."""
    made: Node = await nodes()
    await made.start()
    return made


@pytest.fixture
async def member(tmp_path: Path) -> AsyncIterator[Member]:
    """Not started; its directory is empty."""
    made = Member(tmp_path / "data")
    yield made
    await made.settle()
    made.close()
