"""Segments that Kafka with Aiven's plugin has copied are read like our own, as far as sums go."""

import json
from typing import Any

import pytest

from tests.unit.tiered.format.closed_segments import Segment, metadata
from tests.unit.tiered.format.plugin_segments import objects_of
from tests.unit.tiered.storage_manager.memory_tier import TierWorld, text_segment, tier_world
from tiered.cache.index_files import load
from tiered.errors import CorruptRemoteDataError
from tiered.format.manifest import SegmentManifest
from tiered.format.object_keys import ObjectKeys
from tiered.restore.restore import read_bucket
from tiered.tier import SideFile

FORMS = [(False, False), (True, False), (False, True), (True, True)]


def _objects(world: TierWorld, segment: Segment, **form: Any) -> dict[str, bytes]:
    """Put a segment into the bucket as the plugin would."""
    objects = objects_of(segment, world.tier._reader._key_ring, **form)
    for name, data in objects.items():
        world.store._store(name, data, None)
    return objects


async def _read(world: TierWorld, segment: Segment) -> bytes:
    """As the broker does: indexes first, then chunk after chunk."""
    result = await world.tier.fetch_indexes(segment.metadata, "/cache", "s")
    indexes = load(world.disk, "/cache/s", segment.metadata)
    assert indexes.layout.chunks == result.chunk_count
    data = b""
    for number in range(result.chunk_count):
        path = f"/cache/{number}"
        chunk = await world.tier.fetch_chunk(segment.metadata, "/cache/s.manifest", number, path)
        data += world.disk.peek(path)
        assert chunk.length == len(world.disk.peek(path))
    return data


@pytest.mark.parametrize(("compression", "encryption"), FORMS)
async def test_all_of_a_segment_is_read(compression: bool, encryption: bool) -> None:
    world = tier_world()
    segment = text_segment(abort_at=20, second_epoch_at=10)
    objects = _objects(world, segment, compression=compression, encryption=encryption)
    assert not any(b"varve" in data for data in objects.values())
    assert await _read(world, segment) == bytes(segment.log)
    for kind, data in segment.parts.items():
        assert await world.tier.fetch_side_file(segment.metadata, kind) == bytes(data)
    assert await world.tier.is_complete(segment.metadata)
    assert await world.tier.verify_segment(segment.metadata) == []


@pytest.mark.parametrize(("compression", "encryption"), FORMS)
async def test_a_flipped_bit_is_found_by_the_batches(compression: bool, encryption: bool) -> None:
    """What the manifest has no sums for."""
    world = tier_world()
    segment = text_segment()
    objects = _objects(
        world, segment, compression=compression, encryption=encryption, chunk_size=5000
    )
    (log,) = (name for name in objects if name.endswith(".log"))
    spoilt = bytearray(objects[log])
    # Among the records: of a batch's first bytes its own sum knows nothing.
    at = len(spoilt) // 2 if compression or encryption else segment.batches[15][0] + 100
    spoilt[at] ^= 4
    world.store._store(log, bytes(spoilt), None)
    assert await world.tier.verify_segment(segment.metadata)
    with pytest.raises(CorruptRemoteDataError):
        await _read(world, segment)


async def test_a_side_file_in_the_cache_that_changed_is_fetched_again() -> None:
    world = tier_world()
    segment = text_segment()
    _objects(world, segment)
    await world.tier.fetch_indexes(segment.metadata, "/cache", "s")
    manifest = SegmentManifest.from_json(world.disk.peek("/cache/s.manifest"), "k")
    assert not manifest.has_sums
    assert manifest.side_files[SideFile.OFFSET].crc >= 0
    world.disk.poke("/cache/s.timeindex", bytes(len(segment.parts[SideFile.TIMESTAMP])))
    with pytest.raises(Exception, match="not the one that was copied"):
        load(world.disk, "/cache/s", segment.metadata)


async def test_without_transactions_there_is_no_index_of_them() -> None:
    world = tier_world()
    segment = text_segment()
    objects = _objects(world, segment)
    (name,) = (name for name in objects if name.endswith(".rsm-manifest"))
    manifest = SegmentManifest.from_json(objects[name], name)
    assert manifest.metadata.txn_index_empty
    assert ObjectKeys().segment_keys(manifest.metadata).manifest == name
    again = SegmentManifest.from_json(manifest.to_json(), name)
    assert (again.to_json(), again.has_sums) == (manifest.to_json(), False)


async def test_what_is_restored_of_it_expires_only_when_told() -> None:
    """With Kafka's default of seven days all of it would go before anybody has read it."""
    world = tier_world()
    _objects(world, text_segment())
    content = await read_bucket(world.tier)
    (topic,) = content.topics.values()
    assert topic.facts.overrides == {"retention.ms": "-1", "retention.bytes": "-1"}
    assert content.cluster_ids == set()
    assert content.problems == []
    (note,) = content.notes
    assert "settings are not known" in note
    (partition,) = topic.partitions.values()
    assert len(partition.plan.segments) == 1


async def test_a_topic_that_varve_went_on_with_has_its_own_settings() -> None:
    world = tier_world()
    _objects(world, text_segment(start_offset=0))
    await world.copy(text_segment(start_offset=300, copy_id=2))
    content = await read_bucket(world.tier)
    (topic,) = content.topics.values()
    assert topic.facts.overrides["retention.ms"] == "1000"
    assert (topic.facts.partitions, content.cluster_ids) == (8, {"cluster-1"})


def test_a_manifest_that_tells_of_no_segment_is_refused() -> None:
    told = {"version": "1", "chunkIndex": {}, "segmentIndexes": {}, "compression": False}
    with pytest.raises(CorruptRemoteDataError, match="does not describe its segment"):
        SegmentManifest.from_json(json.dumps(told).encode(), "k")
    told["remoteLogSegmentMetadata"] = {}
    with pytest.raises(CorruptRemoteDataError, match="malformed"):
        SegmentManifest.from_json(json.dumps(told).encode(), "k")
    assert metadata()
