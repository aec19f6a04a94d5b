import asyncio
import errno
from typing import Any

import pytest

from storage.errors import DiskError
from tests.fakes.tiered.memory_object_store import FOREVER, Fault, MemoryObjectStore
from tests.unit.tiered.format.closed_segments import FACTS, make_segment
from tests.unit.tiered.storage_manager.memory_tier import CHUNK, text_segment, tier_world, turns
from tiered.errors import CorruptSegmentError, StoreUnavailableError, TieredError
from tiered.format.manifest import SIDE_FILES_BYTES_MAX, SegmentManifest
from tiered.tier import SideFile

FORMATS: list[dict[str, Any]] = [
    {"compression": compression, "encryption": encryption}
    for compression in (False, True)
    for encryption in (False, True)
]


async def test_the_manifest_comes_last() -> None:
    """It is what makes the segment exist."""
    world = tier_world()
    keys = await world.copy(text_segment())
    assert world.store.log == [
        ("put_stream", keys.log),
        ("put", keys.indexes),
        ("put", keys.manifest),
    ]


async def test_the_manifest_goes_first() -> None:
    """What is left of a deletion that broke off is no segment any more."""
    world = tier_world()
    segment = text_segment()
    keys = await world.copy(segment)
    world.store.log.clear()
    await world.tier.delete_segment(segment.metadata)
    assert world.store.log == [("delete", keys.manifest), ("delete", f"{keys.log} {keys.indexes}")]


@pytest.mark.parametrize("settings", FORMATS, ids=str)
@pytest.mark.parametrize("suffix", [".log", ".indexes"])
@pytest.mark.parametrize("fault", [Fault.UNAVAILABLE, Fault.RESET, Fault.LOST_ANSWER, Fault.DENIED])
async def test_a_failed_copy_leaves_nothing(
    settings: dict[str, Any], suffix: str, fault: Fault
) -> None:
    """Also where the store did it and the answer was lost; the next attempt has another id."""
    world = tier_world(**settings)
    world.store.fail("put|put_stream", fault, key=suffix)
    with pytest.raises(TieredError):
        await world.copy(text_segment())
    assert world.store.objects == {}
    assert world.told["copies"]["lent"] == 0
    await world.copy(text_segment(copy_id=2))
    assert len(world.store.objects) == 3


@pytest.mark.parametrize("fault", [Fault.UNAVAILABLE, Fault.RESET, Fault.LOST_ANSWER, Fault.DENIED])
async def test_a_copy_whose_manifest_was_sent_is_not_removed(fault: Fault) -> None:
    """The next leader may have found it whole, and its log need not have the records."""
    world = tier_world()
    segment = text_segment()
    world.store.fail("put", fault, key=".rsm-manifest")
    with pytest.raises(TieredError):
        await world.copy(segment)
    assert len(world.store.objects) == (3 if fault is Fault.LOST_ANSWER else 2)
    assert await world.tier.is_complete(segment.metadata) == (fault is Fault.LOST_ANSWER)
    await world.tier.delete_segment(segment.metadata)
    assert world.store.objects == {}


async def test_a_cleanup_that_fails_is_counted() -> None:
    """The error that is raised is still the copy's own."""
    world = tier_world()
    world.store.fail("put", Fault.DENIED, key=".indexes")
    world.store.fail("delete", Fault.UNAVAILABLE)
    with pytest.raises(TieredError, match="403"):
        await world.copy(text_segment())
    assert world.told["failed_cleanups"] == 1
    assert len(world.store.objects) == 1


