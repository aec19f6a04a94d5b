import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.plan.piece import RemotePiece
from pipeline.read.bytes.byte_source import ByteSource, FileBytes
from pipeline.read.bytes.chunk_stream import (
    AHEAD_BYTES_MAX,
    AHEAD_MAX,
    CARRY_BYTES_MAX,
    GROUP_BYTES_MAX,
    ChunkStream,
    LogBytes,
    chunk_groups,
)
from pipeline.read.read_errors import DamagedDataError
from tests.effort import examples
from tests.fakes.tiered.memory_object_store import FOREVER, Fault, StoredObject
from tests.unit.pipeline.read.segment_world import SegmentWorld, segment_world
from tests.unit.tiered.format.closed_segments import make_segment
from tests.unit.tiered.storage_manager.memory_tier import CHUNK, text_segment
from tiered.errors import ObjectNotFoundError, StoreDeniedError

NOTHING = memoryview(b"")

FORMS: list[dict[str, Any]] = [
    {},
    {"compression": True},
    {"encryption": True},
    {"compression": True, "encryption": True},
]


def stream_of(
    world: SegmentWorld,
    piece: RemotePiece,
    source: ByteSource | None = None,
    group_bytes: int = GROUP_BYTES_MAX,
) -> ChunkStream:
    opened = world.open(piece)
    position, end = piece.position, piece.end_position
    return ChunkStream(opened, source or world.source(opened), position, end, group_bytes)


def drained(stream: LogBytes, carry_bytes: int = 0) -> bytes:
    """All of it; so much of each memory is carried into the next."""
    parts = []
    carried = NOTHING
    while True:
        expected = bytes(carried)
        data = stream.next(carried)
        if data is None:
            break
        assert data[: len(expected)] == expected
        keep = min(carry_bytes, len(data))
        parts.append(bytes(data[: len(data) - keep]))
        carried = data[len(data) - keep :]
    return b"".join([*parts, bytes(carried)])


@pytest.mark.parametrize("form", FORMS)
def test_all_bytes_come_in_order(form: dict[str, Any]) -> None:
    segment = text_segment()
    with segment_world(**form) as world:
        assert drained(stream_of(world, world.copy(segment))) == bytes(segment.log)


@examples(60)
@given(data=st.data())
def test_any_part_comes_whole_whatever_the_chunks_are(data: st.DataObject) -> None:
    segment = text_segment(6)
    size = len(segment.log)
    form = data.draw(st.sampled_from(FORMS))
    chunk_bytes = data.draw(st.one_of(st.integers(1, 60), st.integers(60, size + 10)))
    position = data.draw(st.integers(0, size - 1))
    end = data.draw(st.integers(position + 1, size))
    carry = data.draw(st.integers(0, 500))
    group_bytes = data.draw(st.integers(1, size))
    with segment_world(**form, chunk_bytes=chunk_bytes) as world:
        piece = world.copy(segment)._replace(position=position, end_position=end)
        assert (
            drained(stream_of(world, piece, None, group_bytes), carry) == segment.log[position:end]
        )


def test_small_chunks_are_asked_for_together() -> None:
    with segment_world(chunk_bytes=100) as world:
        drained(stream_of(world, world.copy(text_segment())))
        assert world.store.calls["get_range"] == 1


def test_no_request_is_larger_than_its_bound() -> None:
    segment = make_segment([bytes(1 << 20)] * 10)
    with segment_world(chunk_bytes=(1 << 19) + 7) as world:
        piece = world.copy(segment)
        opened = world.open(piece)
        sizes = [group.stored_size for group in chunk_groups(opened, 0, piece.end_position)]
        assert sum(sizes) == len(segment.log)
        assert max(sizes) <= GROUP_BYTES_MAX
        assert len(sizes) == 3


def test_requests_are_under_way_before_they_are_waited_for() -> None:
    """And never more than their bound."""
    segment = make_segment([bytes(1 << 20)] * 30)
    with segment_world(chunk_bytes=4 << 20) as world:
        stream = stream_of(world, world.copy(segment))
        stream.next(NOTHING)
        stream.next(NOTHING)

        async def asked() -> int:
            return world.store.calls["get_range"]

        assert world.thread.run(asked()) == AHEAD_MAX + 1
        stream.close()
    assert AHEAD_MAX * GROUP_BYTES_MAX <= AHEAD_BYTES_MAX


