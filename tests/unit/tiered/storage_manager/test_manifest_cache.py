from array import array
from dataclasses import replace
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tiered.format.closed_segments import FACTS, metadata
from tiered.format.chunk_index import FixedChunkIndex
from tiered.format.manifest import SegmentManifest
from tiered.format.transform import ChunkTransform
from tiered.segment_metadata import RemoteLogSegmentId
from tiered.storage_manager.manifest_cache import ManifestMemory, OpenManifest


def opened(number: int, chunks: int = 1) -> OpenManifest:
    segment_id = RemoteLogSegmentId(metadata().partition, UUID(int=number))
    manifest = SegmentManifest(
        metadata=replace(metadata(), segment_id=segment_id),
        chunk_index=FixedChunkIndex(1, chunks, 1, 1),
        chunk_crcs=array("I"),
        stored_crcs=array("I"),
        side_files={},
        compression=False,
        encryption=None,
        topic=FACTS,
        created_ms=0,
        software="",
    )
    return OpenManifest(manifest, ChunkTransform())


@given(st.lists(st.tuples(st.sampled_from("pgf"), st.integers(0, 6), st.integers(1, 300))))
def test_memory_stays_within_its_bound(steps: list[tuple[str, int, int]]) -> None:
    """Whatever is put, asked for and forgotten; and the weight is that of what is there."""
    memory = ManifestMemory(40_000)
    for step, number, chunks in steps:
        if step == "p":
            memory.put(opened(number, chunks))
        elif step == "f":
            memory.forget(UUID(int=number))
        else:
            memory.get(UUID(int=number))
        assert memory.weight <= 40_000
    found = [each for number in range(7) if (each := memory.get(UUID(int=number)))]
    assert memory.weight == sum(each.weight for each in found)
    assert memory.as_dict()["entries"] == len(found)


def test_the_least_used_goes_first() -> None:
    """Asking counts as using."""
    each = opened(0).weight
    memory = ManifestMemory(3 * each)
    for number in range(3):
        memory.put(opened(number))
    assert memory.get(UUID(int=0)) is not None
    memory.put(opened(3))
    assert memory.get(UUID(int=1)) is None
    assert memory.get(UUID(int=0)) is not None
    assert (memory.hits, memory.misses) == (2, 1)


def test_one_that_is_too_large_is_not_kept() -> None:
    """It would push all others out, and itself too."""
    memory = ManifestMemory(10_000)
    memory.put(opened(1, 1000))
    assert memory.as_dict()["entries"] == memory.weight == 0
