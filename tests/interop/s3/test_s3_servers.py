"""Real S3 servers: what our stores promise, and the tier's work, on each that is there.

moto's is always there. The others are built by `.ci/s3-servers` and run by `make test-s3`, which
ends by telling which ran; `docs/s3-servers.md` says what each is.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.s3_server import SERVERS, is_built, s3_server
from config.tier import TierConfig
from storage.environment.clock import SystemClock
from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from tests.contract.object_store_suite import CHECKS, Check
from tests.contract.tier_suite import World, a_segment
from tests.fakes.s3.moto_server import make_bucket, s3_settings
from tests.unit.tiered.format.key_files import write_pair
from tiered.errors import CorruptRemoteDataError, ObjectNotFoundError, StoreDeniedError
from tiered.format.key_ring import KeyRing
from tiered.object_store.base import ObjectStore
from tiered.object_store.s3.store import S3ObjectStore
from tiered.open_store import open_store
from tiered.storage_manager.remote_storage_manager import RemoteStorageManager
from tiered.tier import SideFile

MIB = 1024 * 1024


@dataclass(frozen=True)
class Server:
    """One that runs."""

    name: str
    url: str

    async def store(self, bucket: str = "interop", **changes: Any) -> ObjectStore:
        settings = s3_settings(self.url, bucket, **changes)
        await make_bucket(settings)
        return open_store(settings, LocalFilesystem(), SystemClock(), SeededRandomness(1))


LONG_NAMES = "a part of a key is a file's name there: 255 bytes at most"
TOLD_TWICE = "a folder that fills a page is told on the next one, too"
CANNOT = {
    ("versitygw", "long_names_are_folders_too"): LONG_NAMES,
    ("minio", "long_names_are_folders_too"): LONG_NAMES,
    ("minio", "folders_are_told_on_pages_of_one"): (
        "a page of one object whose key is the prefix is said to be the last"
    ),
    ("gofakes3", "folders_are_told_once_and_in_order"): TOLD_TWICE,
    ("gofakes3", "folders_are_told_on_pages_of_one"): TOLD_TWICE,
    ("gofakes3", "folders_are_told_after_a_key"): TOLD_TWICE,
}
"""What of the promises a server does not keep, and how: `docs/s3-servers.md` says what follows."""

NATIVE = [pytest.param(name, marks=pytest.mark.slow) for name in SERVERS]


@contextmanager
def running(name: str, request: pytest.FixtureRequest) -> Iterator[Server]:
    if name == "moto":
        yield Server(name, request.getfixturevalue("moto_url"))
        return
    if not is_built(name):
        pytest.skip(f"{name} is not built: .ci/s3-servers says why")
    with s3_server(name) as url:
        yield Server(name, url)


@pytest.fixture(scope="module", params=["moto", *NATIVE])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Each."""
    with running(request.param, request) as found:
        yield found


@pytest.fixture(scope="module", params=NATIVE)
def native(request: pytest.FixtureRequest) -> Iterator[Server]:
    """Each but moto, which tests/contract/test_object_store.py looks at."""
    with running(request.param, request) as found:
        yield found


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_store(native: Server, check: Check) -> None:
    reason = CANNOT.get((native.name, check.__name__))
    if reason:
        pytest.skip(f"{native.name}: {reason}")
    store = await native.store()
    try:
        await check(store, check.__name__)
    finally:
        await store.close()


@pytest.mark.parametrize(
    "changes",
    [{"checksum": "crc32c", "key_prefix": "tier/a-"}, {"checksum": "md5", "key_prefix": "md5/"}],
    ids=["crc32c", "md5"],
)
async def test_variants(native: Server, changes: dict[str, Any]) -> None:
    store = await native.store(**changes)
    try:
        for check in CHECKS:
            if (native.name, check.__name__) not in CANNOT:
                await check(store, check.__name__)
    finally:
        await store.close()