@pytest.mark.parametrize("form", FORMS)
def test_a_chunk_that_came_damaged_is_fetched_once_more(form: dict[str, Any]) -> None:
    segment = text_segment()
    with segment_world(**form, chunk_bytes=CHUNK) as world:
        piece = world.copy(segment)
        world.store.fail("get_range", Fault.WRONG_BYTES)
        assert drained(stream_of(world, piece)) == bytes(segment.log)
        assert world.store.calls["get_range"] == 2


@pytest.mark.parametrize("form", FORMS)
def test_a_damaged_chunk_is_told_after_what_comes_before_it(form: dict[str, Any]) -> None:
    segment = text_segment()
    with segment_world(**form, chunk_bytes=CHUNK) as world:
        piece = world.copy(segment)
        opened = world.open(piece)
        chunk = opened.manifest.chunk(3)
        stored = bytearray(world.store.objects[opened.keys.log].data)
        stored[chunk.stored_position + chunk.stored_size // 2] ^= 1
        world.store.objects[opened.keys.log] = StoredObject(bytes(stored), 0)
        stream = stream_of(world, piece)
        data = stream.next(NOTHING)
        assert bytes(data or b"") == segment.log[: 3 * CHUNK]
        with pytest.raises(DamagedDataError, match="chunk 3") as error:
            stream.next(NOTHING)
        assert error.value.key == opened.keys.log
        assert error.value.position == chunk.stored_position
        assert (error.value.log_position, error.value.log_end) == (3 * CHUNK, 4 * CHUNK)


def test_what_is_there_of_an_object_that_is_cut_off_is_read() -> None:
    segment = text_segment()
    with segment_world(chunk_bytes=CHUNK) as world:
        piece = world.copy(segment)
        opened = world.open(piece)
        cut = world.store.objects[opened.keys.log].data[: 4 * CHUNK + 10]
        world.store.objects[opened.keys.log] = StoredObject(cut, 0)
        stream = stream_of(world, piece)
        assert bytes(stream.next(NOTHING) or b"") == segment.log[: 4 * CHUNK]
        with pytest.raises(DamagedDataError, match="the object has 4010 bytes") as error:
            stream.next(NOTHING)
        assert error.value.log_position == 4 * CHUNK


def test_an_object_that_is_gone_is_told_as_such() -> None:
    with segment_world() as world:
        piece = world.copy(text_segment())
        opened = world.open(piece)
        del world.store.objects[opened.keys.log]
        with pytest.raises(ObjectNotFoundError):
            stream_of(world, piece).next(NOTHING)


def test_a_store_that_denies_is_told_as_such() -> None:
    with segment_world() as world:
        piece = world.copy(text_segment())
        world.store.fail("get_range", Fault.DENIED, times=FOREVER)
        with pytest.raises(StoreDeniedError):
            stream_of(world, piece).next(NOTHING)


@pytest.mark.parametrize("form", FORMS)
def test_a_file_is_read_into_one_memory(form: dict[str, Any]) -> None:
    """Which holds what is carried and what comes next at once."""
    segment = make_segment([bytes([number]) * 50_000 for number in range(250)])
    with segment_world(**form, chunk_bytes=1 << 20) as world:
        piece = world.copy(segment)
        opened = world.open(piece)
        disk = world.tier.disk
        disk.replace_bytes("/object", world.store.objects[opened.keys.log].data)
        source = FileBytes(disk, "/object", opened.keys.log, opened.manifest.log_size)
        stream = ChunkStream(opened, source, 0, piece.end_position)
        assert drained(stream, 70_000) == bytes(segment.log)


def test_the_most_that_is_carried_fits_in_front() -> None:
    segment = make_segment([bytes(1 << 20)] * 9)
    with segment_world(chunk_bytes=CARRY_BYTES_MAX) as world:
        stream = stream_of(world, world.copy(segment))
        assert drained(stream, CARRY_BYTES_MAX) == bytes(segment.log)


def test_closing_gives_up_what_is_under_way() -> None:
    segment = make_segment([bytes(1 << 20)] * 30)
    with segment_world(chunk_bytes=4 << 20) as world:
        piece = world.copy(segment)
        stream = stream_of(world, piece)
        world.store.fail("get_range", Fault.HANG, skip=1, times=FOREVER)
        stream.next(NOTHING)
        stream.close()
        assert _hanging(world) == 0


def _hanging(world: SegmentWorld) -> int:
    async def count() -> int:
        for _ in range(100):
            await asyncio.sleep(0)
        return world.store.hanging

    return world.thread.run(count())
