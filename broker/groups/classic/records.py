"""Records of a classic group in `__consumer_offsets`."""

from collections.abc import Mapping

from broker.coordinator.outcome import KeyValue
from broker.groups.classic.classic_group import ClassicGroup
from protocol.internal.consumer_offsets import (
    GroupMetadataValue,
    MemberMetadata,
    encode_group_metadata_key,
    encode_group_metadata_value,
    encode_offset_commit_key,
)


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes] | None = None) -> KeyValue:
    """The group metadata record of the current generation.

    Args:
        group: The group; without members it is recorded as empty.
        assignments: By member id; the members' own assignments when left out.
    """
    members = tuple(
        MemberMetadata(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            session_timeout_ms=member.session_timeout_ms,
            subscription=member.metadata(group.protocol_name),
            assignment=(
                member.assignment if assignments is None else assignments.get(member.member_id, b"")
            ),
        )
        for member in group.members.values()
    )
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp_ms=group.current_state_timestamp_ms,
        members=members,
    )
    return encode_group_metadata_key(group.group_id), encode_group_metadata_value(value)


def offset_tombstone(group_id: str, topic: str, partition: int) -> KeyValue:
    """The tombstone of a committed offset."""
    return encode_offset_commit_key(group_id, topic, partition), None
