import re
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.plan.segment_index import SegmentIndex, parse_offset_index, read_segment_index
from tests.fakes.tiered.memory_object_store import Fault
from tests.unit.pipeline.plan.bucket_world import BucketWorld


def pack(*entries: tuple[int, int]) -> bytes:
    return b"".join(struct.pack(">ii", *one) for one in entries)


def test_entries_are_offsets_and_positions() -> None:
    index = parse_offset_index(pack((4, 100), (9, 200)), 50, 69, 300)
    assert (index.log_bytes, [*index.last_offsets], [*index.positions]) == (
        300,
        [54, 59],
        [100, 200],
    )


def test_zeros_that_a_broker_had_preallocated_are_none() -> None:
    index = parse_offset_index(pack((4, 100), (9, 256)) + bytes(80), 50, 69, 300)
    assert [*index.positions] == [100, 256]
    assert [*parse_offset_index(bytes(80), 50, 69, 300).positions] == []


@pytest.mark.parametrize(
    "data",
    [
        b"1234567",
        pack((4, 100), (4, 200)),
        pack((4, 100), (5, 100)),
        pack((20, 100)),
        pack((4, 300)),
        pack((4, 0)),
        pack((-1, 10)),
    ],
)
def test_what_is_no_index_of_such_a_segment_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="offset index"):
        parse_offset_index(data, 50, 69, 300)


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=30),
    st.sets(st.integers(1, 29)),
    st.integers(0, 150),
)
def test_all_rows_from_and_below_an_offset_lie_between_its_positions(
    batches: list[int], indexed: set[int], offset: int
) -> None:
    """Of batches of some records each, 10 bytes a batch."""
    starts = [sum(batches[:number]) for number in range(len(batches) + 1)]
    entries = sorted(number for number in indexed if number < len(batches))
    index = SegmentIndex(
        10 * len(batches),
        [starts[number + 1] - 1 for number in entries],
        [10 * number for number in entries],
    )
    for number in range(len(batches)):
        position, last = 10 * number, starts[number + 1] - 1
        if last >= offset:
            assert index.position_of(offset) <= position
        if starts[number] < offset:
            assert index.position_behind(offset) >= position + 10
    near = index.offset_near(offset)
    assert near is None or near in starts


async def test_it_is_read_from_the_bucket_and_a_damaged_one_has_no_entries(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = BucketWorld(encryption=True)
    leader = world.replica("a")
    leader.write(30)
    leader.roll()
    (metadata,) = await world.copy(leader)
    index = await read_segment_index(world.bucket, metadata)
    assert len(index.positions) > 5
    assert index.log_bytes == metadata.segment_size_bytes
    world.store.fail("get_range", Fault.WRONG_BYTES, times=2)
    index = await read_segment_index(world.bucket, metadata)
    assert (index.log_bytes, [*index.positions]) == (metadata.segment_size_bytes, [])
    assert (index.position_of(20), index.position_behind(5)) == (0, index.log_bytes)
    assert re.search(r"\.indexes at byte .*fails its CRC", caplog.text)
