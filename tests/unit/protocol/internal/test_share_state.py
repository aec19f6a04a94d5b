"""Records of `__share_group_state`: bytes by hand, round trips, and what makes no sense."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.internal.share_state import (
    ShareSnapshotValue,
    ShareStateKey,
    ShareUpdateValue,
    StateBatch,
    decode_share_snapshot,
    decode_share_state_key,
    decode_share_update,
    encode_share_snapshot,
    encode_share_state_key,
    encode_share_update,
)

INT16 = st.integers(0, 2**15 - 1)
INT32 = st.integers(-1, 2**31 - 1)
INT64 = st.integers(-1, 2**63 - 1)
BATCHES = st.lists(
    st.builds(StateBatch, INT64, INT64, st.sampled_from([0, 2, 4]), INT16), max_size=300
).map(tuple)
SNAPSHOTS = st.builds(ShareSnapshotValue, INT32, INT32, INT32, INT64, INT64, INT64, BATCHES, INT32)
UPDATES = st.builds(ShareUpdateValue, INT32, INT32, INT64, BATCHES, INT32)

KEY = bytes.fromhex("0001 0001 67 00000000000000000000000000000005 00000002")
UPDATE = bytes.fromhex(
    "0000 00000003 00000004 0000000000000005"
    "02 0000000000000006 0000000000000007 02 0001 00"
    "01 00 04 00000009"
)
SNAPSHOT = bytes.fromhex(
    "0000 00000003 00000002 00000004 0000000000000005 0000000000000008 0000000000000009 01 00"
)


def test_key_byte_by_byte() -> None:
    key = ShareStateKey(1, "g", UUID(int=5), 2)
    assert encode_share_state_key(key) == KEY
    assert decode_share_state_key(KEY) == key


def test_update_byte_by_byte() -> None:
    value = ShareUpdateValue(3, 4, 5, (StateBatch(6, 7, 2, 1),), 9)
    assert encode_share_update(value) == UPDATE
    assert decode_share_update(UPDATE) == value


def test_snapshot_byte_by_byte() -> None:
    """The count is left out where it is not known, as Kafka does with defaults."""
    value = ShareSnapshotValue(3, 2, 4, 5, 8, 9, ())
    assert encode_share_snapshot(value) == SNAPSHOT
    assert decode_share_snapshot(SNAPSHOT) == value


@given(st.builds(ShareStateKey, st.integers(0, 1), st.text(max_size=50), st.uuids(), INT32))
def test_keys_come_back(key: ShareStateKey) -> None:
    assert decode_share_state_key(encode_share_state_key(key)) == key


@given(SNAPSHOTS)
def test_snapshots_come_back(value: ShareSnapshotValue) -> None:
    assert decode_share_snapshot(encode_share_snapshot(value)) == value


@given(UPDATES)
def test_updates_come_back(value: ShareUpdateValue) -> None:
    assert decode_share_update(encode_share_update(value)) == value


def test_fields_of_a_newer_release_are_passed_over() -> None:
    data = UPDATE[:-7] + bytes.fromhex("02 00 04 00000009 07 01 ff")
    assert decode_share_update(data).delivery_complete_count == 9


def test_keys_of_another_kind() -> None:
    assert decode_share_state_key(b"\x00\x02" + KEY[2:]) is None


@pytest.mark.parametrize("size", range(len(KEY)))
def test_keys_that_end_too_early(size: int) -> None:
    with pytest.raises(DecodeError):
        decode_share_state_key(KEY[:size])


@pytest.mark.parametrize("size", range(len(UPDATE)))
def test_updates_that_end_too_early(size: int) -> None:
    with pytest.raises(DecodeError):
        decode_share_update(UPDATE[:size])


@pytest.mark.parametrize("size", range(len(SNAPSHOT)))
def test_snapshots_that_end_too_early(size: int) -> None:
    with pytest.raises(DecodeError):
        decode_share_snapshot(SNAPSHOT[:size])


def test_values_that_are_not_known() -> None:
    with pytest.raises(DecodeError, match="version 1"):
        decode_share_update(b"\x00\x01" + UPDATE[2:])
    with pytest.raises(DecodeError, match="tagged field 0 of 3 bytes"):
        decode_share_update(UPDATE[:-6] + bytes.fromhex("00 03 000009"))
