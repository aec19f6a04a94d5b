"""Records of share groups: ours come back, damaged ones are refused.

That Kafka reads and writes the same is the business of tests/interop/test_share_group_records_dump.
"""

import contextlib
from collections.abc import Callable
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.internal import share_group_records as r
from protocol.internal.consumer_offsets import decode_key
from protocol.internal.target_assignment import (
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
    encode_target_assignment_member_value,
    encode_target_assignment_metadata_value,
)

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=40)
ASSIGNMENT = st.dictionaries(st.uuids(), st.lists(INT32, max_size=5).map(tuple), max_size=5)
INFOS = st.lists(
    st.builds(r.TopicPartitionsInfo, st.uuids(), TEXT, st.lists(INT32, max_size=5).map(tuple)),
    max_size=4,
).map(tuple)

KEYS = st.one_of(
    st.builds(r.ShareGroupMetadataKey, TEXT),
    st.builds(r.ShareGroupTargetAssignmentMetadataKey, TEXT),
    st.builds(r.ShareGroupStatePartitionMetadataKey, TEXT),
    st.builds(r.ShareGroupMemberMetadataKey, TEXT, TEXT),
    st.builds(r.ShareGroupTargetAssignmentMemberKey, TEXT, TEXT),
    st.builds(r.ShareGroupCurrentMemberAssignmentKey, TEXT, TEXT),
)

Codec = tuple[st.SearchStrategy[object], Callable[..., bytes], Callable[[bytes], object]]
CODECS: list[Codec] = [
    (
        st.builds(
            r.ShareGroupMemberMetadataValue,
            st.none() | TEXT,
            TEXT,
            TEXT,
            st.lists(TEXT, max_size=5).map(tuple),
        ),
        r.encode_share_group_member_metadata_value,
        r.decode_share_group_member_metadata_value,
    ),
    (
        st.builds(r.ShareGroupMetadataValue, INT32, INT64),
        r.encode_share_group_metadata_value,
        r.decode_share_group_metadata_value,
    ),
    (
        st.builds(TargetAssignmentMetadataValue, INT32),
        encode_target_assignment_metadata_value,
        r.decode_share_group_target_assignment_metadata_value,
    ),
    (
        st.builds(TargetAssignmentMemberValue, ASSIGNMENT),
        encode_target_assignment_member_value,
        r.decode_share_group_target_assignment_member_value,
    ),
    (
        st.builds(
            r.ShareGroupCurrentMemberAssignmentValue,
            INT32,
            INT32,
            st.integers(-128, 127),
            ASSIGNMENT,
        ),
        r.encode_share_group_current_member_assignment_value,
        r.decode_share_group_current_member_assignment_value,
    ),
    (
        st.builds(
            r.ShareGroupStatePartitionMetadataValue,
            INFOS,
            INFOS,
            st.lists(st.builds(r.TopicInfo, st.uuids(), TEXT), max_size=4).map(tuple),
        ),
        r.encode_share_group_state_partition_metadata_value,
        r.decode_share_group_state_partition_metadata_value,
    ),
]
VALUES = st.one_of(
    *(st.tuples(values, st.just(encode), st.just(decode)) for values, encode, decode in CODECS)
)


@given(KEYS)
def test_keys_come_back(key: r.ShareGroupKey) -> None:
    """As the kind they were."""
    assert decode_key(r.encode_share_group_key(key)) == key


def test_kinds_are_not_mixed_up() -> None:
    """Each kind has its number, which is Kafka's."""
    keys: list[r.ShareGroupKey] = [
        r.ShareGroupMemberMetadataKey("g", "m"),
        r.ShareGroupMetadataKey("g"),
        r.ShareGroupTargetAssignmentMetadataKey("g"),
        r.ShareGroupTargetAssignmentMemberKey("g", "m"),
        r.ShareGroupCurrentMemberAssignmentKey("g", "m"),
        r.ShareGroupStatePartitionMetadataKey("g"),
    ]
    assert [r.encode_share_group_key(key)[1] for key in keys] == [10, 11, 12, 13, 14, 15]


@given(VALUES)
def test_values_come_back(
    case: tuple[object, Callable[..., bytes], Callable[[bytes], object]],
) -> None:
    """Round trip of whatever fits; and every end that comes too early is an error."""
    value, encode, decode = case
    data = encode(value)
    assert decode(data) == value
    for size in range(len(data)):
        with pytest.raises(DecodeError):
            decode(data[:size])


def test_unknown_value_versions_are_refused() -> None:
    """A value of a version to come is not guessed at."""
    for _, _, decode in CODECS:
        for version in (b"\0\1", b"\xff\xff"):
            with pytest.raises(DecodeError, match="not known"):
                decode(version + bytes(40))


def test_unknown_tagged_fields_are_skipped() -> None:
    """A newer broker may have added fields."""
    data = r.encode_share_group_metadata_value(r.ShareGroupMetadataValue(7, -2))
    assert r.decode_share_group_metadata_value(data[:-1] + b"\1\0\1x") == (7, -2)


def test_topic_twice_is_refused() -> None:
    """Which of the two would count?"""
    once = UUID(int=1).bytes + b"\2\0\0\0\0\0"
    with pytest.raises(DecodeError, match="twice"):
        r.decode_share_group_target_assignment_member_value(b"\0\0\3" + once + once + b"\0")


@given(st.binary(max_size=60))
def test_garbage_is_refused(data: bytes) -> None:
    """Whatever the bytes are, nothing but DecodeError comes out."""
    for _, _, decode in CODECS:
        for candidate in (data, b"\0\0" + data):
            with contextlib.suppress(DecodeError):
                decode(candidate)
