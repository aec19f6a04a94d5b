from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.plan.piece import RemotePiece
from pipeline.read.bytes.large_chunks import LargeChunkStream
from pipeline.read.read_errors import DamagedDataError
from tests.effort import examples
from tests.fakes.tiered.memory_object_store import FOREVER, Fault, StoredObject
from tests.unit.pipeline.read.bytes.test_chunk_stream import FORMS, NOTHING, drained
from tests.unit.pipeline.read.segment_world import (
    SegmentWorld,
    plugin_objects_of,
    segment_world,
)
from tests.unit.tiered.storage_manager.memory_tier import text_segment
from tiered.errors import ObjectNotFoundError

SLICE = 700


def stream_of(
    world: SegmentWorld, piece: RemotePiece, slice_bytes: int = SLICE
) -> LargeChunkStream:
    opened = world.open(piece)
    return LargeChunkStream(
        opened, world.source(opened), piece.position, piece.end_position, slice_bytes
    )


@examples(60)
@given(data=st.data())
def test_any_part_comes_whole_whatever_slices_are(data: st.DataObject) -> None:
    segment = text_segment(6)
    size = len(segment.log)
    form = data.draw(st.sampled_from(FORMS))
    chunk_bytes = data.draw(st.integers(50, size + 10))
    slice_bytes = data.draw(st.integers(5, size))
    position = data.draw(st.integers(0, size - 1))
    end = data.draw(st.integers(position + 1, size))
    carry = data.draw(st.integers(0, 500))
    with segment_world(**form, chunk_bytes=chunk_bytes) as world:
        piece = world.copy(segment)._replace(position=position, end_position=end)
        assert drained(stream_of(world, piece, slice_bytes), carry) == segment.log[position:end]


@examples(30)
@given(data=st.data())
def test_another_programs_chunks_are_read_once(data: st.DataObject) -> None:
    segment = text_segment(6)
    encryption = data.draw(st.booleans())
    compression = data.draw(st.booleans())
    with segment_world() as world:
        piece = plugin_objects_of(
            world,
            segment,
            chunk_size=len(segment.log),
            compression=compression,
            encryption=encryption,
        )
        stream = stream_of(world, piece, data.draw(st.integers(40, 3000)))
        assert drained(stream) == bytes(segment.log)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("skip", [0, 2, 9, 17, 25, 33])
def test_one_fault_of_the_network_does_no_harm(form: dict[str, Any], skip: int) -> None:
    """In the first reading or in the second."""
    segment = text_segment()
    with segment_world(**form, chunk_bytes=len(segment.log)) as world:
        piece = world.copy(segment)
        world.store.fail("get_range", Fault.WRONG_BYTES, skip=skip)
        assert drained(stream_of(world, piece)) == bytes(segment.log)


@pytest.mark.parametrize("form", FORMS)
def test_nothing_of_a_damaged_chunk_is_given(form: dict[str, Any]) -> None:
    segment = text_segment()
    half = len(segment.log) // 2
    with segment_world(**form, chunk_bytes=half) as world:
        piece = world.copy(segment)
        opened = world.open(piece)
        chunk = opened.manifest.chunk(1)
        data = bytearray(world.store.objects[opened.keys.log].data)
        data[chunk.stored_position + chunk.stored_size - 20] ^= 1
        world.store.objects[opened.keys.log] = StoredObject(bytes(data), 0)
        stream = stream_of(world, piece)
        given = bytearray()

        def drain() -> None:
            while (part := stream.next(NOTHING)) is not None:
                given.extend(part)

        with pytest.raises(DamagedDataError, match="chunk 1") as error:
            drain()
        assert given == segment.log[:half]
        assert error.value.position == chunk.stored_position
        assert (error.value.log_position, error.value.log_end) == (half, 2 * half)


@pytest.mark.parametrize("form", FORMS)
def test_an_object_that_is_cut_off_is_damaged(form: dict[str, Any]) -> None:
    segment = text_segment()
    with segment_world(**form, chunk_bytes=len(segment.log)) as world:
        piece = world.copy(segment)
        key = world.open(piece).keys.log
        data = world.store.objects[key].data
        world.store.objects[key] = StoredObject(data[:-30], 0)
        with pytest.raises(DamagedDataError, match="the object has"):
            drained(stream_of(world, piece))


@pytest.mark.parametrize("form", FORMS)
def test_an_object_that_is_gone_is_told_as_such(form: dict[str, Any]) -> None:
    segment = text_segment()
    with segment_world(**form, chunk_bytes=len(segment.log)) as world:
        piece = world.copy(segment)
        del world.store.objects[world.open(piece).keys.log]
        with pytest.raises(ObjectNotFoundError):
            drained(stream_of(world, piece))


def test_plain_slices_that_are_not_wanted_are_read_for_their_sum_only() -> None:
    segment = text_segment()
    with segment_world(chunk_bytes=len(segment.log)) as world:
        piece = world.copy(segment)._replace(position=5 * SLICE + 3, end_position=6 * SLICE)
        assert drained(stream_of(world, piece)) == segment.log[5 * SLICE + 3 : 6 * SLICE]
        slices = -(-len(segment.log) // SLICE)
        assert slices < world.store.calls["get_range"] <= slices + 3


def test_a_store_that_fails_for_good_is_told_as_such() -> None:
    segment = text_segment()
    with segment_world(chunk_bytes=len(segment.log)) as world:
        piece = world.copy(segment)
        world.store.fail("get_range", Fault.WRONG_BYTES, times=FOREVER)
        with pytest.raises(DamagedDataError, match="chunk 0: it"):
            drained(stream_of(world, piece))
