"""The tier's work keeps its contract from the other end of a socket.

Once with a service in the same loop, once with a real process and a directory as its store. One way
of storing chunks each: what lies between does not look at them.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from config.remote_kinds import KeyFiles
from config.tier import TierConfig
from storage.environment.clock import SystemClock
from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from tests.contract.test_tier import MemoryBucket
from tests.contract.tier_suite import CHUNK, TierSuite, World
from tests.fakes.tiered.in_loop_processes import FakeProcesses
from tests.fakes.tiered.memory_object_store import MemoryObjectStore
from tests.unit.tiered.format.key_files import write_pair
from tiered.format.key_ring import KeyRing
from tiered.storage_manager.remote_storage_manager import RemoteStorageManager
from tiered.worker.bounded import BoundedTier
from tiered.worker.client import TierClient
from tiered.worker.loop_timer import LoopTimer
from tiered.worker.process import TierProcesses
from tiered.worker.process_usage import read_usage


@pytest.fixture(scope="session")
def rsa_pair(tmp_path_factory: pytest.TempPathFactory) -> KeyFiles:
    return write_pair(tmp_path_factory.mktemp("keys"), "pair-1")


class TestOverASocketPair(TierSuite):
    @pytest.fixture
    def format_settings(self) -> TierConfig:
        return TierConfig(rsm_config_chunk_size=CHUNK)

    @pytest.fixture
    async def world(self, tmp_path: Path, format_settings: TierConfig) -> AsyncIterator[World]:
        filesystem = LocalFilesystem()
        randomness = SeededRandomness(1)
        settings = format_settings
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
        client = TierClient(
            settings,
            FakeProcesses(lambda: BoundedTier(tier, settings)),
            timer=LoopTimer(),
            clock=SystemClock(),
        )
        yield World(client, MemoryBucket(store), tmp_path)
        await client.close()


class DirectoryBucket:
    """The store's directory, from outside."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def keys(self) -> list[str]:
        return sorted(
            str(path.relative_to(self._root)) for path in self._root.rglob("*") if path.is_file()
        )

    def read(self, key: str) -> bytes:
        return (self._root / key).read_bytes()

    def write(self, key: str, data: bytes) -> None:
        path = self._root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def remove(self, key: str) -> None:
        (self._root / key).unlink()


class TestInAProcess(TierSuite):
    @pytest.fixture
    def format_settings(self, rsa_pair: KeyFiles) -> TierConfig:
        return TierConfig(
            rsm_config_chunk_size=CHUNK,
            rsm_config_compression_enabled=True,
            rsm_config_encryption_enabled=True,
            rsm_config_encryption_key_pair_id="pair-1",
            rsm_config_encryption_key_pairs_files={"pair-1": rsa_pair},
        )

    @pytest.fixture
    async def world(self, tmp_path: Path, format_settings: TierConfig) -> AsyncIterator[World]:
        root = tmp_path / "bucket"
        settings = format_settings.with_values(
            {
                "rsm_config_storage_root": str(root),
                "rsm_config_fetch_chunk_cache_path": str(tmp_path / "chunks"),
            }
        )
        client = TierClient(settings, TierProcesses(), timer=LoopTimer(), clock=SystemClock())
        session = asyncio.create_task(client.supervisor.session())
        yield World(client, DirectoryBucket(root), tmp_path)
        pid = (await session).pid
        await client.close()
        assert read_usage(pid) is None
        spool = tmp_path / "chunks" / "spool"
        assert not spool.exists() or not list(spool.iterdir())
