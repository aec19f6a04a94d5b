"""Records of consumer groups: Kafka's bytes, ours, and damaged ones."""

import contextlib
from collections.abc import Callable
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.internal.consumer_group_records import (
    ClassicMemberMetadata,
    ClassicProtocolMetadata,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    decode_consumer_group_current_member_assignment_value,
    decode_consumer_group_member_metadata_value,
    decode_consumer_group_metadata_value,
    decode_consumer_group_regular_expression_value,
    decode_consumer_group_target_assignment_member_value,
    decode_consumer_group_target_assignment_metadata_value,
    encode_consumer_group_current_member_assignment_value,
    encode_consumer_group_key,
    encode_consumer_group_member_metadata_value,
    encode_consumer_group_metadata_value,
    encode_consumer_group_regular_expression_value,
)
from protocol.internal.consumer_offsets import decode_key
from protocol.internal.target_assignment import (
    encode_target_assignment_member_value,
    encode_target_assignment_metadata_value,
)

# Written by the message classes of kafka-group-coordinator 4.2.0 from the values beside them.
KAFKA_KEYS: list[tuple[ConsumerGroupKey, str]] = [
    (ConsumerGroupMetadataKey("grüppe"), "000300076772c3bc707065"),
    (ConsumerGroupMemberMetadataKey("grüppe", "m-1"), "000500076772c3bc70706500036d2d31"),
    (ConsumerGroupRegularExpressionKey("grüppe", "a.*"), "001000076772c3bc7070650003612e2a"),
]
KAFKA_METADATA = bytes.fromhex("000000000007010008fffffffffffffffe")
KAFKA_MEMBER = bytes.fromhex(
    "00000002720263032f68030261026200ffffffff0672616e676501000d01000000090202780301020000"
)
MEMBER = ConsumerGroupMemberMetadataValue(
    instance_id=None,
    rack_id="r",
    client_id="c",
    client_host="/h",
    subscribed_topic_names=("a", "b"),
    subscribed_topic_regex=None,
    rebalance_timeout_ms=-1,
    server_assignor="range",
    classic_member_metadata=ClassicMemberMetadata(9, (ClassicProtocolMetadata("x", b"\1\2"),)),
)

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=40)
TEXTS = st.lists(TEXT, max_size=5).map(tuple)
NULLABLE = st.none() | TEXT
ASSIGNMENT = st.dictionaries(st.uuids(), st.lists(INT32, max_size=5).map(tuple), max_size=5)
KEYS = st.one_of(
    st.builds(ConsumerGroupMetadataKey, TEXT),
    st.builds(ConsumerGroupPartitionMetadataKey, TEXT),
    st.builds(ConsumerGroupMemberMetadataKey, TEXT, TEXT),
    st.builds(ConsumerGroupTargetAssignmentMetadataKey, TEXT),
    st.builds(ConsumerGroupTargetAssignmentMemberKey, TEXT, TEXT),
    st.builds(ConsumerGroupCurrentMemberAssignmentKey, TEXT, TEXT),
    st.builds(ConsumerGroupRegularExpressionKey, TEXT, TEXT),
)
METADATA = st.builds(ConsumerGroupMetadataValue, INT32, INT64)
CLASSIC = st.builds(
    ClassicMemberMetadata,
    INT32,
    st.lists(st.builds(ClassicProtocolMetadata, TEXT, st.binary(max_size=150)), max_size=3).map(
        tuple
    ),
)
MEMBERS = st.builds(
    ConsumerGroupMemberMetadataValue,
    instance_id=NULLABLE,
    rack_id=NULLABLE,
    client_id=TEXT,
    client_host=TEXT,
    subscribed_topic_names=TEXTS,
    subscribed_topic_regex=NULLABLE,
    rebalance_timeout_ms=INT32,
    server_assignor=NULLABLE,
    classic_member_metadata=st.none() | CLASSIC,
)
CURRENT = st.builds(
    ConsumerGroupCurrentMemberAssignmentValue,
    INT32,
    INT32,
    st.integers(-128, 127),
    ASSIGNMENT,
    ASSIGNMENT,
)
EXPRESSIONS = st.builds(ConsumerGroupRegularExpressionValue, TEXTS, INT64, INT64)

DECODERS: list[Callable[[bytes], object]] = [
    decode_key,
    decode_consumer_group_metadata_value,
    decode_consumer_group_member_metadata_value,
    decode_consumer_group_target_assignment_metadata_value,
    decode_consumer_group_target_assignment_member_value,
    decode_consumer_group_current_member_assignment_value,
    decode_consumer_group_regular_expression_value,
]


@pytest.mark.parametrize(("key", "octets"), KAFKA_KEYS)
def test_keys_are_kafkas(key: ConsumerGroupKey, octets: str) -> None:
    """The same bytes, and read back."""
    assert encode_consumer_group_key(key).hex() == octets
    assert decode_key(bytes.fromhex(octets)) == key


def test_values_are_kafkas() -> None:
    """One with a number, one with a struct in a tagged field."""
    assert encode_consumer_group_metadata_value(ConsumerGroupMetadataValue(7, -2)) == KAFKA_METADATA
    assert decode_consumer_group_metadata_value(KAFKA_METADATA) == (7, -2)
    assert encode_consumer_group_member_metadata_value(MEMBER) == KAFKA_MEMBER
    assert decode_consumer_group_member_metadata_value(KAFKA_MEMBER) == MEMBER


