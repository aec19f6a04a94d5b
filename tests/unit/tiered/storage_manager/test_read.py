import asyncio
import errno
from typing import Any

import pytest

from storage.errors import DiskError
from tests.fakes.tiered.memory_object_store import FOREVER, Fault
from tests.unit.tiered.storage_manager.memory_tier import (
    CHUNK,
    TierWorld,
    text_segment,
    tier_world,
    turns,
)
from tiered.errors import (
    CorruptRemoteDataError,
    StoreDeniedError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from tiered.storage_manager.read import write_new
from tiered.tier import SideFile

SEGMENT = text_segment()
METADATA = SEGMENT.metadata


async def copied(**settings: Any) -> TierWorld:
    world = tier_world(**settings)
    await world.copy(SEGMENT)
    world.store.log.clear()
    return world


@pytest.mark.parametrize("compression", [False, True])
async def test_a_chunk_is_one_request(compression: bool) -> None:
    """For exactly its bytes; the manifest is fetched once, and kept."""
    world = await copied(compression=compression)
    for number in (3, 4, 3):
        await world.tier.fetch_chunk(METADATA, "", number, "/cache/c")
    assert [call for call, _ in world.store.log] == ["get", *["get_range"] * 3]
    assert world.disk.read_bytes("/cache/c") == SEGMENT.log[3 * CHUNK : 4 * CHUNK]
    assert world.told["manifests"]["hits"] == 2


async def test_a_local_manifest_saves_the_request() -> None:
    """The index cache has it."""
    world = await copied()
    await world.tier.fetch_indexes(METADATA, "/cache", "x")
    other = tier_world(disk=world.disk, store=world.store)
    world.store.log.clear()
    await other.tier.fetch_chunk(METADATA, "/cache/x.manifest", 0, "/cache/c")
    assert [call for call, _ in world.store.log] == ["get_range"]


async def test_a_byte_that_the_network_flipped_is_fetched_again() -> None:
    """Not taken for a damaged bucket, which somebody would have to repair."""
    world = await copied()
    world.store.fail("get_range", Fault.WRONG_BYTES, key=".log")
    result = await world.tier.fetch_chunk(METADATA, "", 1, "/cache/c")
    assert result.length == CHUNK
    assert world.disk.read_bytes("/cache/c") == SEGMENT.log[CHUNK : 2 * CHUNK]
    world.store.fail("get_range", Fault.WRONG_BYTES, key=".indexes")
    assert await world.tier.fetch_side_file(METADATA, SideFile.OFFSET)
    world.store.fail("get", Fault.WRONG_BYTES, key=".rsm-manifest")
    await world.tier.fetch_indexes(METADATA, "/cache", "x")
    assert world.told["second_reads"] == 3
    assert world.told["corrupt_reads"] == 0


async def test_wrong_twice_is_corrupt() -> None:
    """And counted as such."""
    world = await copied()
    world.store.fail("get_range", Fault.WRONG_BYTES, times=2)
    with pytest.raises(CorruptRemoteDataError, match="chunk 1 fails its CRC"):
        await world.tier.fetch_chunk(METADATA, "", 1, "/cache/c")
    assert not world.disk.exists("/cache/c")
    assert world.told["corrupt_reads"] == 1
    assert world.told["operations"]["fetch_chunk"]["errors"]["corrupt_remote"] == 1


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.SHORT_BODY, StoreUnavailableError),
        (Fault.RESET, StoreUnavailableError),
        (Fault.UNAVAILABLE, StoreUnavailableError),
        (Fault.TIMEOUT, StoreTimeoutError),
        (Fault.DENIED, StoreDeniedError),
    ],
)
async def test_a_store_that_breaks_off_is_no_corruption(
    fault: Fault, error: type[Exception]
) -> None:
    """The object has the size it should: worth another try, later."""
    world = await copied()
    world.store.fail("get_range", fault, times=FOREVER)
    with pytest.raises(error):
        await world.tier.fetch_chunk(METADATA, "", 1, "/cache/c")
    # Nor when its size cannot be asked for.
    world.store.fail("head", Fault.UNAVAILABLE, times=FOREVER)
    with pytest.raises(error):
        await world.tier.fetch_chunk(METADATA, "", 1, "/cache/c")
    assert not world.disk.exists("/cache/c")
    assert world.told["fetches"]["lent"] == 0


async def test_a_cancelled_download_leaves_nothing() -> None:
    """Neither a file nor memory that is still written to."""
    world = await copied()
    world.store.fail("get_range", Fault.HANG)
    task = asyncio.create_task(world.tier.fetch_chunk(METADATA, "", 1, "/cache/c"))
    while not world.store.hanging:
        await turns(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert world.disk.list_directory("/cache") == []
    assert world.told["fetches"]["lent"] == 0
    assert world.store.hanging == 0


@pytest.mark.parametrize("call", ["write", "rename"])
async def test_a_full_disk_leaves_no_temporary_file(call: str) -> None:
    """They would never be looked for."""
    world = await copied()
    world.disk.fail(call, errno.ENOSPC, path="/cache")
    with pytest.raises(DiskError):
        await world.tier.fetch_chunk(METADATA, "", 1, "/cache/c")
    world.disk.fail(call, errno.ENOSPC, path="/cache", skip=1)
    with pytest.raises(DiskError):
        await world.tier.fetch_indexes(METADATA, "/cache", "x")
    left = {entry.name for entry in world.disk.list_directory("/cache")}
    assert not [name for name in left if name.endswith(".tmp")]
    # The manifest comes last: without it there is no set.
    assert "x.manifest" not in left


async def test_an_old_temporary_file_is_no_hindrance() -> None:
    """Longer than what comes now."""
    world = await copied()
    write_new(world.disk, "/cache/c.tmp", b"x" * 5000)
    await world.tier.fetch_chunk(METADATA, "", 1, "/cache/c")
    assert world.disk.read_bytes("/cache/c") == SEGMENT.log[CHUNK : 2 * CHUNK]


async def test_side_files_come_in_one_request() -> None:
    """All that are wanted, and what lies between them."""
    world = await copied()
    result = await world.tier.fetch_indexes(METADATA, "/cache", "x")
    assert [call for call, _ in world.store.log] == ["get", "get_range"]
    assert world.told["operations"]["fetch_indexes"]["bytes_down"] == result.downloaded_bytes
