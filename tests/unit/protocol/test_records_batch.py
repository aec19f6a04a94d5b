"""The batch header: what it says, what may be changed, and what is refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.records.batch import (
    HEADER,
    HEADER_SIZE,
    BatchHeader,
    UnsupportedMagicError,
    checked_header,
    crc32c,
    crc_matches,
    iterate_batches,
    read_header,
    set_max_timestamp,
    set_offset_and_epoch,
    update_crc,
)
from protocol.records.builder import build_batch

GOLDEN = Path(__file__).parents[2] / "golden" / "records"


def batch(count: int = 3, base_offset: int = 0) -> bytearray:
    return build_batch(
        [(b"k%d" % i, b"value", (), 1000 + i) for i in range(count)], base_offset=base_offset
    )


def test_crc32c_is_castagnoli() -> None:
    """The check value of CRC-32C (RFC 3720), over any kind of buffer."""
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(memoryview(bytearray(b"x123456789"))[1:]) == 0xE3069283
    assert crc32c(b"6789", crc32c(b"12345")) == 0xE3069283


def test_header_layout_is_61_bytes() -> None:
    """The struct and the byte table agree."""
    assert HEADER.size == HEADER_SIZE


@pytest.mark.parametrize("name", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_header_that_kafka_wrote(name: str) -> None:
    """Every field of a batch from released Kafka, and its CRC."""
    view = memoryview((GOLDEN / f"{name}.batch").read_bytes())
    header = checked_header(view)
    assert header.size == len(view)
    assert (header.base_offset, header.last_offset, header.next_offset) == (42, 45, 46)
    assert header.leader_epoch == 5
    assert header.codec == ["none", "gzip", "snappy", "lz4", "zstd"].index(name)
    assert header.is_transactional
    assert not header.is_control
    assert not header.is_log_append_time
    assert header.delete_horizon_ms is None
    assert header.base_timestamp == 1700000000123
    assert header.max_timestamp == 1700000009999
    assert (header.producer_id, header.producer_epoch) == (1000, 3)
    assert (header.base_sequence, header.last_sequence) == (7, 10)
    assert header.records_count == 4
    assert crc_matches(view, 0, header)


@given(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(-(2**15), 2**15 - 1),
)
def test_header_round_trips(offset: int, number: int, crc: int, attributes: int) -> None:
    """Any field values are read back, also those that make no sense."""
    header = BatchHeader(
        offset, number, number, 2, crc, attributes, number, offset, offset, offset, 7, number, 9
    )
    assert read_header(memoryview(b"xx" + HEADER.pack(*header)), 2) == header


def test_last_sequence_wraps() -> None:
    """Sequences run to 2**31 - 1, then 0."""
    header = read_header(batch(3))
    assert header.last_sequence == -1
    assert header._replace(base_sequence=2**31 - 2).last_sequence == 0


def test_offset_and_epoch_change_without_the_crc() -> None:
    """A leader gives a batch its place and the CRC stays as the producer made it."""
    data = batch()
    view = memoryview(data)
    before = read_header(view)
    set_offset_and_epoch(view, 0, 123456789012, 77)
    after = read_header(view)
    assert after == before._replace(base_offset=123456789012, leader_epoch=77)
    assert crc_matches(view, 0, after)


def test_log_append_time_sums_again() -> None:
    """Setting the time changes bytes under the CRC."""
    view = memoryview(batch())
    set_max_timestamp(view, 0, read_header(view), log_append_time=True, timestamp=5000)
    header = read_header(view)
    assert header.is_log_append_time
    assert header.max_timestamp == 5000
    assert crc_matches(view, 0, header)
    set_max_timestamp(view, 0, header, log_append_time=False, timestamp=1002)
    assert view == batch()


def test_every_flipped_bit_under_the_crc_is_noticed() -> None:
    """The CRC covers all from the attributes on, and nothing before the magic."""
    data = batch(1)
    view = memoryview(data)
    for bit in range(len(data) * 8):
        data[bit >> 3] ^= 1 << (bit & 7)
        byte = bit >> 3
        if byte < 8 or 12 <= byte < 16:
            assert crc_matches(view, 0, checked_header(view))
        else:
            try:
                assert not crc_matches(view, 0, checked_header(view))
            except DecodeError:
                assert 8 <= byte < 12 or byte == 16
        data[bit >> 3] ^= 1 << (bit & 7)


def test_batches_back_to_back_are_found() -> None:
    """Positions and headers in order."""
    first, second = batch(2, base_offset=10), batch(1, base_offset=12)
    found = list(iterate_batches(memoryview(first + second)))
    assert [(position, header.base_offset) for position, header in found] == [
        (0, 10),
        (len(first), 12),
    ]
    assert list(iterate_batches(memoryview(b""))) == []


def test_cut_off_last_batch() -> None:
    """An error to a broker; quietly left out for a consumer. At every byte."""
    first, second = batch(2), batch(1)
    data = bytes(first + second)
    for size in range(len(first) + 1, len(data)):
        view = memoryview(data)[:size]
        with pytest.raises(DecodeError):
            list(iterate_batches(view))
        assert len(list(iterate_batches(view, allow_partial=True))) == 1


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48, 2**31 - 1])
def test_impossible_batch_length_is_refused(length: int) -> None:
    """Less than a header, or more than there is; the walk cannot stand still or go back."""
    data = batch()
    data[8:12] = length.to_bytes(4, signed=True)
    with pytest.raises(DecodeError, match="claims"):
        list(iterate_batches(memoryview(data)))


@pytest.mark.parametrize("magic", [0, 1, 3, -1])
def test_other_magic_has_its_own_error(magic: int) -> None:
    """Also where the old formats are shorter than our header."""
    data = bytearray(26)
    data[16] = magic & 0xFF
    with pytest.raises(UnsupportedMagicError) as caught:
        checked_header(memoryview(data))
    assert caught.value.magic == magic


def test_update_crc_at_a_position() -> None:
    """A batch that is not the first in its buffer."""
    data = bytearray(b"xyz") + batch()
    data[-1] ^= 1
    view = memoryview(data)
    assert not crc_matches(view, 3, checked_header(view, 3))
    update_crc(view, 3, len(data) - 3)
    assert crc_matches(view, 3, checked_header(view, 3))


def test_header_needs_61_bytes() -> None:
    """One byte less, or a position outside, is refused."""
    for position, size in ((0, 60), (1, 61), (-1, 100)):
        with pytest.raises(DecodeError):
            read_header(bytes(size), position)
