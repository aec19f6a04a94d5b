"""Some records of a batch, cut out of it: the bytes that building it anew gives."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.records.batch import HEADER_SIZE, read_header
from protocol.records.builder import build_batch, rebuild_batch
from protocol.records.compression import Codec
from protocol.records.cut import cut_batch
from protocol.records.record import iterate_records, records_block

MIB = 1 << 20

contents = st.none() | st.binary(max_size=70) | st.just(bytes(64)) | st.just(bytes(8192))
rows = st.lists(
    st.tuples(
        contents,
        contents,
        st.lists(
            st.tuples(st.text(max_size=70), st.none() | st.binary(max_size=70)), max_size=2
        ).map(tuple),
        st.integers(0, 200) | st.integers(0, 2**45),
    ),
    min_size=1,
    max_size=90,
)


@given(rows, st.data(), st.sampled_from(Codec), st.booleans(), st.booleans())
def test_is_what_building_anew_gives(
    rows: list[Any], data: st.DataObject, codec: Codec, append_time: bool, twice: bool
) -> None:
    """With a horizon and without, by either kind of time; also of a batch that was cut before."""
    batch = build_batch(
        rows, base_offset=70, codec=codec, producer_id=5, timestamp_type=int(append_time)
    )
    for _ in range(1 + twice):
        header = read_header(batch)
        records = list(iterate_records(memoryview(batch), max_size=16 * MIB))
        indexes = st.integers(0, len(records) - 1)
        kept = sorted(data.draw(st.sets(indexes, min_size=1)))
        horizon = data.draw(st.none() | st.sampled_from((rows[0][3], 2**45)))
        block = records_block(memoryview(batch), header, max_size=16 * MIB)
        cut = cut_batch(header, block, kept, delete_horizon_ms=horizon)
        assert cut == rebuild_batch(
            header, [records[index] for index in kept], delete_horizon_ms=horizon
        )
        batch = cut


def test_what_would_be_written_otherwise_is_not_cut() -> None:
    """Attributes, or a number in two bytes that fits one."""
    header = read_header(build_batch([(b"k", b"v", (), 0)]))
    for record in (
        b"\x10\x01\0\0\x02k\x02v\0",
        b"\x90\0\0\0\0\x02k\x02v\0",
        b"\x12\0\x80\0\0\x02k\x02v\0",
        b"\x12\0\0\x80\0\x02k\x02v\0",
        b"\x12\0\0\0\x82\0k\x02v\0",
        b"\x12\0\0\0\x02k\x82\0v\0",
        b"\x12\0\0\0\x02k\x02v\x80\0",
    ):
        assert cut_batch(header, record, [0]) is None
    assert cut_batch(header, b"\x10\0\0\0\x02k\x02v\0", [0]) is not None


def test_damage_is_an_error() -> None:
    """Of a record that stays."""
    batch = build_batch([(b"k", b"v", (), 0), (b"l", b"w", (), 0)])
    block = bytes(batch[HEADER_SIZE:])
    for damaged in (block[:-1], block[:-1] + b"\x02", b"\x14" + block[1:]):
        with pytest.raises(DecodeError):
            cut_batch(read_header(batch), damaged, [0, 1])