@given(KEYS)
def test_keys_come_back(key: ConsumerGroupKey) -> None:
    """As the kind they were: keys of two kinds with the same names are not equal."""
    assert decode_key(encode_consumer_group_key(key)) == key


def test_kinds_are_not_mixed_up() -> None:
    """A member's metadata and its assignment have the same names in their keys."""
    keys: set[ConsumerGroupKey] = {
        ConsumerGroupMemberMetadataKey("g", "m"),
        ConsumerGroupTargetAssignmentMemberKey("g", "m"),
        ConsumerGroupCurrentMemberAssignmentKey("g", "m"),
        ConsumerGroupRegularExpressionKey("g", "m"),
        ConsumerGroupMetadataKey("g"),
        ConsumerGroupPartitionMetadataKey("g"),
        ConsumerGroupTargetAssignmentMetadataKey("g"),
    }
    assert len(keys) == 7
    assert {encode_consumer_group_key(key)[1] for key in keys} == {3, 4, 5, 6, 7, 8, 16}


@given(METADATA, MEMBERS, ASSIGNMENT, CURRENT, EXPRESSIONS)
def test_values_come_back(
    metadata: ConsumerGroupMetadataValue,
    member: ConsumerGroupMemberMetadataValue,
    assignment: dict[UUID, tuple[int, ...]],
    current: ConsumerGroupCurrentMemberAssignmentValue,
    expression: ConsumerGroupRegularExpressionValue,
) -> None:
    """Round trip of whatever fits."""
    data = encode_consumer_group_metadata_value(metadata)
    assert decode_consumer_group_metadata_value(data) == metadata
    data = encode_consumer_group_member_metadata_value(member)
    assert decode_consumer_group_member_metadata_value(data) == member
    epoch = ConsumerGroupTargetAssignmentMetadataValue(metadata.epoch)
    data = encode_target_assignment_metadata_value(epoch)
    assert decode_consumer_group_target_assignment_metadata_value(data) == epoch
    target = ConsumerGroupTargetAssignmentMemberValue(assignment)
    data = encode_target_assignment_member_value(target)
    assert decode_consumer_group_target_assignment_member_value(data) == target
    data = encode_consumer_group_current_member_assignment_value(current)
    assert decode_consumer_group_current_member_assignment_value(data) == current
    data = encode_consumer_group_regular_expression_value(expression)
    assert decode_consumer_group_regular_expression_value(data) == expression


def test_unknown_value_versions_are_refused() -> None:
    """A value of a version to come is not guessed at."""
    for decode in DECODERS[1:]:
        for version in (b"\0\1", b"\xff\xff"):
            with pytest.raises(DecodeError, match="not known"):
                decode(version + bytes(40))


def test_unknown_tagged_fields_are_skipped() -> None:
    """A newer broker may have added fields; a null struct is as one that is absent."""
    assert decode_consumer_group_metadata_value(
        b"\0\0\0\0\0\7\2\0\x08\xff\xff\xff\xff\xff\xff\xff\xfe\5\1x"
    ) == (7, -2)
    without = MEMBER._replace(classic_member_metadata=None)
    data = encode_consumer_group_member_metadata_value(without)[:-1] + b"\1\0\1\xff"
    assert decode_consumer_group_member_metadata_value(data) == without


def test_hash_of_another_size_is_refused() -> None:
    """A tagged field that is known must have its own size."""
    with pytest.raises(DecodeError, match="hash of 1 bytes"):
        decode_consumer_group_metadata_value(b"\0\0\0\0\0\7\1\0\1x")


def test_topic_twice_is_refused() -> None:
    """Which of the two would count?"""
    once = UUID(int=1).bytes + b"\2\0\0\0\0\0"
    assert decode_consumer_group_target_assignment_member_value(b"\0\0\2" + once + b"\0") == (
        {UUID(int=1): (0,)},
    )
    with pytest.raises(DecodeError, match="twice"):
        decode_consumer_group_target_assignment_member_value(b"\0\0\3" + once + once + b"\0")


@given(MEMBERS, CURRENT, EXPRESSIONS)
def test_every_cut_is_refused(
    member: ConsumerGroupMemberMetadataValue,
    current: ConsumerGroupCurrentMemberAssignmentValue,
    expression: ConsumerGroupRegularExpressionValue,
) -> None:
    """A value that ends early is an error, never half a value."""
    cases: list[tuple[bytes, Callable[[bytes], object]]] = [
        (
            encode_consumer_group_member_metadata_value(member),
            decode_consumer_group_member_metadata_value,
        ),
        (
            encode_consumer_group_current_member_assignment_value(current),
            decode_consumer_group_current_member_assignment_value,
        ),
        (
            encode_consumer_group_regular_expression_value(expression),
            decode_consumer_group_regular_expression_value,
        ),
    ]
    for data, decode in cases:
        for size in range(len(data)):
            with pytest.raises(DecodeError):
                decode(data[:size])


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_a_decode_error(data: bytes) -> None:
    """Nothing else is raised, and nothing loops."""
    for decode in DECODERS:
        with contextlib.suppress(DecodeError):
            decode(data)
        with contextlib.suppress(DecodeError):
            decode(b"\0\0" + data)
    for version in (3, 4, 5, 6, 7, 8, 16):
        with contextlib.suppress(DecodeError):
            decode_key(bytes((0, version)) + data)
