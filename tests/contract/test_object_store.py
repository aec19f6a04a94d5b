"""One suite for every object store: in memory, in a directory, in S3."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from storage.clock import SystemClock
from storage.filesystem import LocalFilesystem
from storage.randomness import SeededRandomness
from tests.contract.object_store_suite import CHECKS, Check
from tests.fakes.clock import ManualClock
from tests.fakes.executor import InlineExecutor
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.object_store import MemoryObjectStore
from tiered.object_store.base import ObjectStore
from tiered.object_store.filesystem import FilesystemObjectStore


def memory_store(_: Path) -> ObjectStore:
    return MemoryObjectStore(ManualClock())


def directory_store(tmp_path: Path) -> ObjectStore:
    return FilesystemObjectStore(
        LocalFilesystem(), str(tmp_path / "objects"), SystemClock(), SeededRandomness(1)
    )


def prefixed_directory_store(tmp_path: Path) -> ObjectStore:
    return FilesystemObjectStore(
        LocalFilesystem(),
        str(tmp_path / "objects"),
        SystemClock(),
        SeededRandomness(1),
        key_prefix="tiered/of-",
    )


def crashing_directory_store(_: Path) -> ObjectStore:
    clock = ManualClock()
    return FilesystemObjectStore(
        FakeFilesystem(clock), "/objects", clock, SeededRandomness(1), executor=InlineExecutor()
    )


STORES: dict[str, Callable[[Path], ObjectStore]] = {
    "memory": memory_store,
    "directory": directory_store,
    "prefixed-directory": prefixed_directory_store,
    "crashing-directory": crashing_directory_store,
}


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ObjectStore]:
    made = STORES[request.param](tmp_path)
    yield made
    await made.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_store(store: ObjectStore, check: Check) -> None:
    await check(store, check.__name__)
