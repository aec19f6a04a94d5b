from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from config.tier import TierConfig
from storage.environment.clock import SystemClock
from storage.environment.environment import Environment
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness
from tests.fakes.tiered.memory_object_store import Fault as StoreFault
from tests.fakes.tiered.memory_object_store import MemoryObjectStore
from tests.unit.tiered.format.closed_segments import FACTS, Segment, make_segment
from tests.unit.tiered.format.key_files import write_pair
from tiered.errors import RemoteStorageError, StoreUnavailableError
from tiered.format.key_ring import KeyRing
from tiered.format.object_keys import ObjectKeys
from tiered.maintenance.key_rotation import RewrapPage, rewrap_page
from tiered.segment_metadata import RemoteLogSegmentId
from tiered.storage_manager.remote_storage_manager import RemoteStorageManager

RANDOMNESS = SeededRandomness(3)
FILES = LocalFilesystem()


class Rotation:
    """A bucket, and brokers with this or that set of keys."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = MemoryObjectStore(SystemClock())
        self.pairs = {name: write_pair(folder, name) for name in ("old", "new")}

    def ring(self, active: str, *names: str) -> KeyRing:
        pairs = {name: self.pairs[name] for name in names}
        settings = TierConfig(
            rsm_config_encryption_enabled=True,
            rsm_config_encryption_key_pair_id=active,
            rsm_config_encryption_key_pairs_files=pairs,
        )
        return KeyRing.load(settings, FILES, RANDOMNESS)

    def tier(self, active: str, *names: str) -> RemoteStorageManager:
        settings = TierConfig(rsm_config_chunk_size=500, rsm_config_encryption_enabled=active != "")
        ring = self.ring(active, *names) if active else KeyRing("", {}, RANDOMNESS)
        return RemoteStorageManager(
            *(self.store, settings, ring),
            environment=Environment.without_loop(
                filesystem=FILES, clock=SystemClock(), randomness=RANDOMNESS
            ),
            spool_directory=str(self.folder / "spool"),
            software="test",
        )

    async def copy(self, number: int, active: str = "old") -> Segment:
        segment = make_segment([b"secret %d" % number] * 50, start_offset=number)
        segment_id = RemoteLogSegmentId(segment.metadata.partition, UUID(int=number))
        segment.metadata = replace(segment.metadata, segment_id=segment_id)
        files = segment.write(FILES, str(self.folder / "partition"))
        tier = self.tier(active, active) if active else self.tier("")
        await tier.copy_segment(segment.metadata, files, FACTS)
        return segment

    async def read(self, tier: RemoteStorageManager, segment: Segment, manifest: str = "") -> bytes:
        path = self.folder / "chunk"
        await tier.fetch_chunk(segment.metadata, manifest, 1, str(path))
        return path.read_bytes()

    async def all_pages(self, ring: KeyRing) -> list[RewrapPage]:
        pages = [await rewrap_page(self.store, ring)]
        while pages[-1].continuation is not None:
            pages.append(await rewrap_page(self.store, ring, "", pages[-1].continuation))
        return pages


@pytest.fixture
def rotation(tmp_path: Path) -> Rotation:
    return Rotation(tmp_path)


async def test_afterwards_the_old_private_key_can_go(rotation: Rotation) -> None:
    """Every segment decrypts with the new pair alone, and chunks were not touched."""
    segments = [await rotation.copy(number) for number in range(1, 8)]
    plain = await rotation.copy(8, "")
    newer = await rotation.copy(9, "new")
    logs = {key: found.data for key, found in rotation.store.objects.items() if ".log" in key}
    rotation.store.page_max = 4
    pages = await rotation.all_pages(rotation.ring("new", "old", "new"))
    assert sum(page.rewrapped for page in pages) == 7
    assert sum(page.active for page in pages) == 1
    assert sum(page.plain for page in pages) == 1
    assert not any(page.faults for page in pages)
    alone = rotation.tier("new", "new")
    for segment in (*segments, plain, newer):
        assert await rotation.read(alone, segment) == segment.log[500:1000]
        assert not await alone.verify_segment(segment.metadata)
    for key, data in logs.items():
        assert rotation.store.objects[key].data == data


async def test_a_manifest_on_a_brokers_disk_may_be_older(rotation: Rotation) -> None:
    """It still has the key as the old pair wrapped it, which this broker does not have any more."""
    segment = await rotation.copy(1)
    before = rotation.tier("old", "old")
    await before.fetch_indexes(segment.metadata, str(rotation.folder), "x")
    await rotation.all_pages(rotation.ring("new", "old", "new"))
    after = rotation.tier("new", "new")
    path = str(rotation.folder / "x.manifest")
    assert await rotation.read(after, segment, path) == segment.log[500:1000]


async def test_it_can_begin_again(rotation: Rotation) -> None:
    """The store breaks off in the middle; the second run does what is left."""
    for number in range(1, 6):
        await rotation.copy(number)
    ring = rotation.ring("new", "old", "new")
    rotation.store.fail("put", StoreFault.UNAVAILABLE, skip=2)
    with pytest.raises(StoreUnavailableError):
        await rewrap_page(rotation.store, ring)
    page = await rewrap_page(rotation.store, ring)
    assert (page.rewrapped, page.active) == (3, 2)


async def test_what_cannot_be_unwrapped_is_told(rotation: Rotation) -> None:
    """Until nothing is told, the old pair must stay."""
    segment = await rotation.copy(1)
    await rotation.copy(2, "new")
    key = ObjectKeys().segment_keys(segment.metadata).manifest
    page = await rewrap_page(rotation.store, rotation.ring("new", "new"))
    (fault,) = page.faults
    assert fault.key == key
    assert "'old'" in fault.problem
    rotation.store.damage(key, 100)
    page = await rewrap_page(rotation.store, rotation.ring("new", "old", "new"))
    assert [fault.key for fault in page.faults] == [key]
    assert page.active == 1


async def test_a_segment_that_is_deleted_meanwhile_stays_deleted(rotation: Rotation) -> None:
    """Its manifest must not come back without its log."""
    segment = await rotation.copy(1)
    keys = ObjectKeys().segment_keys(segment.metadata)

    def delete(call: str, key: str) -> None:
        if call == "put" and key == keys.manifest:
            for each in keys:
                rotation.store.objects.pop(each, None)

    rotation.store.on_call = delete
    await rewrap_page(rotation.store, rotation.ring("new", "old", "new"))
    assert rotation.store.objects == {}


async def test_without_an_active_pair_nothing_is_done(rotation: Rotation) -> None:
    """Settings were not finished."""
    with pytest.raises(RemoteStorageError, match="active"):
        await rewrap_page(rotation.store, KeyRing("", {}, RANDOMNESS))
