"""Groups as records."""

from broker.groups.classic.records import group_record, offset_tombstone
from protocol.internal.consumer_offsets import (
    GroupMetadataKey,
    OffsetCommitKey,
    decode_group_metadata_value,
    decode_key,
)
from tests.harness.groups import Harness


def test_generation_is_recorded_with_its_members() -> None:
    """With the assignment that is about to be handed out, or the one they have."""
    h = Harness()
    ids, generation = h.stable_group(2)
    key, value = group_record(h.group(), {ids[0]: b"new"})
    assert value is not None
    recorded = decode_group_metadata_value(value)
    assert decode_key(key) == GroupMetadataKey("g")
    assert (recorded.generation, recorded.protocol, recorded.leader) == (
        generation,
        "range",
        ids[0],
    )
    assert [(m.member_id, m.subscription, m.assignment) for m in recorded.members] == [
        (ids[0], b"r", b"new"),
        (ids[1], b"r", b""),
    ]
    _, present = group_record(h.group())
    assert present is not None
    assert [m.assignment for m in decode_group_metadata_value(present).members] == [
        f"of {member_id}".encode() for member_id in ids
    ]


def test_empty_group_is_recorded_without_protocol_and_leader() -> None:
    h = Harness()
    ids, _ = h.stable_group()
    h.leave(ids[0])
    _, value = group_record(h.group())
    assert value is not None
    recorded = decode_group_metadata_value(value)
    assert (recorded.protocol_type, recorded.protocol, recorded.leader, recorded.members) == (
        "consumer",
        None,
        None,
        (),
    )


def test_tombstones_have_no_value() -> None:
    h = Harness()
    h.stable_group(1)
    [(key, value)] = h.group().tombstones()
    assert (decode_key(key), value) == (GroupMetadataKey("g"), None)
    key, value = offset_tombstone("g", "t", 3)
    assert (decode_key(key), value) == (OffsetCommitKey("g", "t", 3), None)
