"""The producer snapshot's format."""

from struct import Struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import CorruptFileError
from storage.producers import snapshot
from storage.producers.entry import BATCHES_MAX, BatchMetadata, ProducerEntry
from storage.producers.snapshot import (
    decode_snapshot,
    encode_rows,
    first_open_offset,
    offset_of_snapshot,
    snapshot_name,
)
from tests.fakes.producer_snapshots import encode_snapshot

INT64 = st.integers(-(2**63), 2**63 - 1)
OFFSET = st.integers(0, 2**62)


@st.composite
def entries(draw: st.DrawFn) -> ProducerEntry:
    timestamp = draw(INT64)
    entry = ProducerEntry(
        draw(OFFSET),
        draw(st.integers(-1, 2**15 - 1)),
        draw(st.integers(-1, 2**31 - 1)),
        timestamp,
        draw(st.one_of(st.just(-1), OFFSET)),
    )
    for _ in range(draw(st.integers(0, BATCHES_MAX))):
        delta = draw(st.integers(0, 1000))
        last_sequence = draw(st.integers(0, 2**31 - 1))
        last_offset = draw(OFFSET) + delta
        time = draw(st.integers(-1, 2**62))
        entry.add_batch(BatchMetadata(last_sequence, last_offset, delta, time))
    return entry


def fields(entry: ProducerEntry) -> tuple[object, ...]:
    return (
        entry.producer_id,
        entry.epoch,
        entry.coordinator_epoch,
        entry.last_timestamp,
        entry.txn_first_offset,
        entry.batches,
    )


PRODUCERS = st.lists(entries(), max_size=8, unique_by=lambda one: one.producer_id)


@given(PRODUCERS)
def test_round_trip(producers: list[ProducerEntry]) -> None:
    """What is written is read."""
    decoded = decode_snapshot(encode_snapshot(producers), "x")
    assert [fields(entry) for entry in decoded] == [fields(entry) for entry in producers]


def test_bytes_are_kafkas() -> None:
    """Laid out by hand from ProducerSnapshot.json; the sum from RFC 3720's CRC-32C."""
    entry = ProducerEntry(5, 2, 3, 1_700_000_000_000, 40)
    entry.batches.append(BatchMetadata(11, 44, 4, 1_700_000_000_000))
    body = (
        b"\0\0\0\1"
        b"\0\0\0\0\0\0\0\5"
        b"\0\2"
        b"\0\0\0\x0b"
        b"\0\0\0\0\0\0\0\x2c"
        b"\0\0\0\4"
        b"\0\0\1\x8b\xcf\xe5\x68\x00"
        b"\0\0\0\3"
        b"\0\0\0\0\0\0\0\x28"
    )
    assert encode_snapshot([entry])[:2] == b"\0\1"
    assert encode_snapshot([entry])[6:] == body
    assert int.from_bytes(encode_snapshot([entry])[2:6], "big") == crc32c_by_bit(body)


def crc32c_by_bit(data: bytes) -> int:
    crc = 0xFFFF_FFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F6_3B78 if crc & 1 else 0)
    return crc ^ 0xFFFF_FFFF


def test_a_producer_has_an_entry_for_each_batch() -> None:
    """Whoever takes the last one of a producer, as Kafka, has its state."""
    entry = ProducerEntry(5, 2, 3, 1_000, 40)
    for at in range(3):
        entry.add_batch(BatchMetadata(at, 10 + at, 0, 1_000 + at))
    other = ProducerEntry(6, 0, -1, 5, -1)
    rows = [*Struct(">qhiqiqiq").iter_unpack(encode_snapshot([entry, other])[10:])]
    assert rows == [
        (5, 2, 0, 10, 0, 1_000, 3, -1),
        (5, 2, 1, 11, 0, 1_001, 3, -1),
        (5, 2, 2, 12, 0, 1_002, 3, 40),
        (6, 0, -1, -1, 0, 5, -1, -1),
    ]


def test_of_many_producers_only_the_last_batch_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "PRODUCERS_IN_FULL", 1)
    producers = [ProducerEntry(number, 0) for number in range(2)]
    for entry in producers:
        for at in range(3):
            entry.add_batch(BatchMetadata(at, 10 + at, 0, 1_000))
    decoded = decode_snapshot(encode_snapshot(producers), "x")
    assert [entry.batches for entry in decoded] == [[BatchMetadata(2, 12, 0, 1_000)]] * 2


def test_entries_of_an_earlier_epoch_are_no_batches_of_this_one() -> None:
    """A file of another program."""
    rows = ((5, 1, 7, 10, 0, 1_000, -1, -1), (5, 2, 0, 11, 0, 1_001, -1, -1))
    (entry,) = decode_snapshot(encode_rows([rows], 1), "x")
    assert (entry.epoch, entry.batches) == (2, [BatchMetadata(0, 11, 0, 1_001)])


def test_every_flipped_bit_is_noticed() -> None:
    """Version, sum, count and entries: nothing damaged is taken in."""
    data = encode_snapshot([ProducerEntry(5, 2, 3, 1_000, 40), ProducerEntry(6, 0, -1, 5, -1)])
    for bit in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptFileError):
            decode_snapshot(bytes(damaged), "x")


def test_every_prefix_is_noticed() -> None:
    """A torn write is not taken for a shorter snapshot."""
    data = encode_snapshot([ProducerEntry(5, 2, 3, 1_000, 40)])
    for size in range(len(data)):
        with pytest.raises(CorruptFileError):
            decode_snapshot(data[:size], "x")


def test_names() -> None:
    """20 digits, as Kafka's other files of that offset."""
    assert snapshot_name(42) == "00000000000000000042.snapshot"
    assert offset_of_snapshot("00000000000000000042.snapshot") == 42
    for name in ("42.snapshot.deleted", "x.snapshot", ".snapshot", "00000000000000000042.log"):
        assert offset_of_snapshot(name) is None


@given(PRODUCERS)
def test_the_earliest_open_transaction_is_found(producers: list[ProducerEntry]) -> None:
    data = encode_snapshot(producers)
    open_ones = [one.txn_first_offset for one in producers if one.txn_first_offset >= 0]
    assert first_open_offset(data, "x") == min(open_ones, default=None)
    with pytest.raises(CorruptFileError):
        first_open_offset(data[:-1], "x")
