from collections.abc import Iterator
from uuid import UUID

import pytest

from pipeline.read.bytes.open_segment import keys_of, open_segment
from pipeline.read.read_errors import DamagedDataError
from storage.environment.randomness import SeededRandomness
from tests.fakes.tiered.memory_object_store import FOREVER, Fault, StoredObject
from tests.unit.pipeline.read.segment_world import SegmentWorld, segment_world
from tests.unit.tiered.storage_manager.memory_tier import text_segment
from tiered.errors import ObjectNotFoundError, RemoteStorageError
from tiered.format.key_ring import KeyRing


@pytest.fixture
def world() -> Iterator[SegmentWorld]:
    with segment_world() as world:
        yield world


def test_a_manifest_is_fetched_once_for_all_pieces(world: SegmentWorld) -> None:
    piece = world.copy(text_segment())
    first = world.open(piece)
    again = world.open(piece._replace(position=400))
    assert first.opened is again.opened
    assert world.store.log == [("get", keys_of(piece).manifest)]


def test_a_manifest_that_came_damaged_is_fetched_once_more(world: SegmentWorld) -> None:
    piece = world.copy(text_segment())
    world.store.fail("get", Fault.WRONG_BYTES)
    assert world.open(piece).manifest.metadata.id == piece.segment_id
    assert world.store.calls["get"] == 2


def test_a_damaged_manifest_is_told_with_object(world: SegmentWorld) -> None:
    piece = world.copy(text_segment())
    world.store.fail("get", Fault.WRONG_BYTES, times=FOREVER)
    with pytest.raises(DamagedDataError, match="the manifest fails its CRC") as error:
        world.open(piece)
    assert error.value.key == keys_of(piece).manifest
    assert (error.value.log_position, error.value.log_end) == (-1, -1)


def test_a_manifest_of_a_newer_version_is_refused(world: SegmentWorld) -> None:
    piece = world.copy(text_segment())
    key = keys_of(piece).manifest
    newer = b'{"version":"2","chunkIndex":{}}'
    world.store.objects[key] = StoredObject(newer, 0)
    with pytest.raises(DamagedDataError, match="written by a newer Varve or by another program"):
        world.open(piece)


def test_the_manifest_of_another_segment_is_refused(world: SegmentWorld) -> None:
    """Somebody copied objects by hand."""
    piece = world.copy(text_segment())
    other = world.copy(text_segment(copy_id=2))
    world.store.objects[keys_of(piece).manifest] = world.store.objects[keys_of(other).manifest]
    with pytest.raises(DamagedDataError, match="the manifest is of"):
        world.open(piece)


def test_a_plan_beyond_the_segments_end_is_refused(world: SegmentWorld) -> None:
    segment = text_segment()
    piece = world.copy(segment)
    with pytest.raises(DamagedDataError, match=f"has {len(segment.log)} bytes by its manifest"):
        world.open(piece._replace(end_position=len(segment.log) + 1))


def test_a_segment_that_is_gone_is_told_as_such(world: SegmentWorld) -> None:
    piece = world.copy(text_segment())._replace(segment_id=UUID(int=99))
    with pytest.raises(ObjectNotFoundError, match="rsm-manifest"):
        world.open(piece)


def test_a_missing_key_pair_is_named() -> None:
    with segment_world(encryption=True) as world:
        piece = world.copy(text_segment())
        ring = KeyRing("", {}, SeededRandomness(1))
        call = open_segment(world.store, ring, world.manifests, piece)
        with pytest.raises(RemoteStorageError, match="needs the key pair 'none'"):
            world.thread.run(call)


def test_a_denied_bucket_is_no_loss(world: SegmentWorld) -> None:
    piece = world.copy(text_segment())
    world.store.fail("get", Fault.DENIED, times=FOREVER)
    with pytest.raises(RemoteStorageError, match="403"):
        world.open(piece)


def test_the_names_are_those_of_the_copy() -> None:
    segment = text_segment()
    with segment_world() as world:
        piece = world.copy(segment)
        assert sorted(keys_of(piece)) == sorted(world.store.objects)
