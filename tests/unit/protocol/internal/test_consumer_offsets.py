"""Records of __consumer_offsets: Kafka's bytes, ours, and damaged ones."""

import contextlib
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.internal.consumer_group_records import ConsumerGroupMetadataKey
from protocol.internal.consumer_offsets import (
    NO_TOPIC_ID,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_metadata_value,
    decode_key,
    decode_offset_commit_value,
    encode_group_metadata_key,
    encode_group_metadata_value,
    encode_offset_commit_key,
    encode_offset_commit_value,
)
from protocol.internal.share_group_records import ShareGroupMetadataKey

# Written by the message classes of kafka-group-coordinator 4.2.0 from the values below.
KAFKA_OFFSET_KEY = bytes.fromhex("000100076772c3bc70706500066f726465727300000007")
KAFKA_GROUP_KEY = bytes.fromhex("000200076772c3bc707065")
KAFKA_OFFSET_VALUES = {
    0: bytes.fromhex("00000000001cbe991a1400056dc3ab74610000018bcfe5687b"),
    1: bytes.fromhex("00010000001cbe991a1400056dc3ab74610000018bcfe5687b0000018bcfee903b"),
    2: bytes.fromhex("00020000001cbe991a1400056dc3ab74610000018bcfe5687b"),
    3: bytes.fromhex("00030000001cbe991a140000000500056dc3ab74610000018bcfe5687b"),
    4: bytes.fromhex(
        "00040000001cbe991a1400000005066dc3ab74610000018bcfe5687b010010010203040506070809"
        "0a0b0c0d0e0f10"
    ),
}
KAFKA_GROUP_VALUES = {
    0: bytes.fromhex(
        "00000008636f6e73756d657200000003000572616e676500036d2d310000000200036d2d31000263"
        "31000a2f3132372e302e302e31000027100000000301020300000002040500036d2d320002633200"
        "092f31302e302e302e3100002af80000000000000000"
    ),
    1: bytes.fromhex(
        "00010008636f6e73756d657200000003000572616e676500036d2d310000000200036d2d31000263"
        "31000a2f3132372e302e302e310000ea60000027100000000301020300000002040500036d2d3200"
        "02633200092f31302e302e302e310000ee4800002af80000000000000000"
    ),
    2: bytes.fromhex(
        "00020008636f6e73756d657200000003000572616e676500036d2d310000018bcfe5687b00000002"
        "00036d2d3100026331000a2f3132372e302e302e310000ea60000027100000000301020300000002"
        "040500036d2d320002633200092f31302e302e302e310000ee4800002af80000000000000000"
    ),
    3: bytes.fromhex(
        "00030008636f6e73756d657200000003000572616e676500036d2d310000018bcfe5687b00000002"
        "00036d2d310004696e737400026331000a2f3132372e302e302e310000ea60000027100000000301"
        "020300000002040500036d2d32ffff0002633200092f31302e302e302e310000ee4800002af80000"
        "000000000000"
    ),
    4: bytes.fromhex(
        "000409636f6e73756d6572000000030672616e6765046d2d310000018bcfe5687b03046d2d310569"
        "6e73740363310b2f3132372e302e302e310000ea60000027100401020303040500046d2d32000363"
        "320a2f31302e302e302e310000ee4800002af801010000"
    ),
}
KAFKA_EMPTY_GROUP = bytes.fromhex("0003000000000000ffffffff000000000000000900000000")

TOPIC_ID = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
OFFSET = OffsetCommitValue(
    offset=123456789012,
    leader_epoch=5,
    metadata="mëta",
    commit_timestamp_ms=1700000000123,
)
MEMBERS: tuple[MemberMetadata, ...] = (
    MemberMetadata("m-1", "inst", "c1", "/127.0.0.1", 60000, 10000, b"\1\2\3", b"\4\5"),
    MemberMetadata("m-2", None, "c2", "/10.0.0.1", 61000, 11000, b"", b""),
)
GROUP = GroupMetadataValue("consumer", 3, "range", "m-1", 1700000000123, MEMBERS)


def test_keys_are_kafkas() -> None:
    """Both keys are written as Kafka writes them, and read back."""
    assert encode_offset_commit_key("grüppe", "orders", 7) == KAFKA_OFFSET_KEY
    assert encode_group_metadata_key("grüppe") == KAFKA_GROUP_KEY
    assert decode_key(KAFKA_OFFSET_KEY) == OffsetCommitKey("grüppe", "orders", 7)
    assert decode_key(b"\0\0" + KAFKA_OFFSET_KEY[2:]) == OffsetCommitKey("grüppe", "orders", 7)
    assert decode_key(KAFKA_GROUP_KEY) == GroupMetadataKey("grüppe")


def test_keys_of_newer_groups() -> None:
    """Those of consumer and share groups are read, those of streams groups passed over."""
    assert decode_key(b"\0\3\0\1g") == ConsumerGroupMetadataKey("g")
    assert decode_key(b"\0\x0b\0\1g") == ShareGroupMetadataKey("g")
    for version in (9, 17, 18, 99, -1):
        assert decode_key(version.to_bytes(2, "big", signed=True) + b"\0\1g") is None