async def test_ranges_are_read_by_the_fast_path(server: Server) -> None:
    """This server's answers are plain; where they are not, reading works and costs more."""
    store = await server.store()
    data = bytes(range(256)) * (5 * MIB // 256)
    await store.put("fast", data)
    buffer = bytearray(MIB)
    for position in range(0, 5 * MIB - MIB, 700_001):
        await store.get_range("fast", position, MIB, memoryview(buffer))
        assert buffer == data[position : position + MIB]
    assert store.statistics.fallbacks == 0
    await store.close()


async def test_an_upload_that_was_left_is_found_and_removed(server: Server) -> None:
    """As after kill -9 in the middle of a copy; also where the store's prefixes are whole keys."""
    store = await server.store("left", key_prefix="tier/")
    assert isinstance(store, S3ObjectStore)
    begun = await store._calls.once("create_multipart_upload", "t/0/x.log", {})
    part = {"UploadId": begun["UploadId"], "PartNumber": 1, "Body": b"half"}
    await store._calls.once("upload_part", "t/0/x.log", part)
    assert await store.list_uploads("u/") == []
    (found,) = await store.list_uploads("t/")
    assert found.key == "t/0/x.log"
    if server.name != "moto":
        # Which says of every upload that it is of 2010.
        assert abs(found.started_ms - SystemClock().now_ms()) < 60_000
    await store.abort_upload(found)
    assert await store.list_uploads("") == []
    await store.close()


async def test_wrong_keys_are_refused(native: Server) -> None:
    if native.name == "gofakes3":
        pytest.skip("gofakes3 does not look at signatures")
    good = await native.store()
    await good.put("secret", b"data")
    await good.close()
    settings = s3_settings(native.url, "interop", secret_access_key="another-secret")
    store = open_store(settings, LocalFilesystem(), SystemClock(), SeededRandomness(1))
    assert isinstance(store, S3ObjectStore)
    try:
        with pytest.raises(StoreDeniedError):
            await store.get_range("secret", 0, 4, memoryview(bytearray(4)))
        with pytest.raises(StoreDeniedError):
            await store.put("secret", b"other")
    finally:
        await store.close()


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
async def test_a_segment_goes_there_and_comes_back(
    server: Server, tmp_path: Path, encrypted: bool
) -> None:
    """Copied, complete, verified, read chunk by chunk, damaged, found out, deleted."""
    pair = write_pair(tmp_path, "pair-1")
    settings = TierConfig(
        rsm_config_chunk_size=1000,
        rsm_config_compression_enabled=encrypted,
        rsm_config_encryption_enabled=encrypted,
        rsm_config_encryption_key_pair_id="pair-1" if encrypted else "",
        rsm_config_encryption_key_pairs_files={"pair-1": pair} if encrypted else {},
    )
    filesystem, randomness = LocalFilesystem(), SeededRandomness(1)
    store = await server.store(f"tier-{'encrypted' if encrypted else 'plain'}")
    tier = RemoteStorageManager(
        store,
        settings,
        KeyRing.load(settings, filesystem, randomness),
        environment=Environment.without_loop(
            filesystem=filesystem, clock=SystemClock(), randomness=randomness
        ),
        spool_directory=str(tmp_path / "spool"),
        software="test",
    )
    world = World(tier, NotLookedInto(), tmp_path)
    segment = a_segment()
    metadata = await world.copied(segment)

    assert await tier.is_complete(metadata)
    assert await tier.verify_segment(metadata) == []
    assert await world.read_log(metadata) == segment.log
    await tier.fetch_indexes(metadata, str(world.cache), "remote")
    assert await tier.fetch_side_file(metadata, SideFile.LEADER_EPOCH)

    (log,) = (
        info.key for info in (await tier.list_objects("", None)).objects if info.key.endswith("log")
    )
    data = bytearray(await tier.get_object(log))
    data[len(data) // 2] ^= 1
    await tier.put_object(log, bytes(data))
    with pytest.raises(CorruptRemoteDataError):
        await world.read_log(metadata)
    assert [fault.key for fault in await tier.verify_segment(metadata)] == [log]

    await tier.delete_segment(metadata)
    assert not await tier.is_complete(metadata)
    assert (await tier.list_objects("", None)).objects == []
    with pytest.raises(ObjectNotFoundError):
        await tier.get_object(log)
    await tier.close()


class NotLookedInto:
    """A bucket that this test reaches through the tier alone."""

    def keys(self) -> list[str]:
        raise NotImplementedError

    def read(self, key: str) -> bytes:
        raise NotImplementedError

    def write(self, key: str, data: bytes) -> None:
        raise NotImplementedError

    def remove(self, key: str) -> None:
        raise NotImplementedError


def test_the_builder_builds_what_is_started() -> None:
    script = (Path(__file__).resolve().parents[3] / ".ci" / "s3-servers").read_text()
    built = {
        line.split()[1]: line.split()[2] for line in script.splitlines() if line[:6] == "build "
    }
    assert built == {name: kind.source for name, kind in SERVERS.items()}