@pytest.mark.parametrize("settings", FORMATS, ids=str)
@pytest.mark.parametrize("suffix", [".log", ".indexes"])
async def test_a_cancelled_copy_leaves_nothing(settings: dict[str, Any], suffix: str) -> None:
    """No object, no unfinished upload, no spool, and no memory in anybody's hands."""
    world = tier_world(**settings)
    world.store.fail("put|put_stream", Fault.HANG, key=suffix)
    task = asyncio.create_task(world.copy(text_segment()))
    while not world.store.hanging:
        await turns(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert world.store.objects == {}
    assert world.store.uploads == {}
    assert world.told["copies"]["lent"] == 0
    assert world.told["operations"]["copy_segment"]["errors"]["cancelled"] == 1
    if settings["compression"]:
        assert world.disk.list_directory("/spool") == []


@pytest.mark.parametrize("settings", FORMATS, ids=str)
@pytest.mark.parametrize("after", [1, 2, 5, 9, 14, 20, 30, 50])
async def test_a_copy_can_be_cancelled_at_any_turn(settings: dict[str, Any], after: int) -> None:
    """Wherever it is."""
    world = tier_world(**settings)
    task = asyncio.create_task(world.copy(text_segment()))
    for _ in range(after):
        await asyncio.sleep(0.0002)
    task.cancel()
    (outcome,) = await asyncio.gather(task, return_exceptions=True)
    assert isinstance(outcome, asyncio.CancelledError) == (len(world.store.objects) == 0)
    assert len(world.store.objects) in (0, 3)
    assert world.store.uploads == {}
    assert world.told["copies"]["lent"] == 0


async def test_a_cleanup_can_be_cancelled() -> None:
    """The process ends; the caller deletes the segment when it is back."""
    world = tier_world()
    world.store.fail("put", Fault.HANG, key=".indexes")
    world.store.fail("delete", Fault.HANG, times=FOREVER)
    task = asyncio.create_task(world.copy(text_segment()))
    for _ in range(2):
        while not world.store.hanging:
            await turns(1)
        task.cancel()
        await turns(5)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert world.store.hanging == 0
    assert world.told["failed_cleanups"] == 1


async def test_nothing_of_a_corrupt_compressed_segment_leaves_the_machine() -> None:
    """It is checked whole before the store is asked for anything."""
    world = tier_world(compression=True)
    segment = text_segment()
    segment.log[-1] ^= 1
    with pytest.raises(CorruptSegmentError):
        await world.copy(segment)
    assert world.store.log == []


async def test_the_stores_own_error_does_not_hide_a_corrupt_segment() -> None:
    """A store may wrap what its source of parts raises."""

    class Wrapping(MemoryObjectStore):
        async def put_stream(self, *args: object) -> None:
            try:
                await super().put_stream(*args)  # type: ignore[arg-type]  # passed on
            except CorruptSegmentError as error:
                raise StoreUnavailableError("the source failed") from error

    world = tier_world(store=Wrapping(tier_world().tier._clock))
    segment = text_segment()
    segment.log[5000] ^= 1
    with pytest.raises(CorruptSegmentError):
        await world.copy(segment)


@pytest.mark.parametrize(("codec", "compressed"), [(0, True), (4, False)])
async def test_the_heuristic_leaves_compressed_batches_alone(codec: int, compressed: bool) -> None:
    """Compressing again gains a percent and costs a CPU."""
    world = tier_world(compression=True, compression_heuristic=True)
    keys = await world.copy(text_segment(codec=codec))
    manifest = SegmentManifest.from_json(world.store.objects[keys.manifest].data, "")
    assert manifest.compression == compressed


async def test_a_full_disk_fails_the_copy() -> None:
    """Of the spool; the log is the broker's and stays."""
    world = tier_world(compression=True)
    segment = text_segment()
    files = world.write(segment)
    world.disk.fail("write", errno.ENOSPC, path=".spool")
    with pytest.raises(DiskError):
        await world.tier.copy_segment(segment.metadata, files, FACTS)
    assert world.store.objects == {}


async def test_a_log_that_became_shorter_is_not_copied() -> None:
    """Somebody truncates it while it is read."""
    world = tier_world()
    segment = text_segment()
    files = world.write(segment)

    def cut(call: str, key: str) -> None:
        world.disk.open(files.log).truncate(3 * CHUNK + 1)

    world.store.on_call = cut
    with pytest.raises(CorruptSegmentError, match="shorter"):
        await world.tier.copy_segment(segment.metadata, files, FACTS)
    world.store.on_call = None
    assert world.store.objects == {}


async def test_a_side_file_of_any_size_is_not_read() -> None:
    """Its length is looked at first."""
    world = tier_world()
    segment = text_segment()
    files = world.write(segment)
    world.disk.open(files.time_index).truncate(SIDE_FILES_BYTES_MAX + 1)
    with pytest.raises(CorruptSegmentError) as caught:
        await world.tier.copy_segment(segment.metadata, files, FACTS)
    assert caught.value.path == files.time_index
    assert world.store.log == []


async def test_an_empty_transaction_index_counts_as_none() -> None:
    """Kafka leaves such files."""
    world = tier_world()
    segment = text_segment(abort_at=None)
    segment.parts[SideFile.TRANSACTION] = bytearray()
    keys = await world.copy(segment)
    manifest = SegmentManifest.from_json(world.store.objects[keys.manifest].data, "")
    assert SideFile.TRANSACTION not in manifest.side_files


@pytest.mark.parametrize("settings", FORMATS, ids=str)
async def test_memory_is_three_chunks(settings: dict[str, Any]) -> None:
    """However long the log is: this is what a copy's share of memory is counted by."""
    world = tier_world(**settings)
    await world.copy(make_segment([b"%d" % number * 300 for number in range(200)]))
    room = 3 * CHUNK + 2 * 1024 + 100
    assert 0 < world.told["copies"]["idle_bytes"] <= room


async def test_the_manifest_tells_who_and_when() -> None:
    """Enough to have the topic back from the bucket alone."""
    world = tier_world()
    segment = text_segment()
    keys = await world.copy(segment)
    manifest = SegmentManifest.from_json(world.store.objects[keys.manifest].data, "")
    assert manifest.topic == FACTS
    assert manifest.software == "test"
    assert manifest.records == segment.metadata.end_offset + 1 - segment.metadata.start_offset
    assert manifest.created_ms == world.tier._clock.now_ms()
    assert manifest.metadata.segment_leader_epochs == segment.metadata.segment_leader_epochs
