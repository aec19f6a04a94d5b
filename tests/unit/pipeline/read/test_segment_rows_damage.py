"""Whatever is damaged: every row that is given is right, and every other one is told as lost."""

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from pipeline.read.loss import LossReport
from protocol.records.compression import Codec
from tests.effort import examples
from tests.fakes.tiered.memory_object_store import StoredObject
from tests.unit.pipeline.read.piece.test_segment_rows import FORMS, right, rows_of
from tests.unit.pipeline.read.segment_world import (
    PARTITION,
    SegmentWorld,
    plugin_objects_of,
    record_segment,
    segment_world,
)

LEADER_EPOCH = range(12, 16)
"""Bytes of a batch that nothing vouches for where its chunk has no sum."""


def flip(world: SegmentWorld, key: str, positions: list[int]) -> None:
    data = bytearray(world.store.objects[key].data)
    for position in positions:
        data[position % len(data)] ^= 1 << position % 8
    world.store.objects[key] = StoredObject(bytes(data), 0)


def check(world: SegmentWorld, segment: Any, piece: Any) -> None:
    loss = LossReport(PARTITION)
    found = rows_of(world, piece, loss)
    expected = right(segment, piece)
    kept = [
        at
        for at, offset in enumerate(expected["offset"])
        if not any(one.start <= offset < one.end for one in loss.ranges)
    ]
    assert found == {name: [column[at] for at in kept] for name, column in expected.items()}
    assert loss.offsets == len(expected["offset"]) - len(kept)


@examples(150)
@given(data=st.data())
def test_a_segment_with_sums(data: st.DataObject) -> None:
    segment = record_segment(
        data.draw(st.integers(1, 15)),
        codec=data.draw(st.sampled_from([Codec.NONE, Codec.LZ4])),
        index_every=data.draw(st.integers(1, 5)),
    )
    form = data.draw(st.sampled_from(FORMS))
    chunk_bytes = data.draw(st.integers(50, len(segment.log) + 10))
    told = segment.metadata
    start = data.draw(st.integers(told.start_offset, told.end_offset))
    with segment_world(**form, chunk_bytes=chunk_bytes) as world:
        piece = world.copy(segment)._replace(start_offset=start)
        keys = world.open(piece).keys
        positions = st.lists(st.integers(0, 1 << 20), min_size=1, max_size=3)
        flip(world, keys.log, data.draw(positions))
        if data.draw(st.integers(0, 4)) == 0:
            flip(world, keys.indexes, data.draw(positions))
        check(world, segment, piece)


@examples(100)
@given(data=st.data())
def test_a_segment_of_another_program(data: st.DataObject) -> None:
    """A batch's own sum leaves out its first bytes; what is in them has to fit all the same."""
    segment = record_segment(data.draw(st.integers(1, 15)), index_every=3)
    encryption = data.draw(st.booleans())
    with segment_world() as world:
        piece = plugin_objects_of(
            world,
            segment,
            chunk_size=data.draw(st.integers(100, len(segment.log) + 10)),
            encryption=encryption,
        )
        key = world.open(piece).keys.log
        if encryption:
            positions = data.draw(st.lists(st.integers(0, 1 << 20), min_size=1, max_size=3))
        else:
            number = data.draw(st.integers(0, len(segment.batches) - 1))
            ends = [*(at for at, _ in segment.batches[1:]), len(segment.log)]
            first = segment.batches[number][0]
            at = data.draw(st.integers(0, 30) | st.integers(0, ends[number] - first - 1))
            assume(at not in LEADER_EPOCH)
            positions = [first + at]
        flip(world, key, positions)
        check(world, segment, piece)
