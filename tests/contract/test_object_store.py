"""One suite for every object store: in memory, in a directory, in S3."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from storage.environment.clock import SystemClock
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from tests.contract.object_store_suite import CHECKS, Check
from tests.fakes.clock import ManualClock
from tests.fakes.executor import InlineExecutor
from tests.fakes.filesystem import FakeFilesystem
from tests.fakes.s3.moto_server import make_bucket, s3_settings
from tests.fakes.tiered.memory_object_store import MemoryObjectStore
from tiered.object_store.base import ObjectStore
from tiered.object_store.filesystem import FilesystemObjectStore
from tiered.open_store import open_store


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


VARIANTS: dict[str, dict[str, Any]] = {
    "prefix-crc32c": {"key_prefix": "tiered/of-", "checksum": "crc32c"},
    "md5": {"key_prefix": "md5/", "checksum": "md5", "parts_in_flight": 1},
}
"""Of S3; making a client takes a tenth of a second, so all checks share one of each."""

STORES: dict[str, Callable[[Path], ObjectStore]] = {
    "memory": memory_store,
    "directory": directory_store,
    "prefixed-directory": prefixed_directory_store,
    "crashing-directory": crashing_directory_store,
}


async def s3_store(moto_url: str, **changes: Any) -> ObjectStore:
    settings = s3_settings(moto_url, "contract", **changes)
    await make_bucket(settings)
    return open_store(settings, LocalFilesystem(), SystemClock(), SeededRandomness(1))


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ObjectStore]:
    made = STORES[request.param](tmp_path)
    yield made
    await made.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def s3(moto_url: str) -> AsyncIterator[ObjectStore]:
    """One for all checks, each of which has keys of its own."""
    made = await s3_store(moto_url)
    yield made
    await made.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_store(store: ObjectStore, check: Check) -> None:
    await check(store, check.__name__)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_s3(s3: ObjectStore, check: Check) -> None:
    await check(s3, check.__name__)


@pytest.mark.parametrize("variant", ["prefix-crc32c", pytest.param("md5", marks=pytest.mark.merge)])
async def test_variants_of_s3(moto_url: str, variant: str) -> None:
    """And every ranged read took the fast path: moto answers plainly."""
    store = await s3_store(moto_url, **VARIANTS[variant])
    for check in CHECKS:
        await check(store, check.__name__)
    assert store.statistics.by_call["get_range"].calls > 10
    # One each: of a missing object and of one that is a folder elsewhere.
    assert store.statistics.fallbacks == 2
    await store.close()
