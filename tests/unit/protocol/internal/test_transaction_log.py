"""Records of __transaction_state: Kafka's bytes, ours, and damaged ones."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.internal.transaction_log import (
    TransactionLogValue,
    decode_transaction_log_key,
    decode_transaction_log_value,
    encode_transaction_log_key,
    encode_transaction_log_value,
)

# Written by the message classes of kafka-transaction-coordinator 4.2.0 from the values below.
KAFKA_KEY = bytes.fromhex("0000000474c3a478")
KAFKA_ONGOING = {
    0: bytes.fromhex(
        "0000000000000000000700030000ea60010000000200066f726465727300000002000000000000000500"
        "125f5f636f6e73756d65725f6f66667365747300000001000000310000018bcfe5687b0000018bcfe568"
        "00"
    ),
    1: bytes.fromhex(
        "0001000000000000000700030000ea600103076f726465727303000000000000000500135f5f636f6e73"
        "756d65725f6f6666736574730200000031000000018bcfe5687b0000018bcfe5680000"
    ),
}
KAFKA_TAGGED = bytes.fromhex(
    "0001000000000000000700030000ea600103076f726465727303000000000000000500135f5f636f6e73756d65"
    "725f6f6666736574730200000031000000018bcfe5687b0000018bcfe568000400080000000000000006010800"
    "000000000000080202000203020004"
)
KAFKA_EMPTY = {
    0: bytes.fromhex("0000000000000000000700000000000000ffffffff0000000000000000ffffffffffffffff"),
    1: bytes.fromhex("0001000000000000000700000000000000000000000000000000ffffffffffffffff00"),
}
ONGOING = TransactionLogValue(
    7,
    3,
    60_000,
    1,
    {"orders": [0, 5], "__consumer_offsets": [49]},
    1_700_000_000_123,
    1_700_000_000_000,
)
TAGGED = ONGOING._replace(
    previous_producer_id=6,
    next_producer_id=8,
    client_transaction_version=2,
    next_producer_epoch=4,
)
EMPTY = TransactionLogValue(7, 0, 0, 0, None, 0, -1)

int16s = st.integers(-(1 << 15), (1 << 15) - 1)
int32s = st.integers(-(1 << 31), (1 << 31) - 1)
int64s = st.integers(-(1 << 63), (1 << 63) - 1)
topics = st.dictionaries(st.text(max_size=200), st.lists(int32s, max_size=20), max_size=10)
values = st.builds(
    TransactionLogValue,
    int64s,
    int16s,
    int32s,
    st.integers(-128, 127),
    st.none() | topics,
    int64s,
    int64s,
    int64s,
    int64s,
    int16s,
    int16s,
)


def test_key_is_kafkas() -> None:
    assert encode_transaction_log_key("täx") == KAFKA_KEY
    assert decode_transaction_log_key(KAFKA_KEY) == "täx"


def test_keys_of_other_records_are_passed_over() -> None:
    assert decode_transaction_log_key(b"\x00\x01\x00\x01x") is None


@pytest.mark.parametrize("version", [0, 1])
def test_values_are_kafkas(version: int) -> None:
    for value, octets in ((ONGOING, KAFKA_ONGOING[version]), (EMPTY, KAFKA_EMPTY[version])):
        assert encode_transaction_log_value(value, version) == octets
        assert decode_transaction_log_value(octets) == value


def test_tagged_fields_are_kafkas() -> None:
    assert encode_transaction_log_value(TAGGED, 1) == KAFKA_TAGGED
    assert decode_transaction_log_value(KAFKA_TAGGED) == TAGGED


def test_old_version_drops_tagged_fields() -> None:
    assert encode_transaction_log_value(TAGGED, 0) == KAFKA_ONGOING[0]


def test_unknown_tags_are_skipped() -> None:
    assert decode_transaction_log_value(KAFKA_EMPTY[1][:-1] + b"\x01\x09\x02hi") == EMPTY


@pytest.mark.parametrize("version", [-1, 2])
def test_unknown_versions_are_refused(version: int) -> None:
    with pytest.raises(ValueError, match="not known"):
        encode_transaction_log_value(EMPTY, version)
    octets = version.to_bytes(2, "big", signed=True) + KAFKA_EMPTY[0][2:]
    with pytest.raises(DecodeError, match="not known"):
        decode_transaction_log_value(octets)


def test_names_have_a_limit() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        encode_transaction_log_key("x" * 32_768)


@pytest.mark.parametrize("octets", [KAFKA_ONGOING[0], KAFKA_TAGGED], ids=["0", "1"])
def test_every_cut_is_refused(octets: bytes) -> None:
    for end in range(len(octets)):
        with pytest.raises(DecodeError):
            decode_transaction_log_value(octets[:end])


@pytest.mark.parametrize("damaged", [b"", b"\x00", b"\x00\x00\x00\x05ab", b"\x00\x00\xff\xff"])
def test_damaged_keys_are_refused(damaged: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_transaction_log_key(damaged)


def test_tagged_field_of_a_wrong_size_is_refused() -> None:
    with pytest.raises(DecodeError, match="tagged field 2 of 1 bytes"):
        decode_transaction_log_value(KAFKA_EMPTY[1][:-1] + b"\x01\x02\x01\x00")


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_a_decode_error(data: bytes) -> None:
    with contextlib.suppress(DecodeError):
        decode_transaction_log_key(data)
    for version in (b"\x00\x00", b"\x00\x01"):
        with contextlib.suppress(DecodeError):
            decode_transaction_log_value(version + data)


@given(values)
def test_values_come_back(value: TransactionLogValue) -> None:
    assert decode_transaction_log_value(encode_transaction_log_value(value, 1)) == value
    old = value._replace(
        previous_producer_id=-1,
        next_producer_id=-1,
        client_transaction_version=0,
        next_producer_epoch=-1,
    )
    assert decode_transaction_log_value(encode_transaction_log_value(value, 0)) == old


@given(st.text(max_size=300))
def test_keys_come_back(transactional_id: str) -> None:
    assert decode_transaction_log_key(encode_transaction_log_key(transactional_id)) == (
        transactional_id
    )