@pytest.mark.parametrize("version", KAFKA_OFFSET_VALUES)
def test_offset_values_of_every_version_are_read(version: int) -> None:
    """What a version does not carry gets its default."""
    expected = OFFSET
    if version < 3:
        expected = expected._replace(leader_epoch=-1)
    if version == 1:
        expected = expected._replace(expire_timestamp_ms=1700000600123)
    if version == 4:
        expected = expected._replace(topic_id=TOPIC_ID)
    assert decode_offset_commit_value(KAFKA_OFFSET_VALUES[version]) == expected


def test_offset_values_are_written_as_kafka_does() -> None:
    """Version 4, or 1 when there is an expiry time."""
    assert encode_offset_commit_value(OFFSET._replace(topic_id=TOPIC_ID)) == KAFKA_OFFSET_VALUES[4]
    expiring = OFFSET._replace(expire_timestamp_ms=1700000600123)
    assert encode_offset_commit_value(expiring) == KAFKA_OFFSET_VALUES[1]


def test_long_metadata_has_a_long_prefix() -> None:
    """From 127 bytes up the length takes more than one byte: 200 + 1 is c9 01."""
    encoded = encode_offset_commit_value(OffsetCommitValue(1, -1, "m" * 200, 2))
    assert encoded[14:16] == bytes.fromhex("c901")
    assert decode_offset_commit_value(encoded).metadata == "m" * 200


@pytest.mark.parametrize("version", KAFKA_GROUP_VALUES)
def test_group_values_of_every_version_are_read(version: int) -> None:
    """What a version does not carry gets its default."""
    members = MEMBERS
    if version < 3:
        members = tuple(m._replace(group_instance_id=None) for m in members)
    if version < 1:
        members = tuple(m._replace(rebalance_timeout_ms=-1) for m in members)
    expected = GROUP._replace(members=members)
    if version < 2:
        expected = expected._replace(current_state_timestamp_ms=-1)
    assert decode_group_metadata_value(KAFKA_GROUP_VALUES[version]) == expected


def test_group_values_are_written_as_kafka_does() -> None:
    """Version 3, with members and without."""
    assert encode_group_metadata_value(GROUP) == KAFKA_GROUP_VALUES[3]
    empty = GroupMetadataValue("", 0, None, None, 9, ())
    assert encode_group_metadata_value(empty) == KAFKA_EMPTY_GROUP
    assert decode_group_metadata_value(KAFKA_EMPTY_GROUP) == empty


def test_strings_have_a_limit() -> None:
    """A string that the format cannot hold is refused before it is written."""
    with pytest.raises(ValueError, match="32768"):
        encode_group_metadata_key("g" * 0x8000)
    with pytest.raises(ValueError, match="32768"):
        encode_offset_commit_value(OFFSET._replace(metadata="m" * 0x8000))


@pytest.mark.parametrize(
    "damaged", [b"", b"\0", b"\0\2", b"\0\2\0\5abc", b"\0\2\0\2\xff\xfe", b"\0\1\xff\xff"]
)
def test_damaged_keys_are_refused(damaged: bytes) -> None:
    """Cut off, not UTF-8, or null."""
    with pytest.raises(DecodeError):
        decode_key(damaged)


def test_unknown_value_versions_are_refused() -> None:
    """A value of a version to come is not guessed at."""
    for version in (b"\0\5", b"\xff\xff"):
        with pytest.raises(DecodeError):
            decode_offset_commit_value(version + KAFKA_OFFSET_VALUES[4][2:])
        with pytest.raises(DecodeError):
            decode_group_metadata_value(version + KAFKA_GROUP_VALUES[4][2:])


def test_unknown_tagged_fields_are_skipped() -> None:
    """A newer broker may have added fields."""
    value = KAFKA_OFFSET_VALUES[4]
    with_more = value[:-19] + b"\2" + value[-18:] + b"\x07\3abc"
    assert decode_offset_commit_value(with_more).topic_id == TOPIC_ID


@pytest.mark.parametrize("version", range(5))
def test_every_cut_is_refused(version: int) -> None:
    """A value that ends early is an error, never half a value."""
    for value, decode in (
        (KAFKA_OFFSET_VALUES[version], decode_offset_commit_value),
        (KAFKA_GROUP_VALUES[version], decode_group_metadata_value),
    ):
        for size in range(len(value)):
            with pytest.raises(DecodeError):
                decode(value[:size])


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_a_decode_error(data: bytes) -> None:
    """Nothing else is raised, and nothing loops."""
    for decode in (decode_key, decode_offset_commit_value, decode_group_metadata_value):
        with contextlib.suppress(DecodeError):
            decode(data)


@given(
    st.builds(
        OffsetCommitValue,
        offset=st.integers(-(2**63), 2**63 - 1),
        leader_epoch=st.integers(-(2**31), 2**31 - 1),
        metadata=st.text(max_size=300),
        commit_timestamp_ms=st.integers(-(2**63), 2**63 - 1),
        expire_timestamp_ms=st.just(-1),
        topic_id=st.one_of(st.just(NO_TOPIC_ID), st.uuids()),
    )
)
def test_offset_values_come_back(value: OffsetCommitValue) -> None:
    """Round trip of whatever fits."""
    assert decode_offset_commit_value(encode_offset_commit_value(value)) == value
