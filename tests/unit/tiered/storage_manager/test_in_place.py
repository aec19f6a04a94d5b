"""Chunks that are compared where they lie."""

from pathlib import Path

import pytest

from protocol.records.batch import crc32c
from storage.environment.local_filesystem import LocalFilesystem
from tests.unit.tiered.storage_manager.in_place_world import in_place_world
from tests.unit.tiered.storage_manager.memory_tier import CHUNK, text_segment, tier_world
from tiered.format.chunk_file import ChunkFile, ChunkKey, chunk_path, open_checked
from tiered.storage_manager import in_place
from tiered.storage_manager.in_place import NOTHING_FOUND


async def test_a_run_is_compared_and_referred_to(tmp_path: Path) -> None:
    world = await in_place_world(tmp_path)
    metadata = world.segment.metadata
    found = await world.tier.refer_to_chunks(metadata, "", [1, 2, 3], world.cache)
    assert found.path == str(world.place)
    assert [chunk.chunk for chunk in found.chunks] == [1, 2, 3]
    for number, length, crc, position in found.chunks:
        name = ChunkFile(ChunkKey(metadata.id, number), length, crc, is_reference=True)
        chunk = open_checked(LocalFilesystem(), chunk_path(world.cache, name), name)
        assert chunk is not None
        assert chunk.read_at(2 * CHUNK, 0) == world.chunk(number)
        assert (position, crc) == (number * CHUNK, crc32c(world.chunk(number)))
    assert len(world.references()) == 3
    told = world.tier.statistics()
    assert told["store"]["calls"]["get_range"]["calls"] == 3
    assert told["operations"]["refer_to_chunks"]["bytes_down"] == 3 * CHUNK
    await world.tier.close()


async def test_the_last_chunk_is_shorter_and_there_is_none_after_it(tmp_path: Path) -> None:
    world = await in_place_world(tmp_path)
    last = len(world.segment.log) // CHUNK
    found = await world.tier.refer_to_chunks(
        world.segment.metadata, "", [last, last + 1, -1], world.cache
    )
    assert [chunk[:2] for chunk in found.chunks] == [(last, len(world.segment.log) % CHUNK)]
    await world.tier.close()


@pytest.mark.parametrize("block_bytes", [1 << 20, 64])
@pytest.mark.parametrize("position", [2 * CHUNK, 2 * CHUNK + 500, 3 * CHUNK - 1])
async def test_a_flipped_byte_is_never_referred_to(
    tmp_path: Path, position: int, block_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are; of this one the usual way says where it is wrong."""
    monkeypatch.setattr(in_place, "BLOCK_BYTES", block_bytes)
    world = await in_place_world(tmp_path)
    world.flip(position)
    found = await world.tier.refer_to_chunks(world.segment.metadata, "", [1, 2, 3], world.cache)
    assert [chunk.chunk for chunk in found.chunks] == [1, 3]
    assert len(world.references()) == 2
    await world.tier.close()


async def test_an_object_that_is_cut_off_gives_what_it_has(tmp_path: Path) -> None:
    world = await in_place_world(tmp_path)
    world.place.write_bytes(world.segment.log[: 2 * CHUNK + 1])
    found = await world.tier.refer_to_chunks(world.segment.metadata, "", [1, 2, 3], world.cache)
    assert [chunk.chunk for chunk in found.chunks] == [1]
    await world.tier.close()


async def test_an_object_that_is_gone_gives_nothing(tmp_path: Path) -> None:
    world = await in_place_world(tmp_path)
    world.place.unlink()
    found = await world.tier.refer_to_chunks(world.segment.metadata, "", [1], world.cache)
    assert (found.path, list(found.chunks)) == (str(world.place), [])
    await world.tier.close()


@pytest.mark.parametrize("settings", [{"compression": True}, {"encryption": True}])
async def test_another_form_is_not_referred_to(tmp_path: Path, settings: dict[str, bool]) -> None:
    world = await in_place_world(tmp_path, **settings)
    found = await world.tier.refer_to_chunks(world.segment.metadata, "", [0], world.cache)
    assert found == NOTHING_FOUND
    assert world.references() == []
    await world.tier.close()


async def test_nor_is_another_place() -> None:
    world = tier_world()
    segment = text_segment()
    await world.copy(segment)
    assert await world.tier.refer_to_chunks(segment.metadata, "", [0], "/c") == NOTHING_FOUND


async def test_half_a_reference_of_a_process_that_was_killed_is_written_again(
    tmp_path: Path,
) -> None:
    world = await in_place_world(tmp_path)
    metadata = world.segment.metadata
    await world.tier.refer_to_chunks(metadata, "", [1], world.cache)
    (path,) = world.references()
    whole = path.read_bytes()
    path.write_bytes(whole + b"more")
    await world.tier.refer_to_chunks(metadata, "", [1], world.cache)
    assert path.read_bytes() == whole
    await world.tier.close()
