"""The tier's work keeps its contract where it is called."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from config.remote_kinds import KeyFiles
from config.tier import TierConfig
from storage.environment.clock import SystemClock
from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from tests.contract.tier_suite import TierSuite, World
from tests.fakes.tiered.memory_object_store import MemoryObjectStore, StoredObject
from tests.unit.tiered.format.key_files import write_pair
from tiered.format.key_ring import KeyRing
from tiered.storage_manager.remote_storage_manager import RemoteStorageManager


@pytest.fixture(scope="session")
def rsa_pair(tmp_path_factory: pytest.TempPathFactory) -> KeyFiles:
    return write_pair(tmp_path_factory.mktemp("keys"), "pair-1")


class MemoryBucket:
    """The fake store's objects, from outside."""

    def __init__(self, store: MemoryObjectStore) -> None:
        self._store = store

    def keys(self) -> list[str]:
        return sorted(self._store.objects)

    def read(self, key: str) -> bytes:
        return self._store.objects[key].data

    def write(self, key: str, data: bytes) -> None:
        self._store.objects[key] = StoredObject(data, 0)

    def remove(self, key: str) -> None:
        del self._store.objects[key]


class TestInProcess(TierSuite):
    @pytest.fixture
    async def world(self, tmp_path: Path, format_settings: TierConfig) -> AsyncIterator[World]:
        filesystem = LocalFilesystem()
        randomness = SeededRandomness(1)
        store = MemoryObjectStore(SystemClock())
        tier = RemoteStorageManager(
            store,
            format_settings,
            KeyRing.load(format_settings, filesystem, randomness),
            environment=Environment.without_loop(
                filesystem=filesystem, clock=SystemClock(), randomness=randomness
            ),
            spool_directory=str(tmp_path / "spool"),
            software="test",
        )
        yield World(tier, MemoryBucket(store), tmp_path)
        await tier.close()
        spool = str(tmp_path / "spool")
        assert not filesystem.exists(spool) or filesystem.list_directory(spool) == []
