"""Markers that end a transaction."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.records.batch import checked_header, read_header
from protocol.records.builder import build_batch
from protocol.records.control import (
    ControlType,
    EndTransactionMarker,
    build_end_transaction_marker,
    parse_control_type,
    parse_end_transaction_marker,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "records"


@pytest.mark.parametrize("commit", [True, False])
def test_same_marker_as_kafka(commit: bool) -> None:
    """Byte for byte, and read back."""
    name, control_type = ("commit", ControlType.COMMIT) if commit else ("abort", ControlType.ABORT)
    golden = (GOLDEN / f"{name}.batch").read_bytes()
    ours = build_end_transaction_marker(
        producer_id=1000,
        producer_epoch=3,
        commit=commit,
        coordinator_epoch=17,
        timestamp_ms=1700000000123,
        base_offset=9,
        leader_epoch=4,
    )
    assert ours == golden
    header = checked_header(ours)
    assert header.is_control
    assert header.is_transactional
    assert header.base_sequence == -1
    assert parse_end_transaction_marker(memoryview(golden)) == EndTransactionMarker(
        control_type, 17, 9, 1700000000123
    )


def control_batch(key: bytes | None, value: bytes | None) -> memoryview:
    return memoryview(build_batch([(key, value, (), 0)], control=True))


def test_newer_versions_are_read_as_far_as_known() -> None:
    """A newer broker may have added fields after ours."""
    view = control_batch(b"\0\x01\0\x01new", b"\0\x02\0\0\0\x05new")
    marker = parse_end_transaction_marker(view)
    assert marker is not None
    assert (marker.control_type, marker.coordinator_epoch) == (ControlType.COMMIT, 5)


@pytest.mark.parametrize("number", [2, 5, 99])
def test_other_control_records_end_no_transaction(number: int) -> None:
    """Known or not, they are skipped, not refused."""
    key = b"\0\0" + number.to_bytes(2)
    assert parse_end_transaction_marker(control_batch(key, b"")) is None
    assert parse_control_type(key) == (ControlType.UNKNOWN if number == 99 else number)


def test_empty_control_batch_ends_nothing() -> None:
    """Compaction keeps the header of a marker for the producer's sake."""
    data = bytearray((GOLDEN / "empty.batch").read_bytes())
    data[22] |= 0x20
    assert parse_end_transaction_marker(memoryview(data)) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"\0\0\0\0\0\x01"),
        (b"\0\0\0", b"\0\0\0\0\0\x01"),
        (b"\xff\xff\0\x01", b"\0\0\0\0\0\x01"),
        (b"\0\0\0\x01", None),
        (b"\0\0\0\x01", b"\0\0\0\0\0"),
        (b"\0\0\0\x01", b"\xff\xff\0\0\0\x01"),
    ],
)
def test_damaged_markers_are_refused(key: bytes | None, value: bytes | None) -> None:
    """Missing, too short, or of a negative version."""
    with pytest.raises(DecodeError):
        parse_end_transaction_marker(control_batch(key, value))


def test_data_is_no_marker() -> None:
    """The control bit decides, not the content."""
    view = memoryview(build_batch([(b"\0\0\0\x01", b"\0\0\0\0\0\x01", (), 0)]))
    with pytest.raises(DecodeError, match="control"):
        parse_end_transaction_marker(view)


@given(
    commit=st.booleans(),
    epoch=st.integers(0, 2**31 - 1),
    timestamp=st.integers(0, 2**62),
    offset=st.integers(0, 2**62),
    place=st.integers(61, 77),
    byte=st.integers(0, 255),
)
def test_short_cut_reads_what_the_long_way_reads(
    commit: bool, epoch: int, timestamp: int, offset: int, place: int, byte: int
) -> None:
    """A byte behind the batch is passed over, and keeps it from the short cut."""
    batch = build_end_transaction_marker(
        producer_id=1,
        producer_epoch=2,
        commit=commit,
        coordinator_epoch=epoch,
        timestamp_ms=timestamp,
        base_offset=offset,
    )
    control_type = ControlType.COMMIT if commit else ControlType.ABORT
    expected = EndTransactionMarker(control_type, epoch, offset, timestamp)
    assert parse_end_transaction_marker(memoryview(batch)) == expected
    assert len(batch) == read_header(batch).size
    batch[place] = byte
    assert outcome(batch) == outcome(batch + b"?")


def outcome(batch: bytearray) -> object:
    """What is read, or that nothing can be."""
    try:
        return parse_end_transaction_marker(memoryview(batch))
    except DecodeError:
        return DecodeError
