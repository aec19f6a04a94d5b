"""Target assignments in `__consumer_offsets`: the same in consumer groups and share groups.

    metadata   group epoch that the target was computed for     int32
    member     what one member shall own                        topics: id 16, partitions int32 [n]

Values of version 0, flexible; the keys are those of each kind of group.

Source: Kafka, ConsumerGroupTargetAssignmentMetadataValue.json,
ConsumerGroupTargetAssignmentMemberValue.json, ShareGroupTargetAssignment*Value.json.
"""

from struct import Struct
from typing import NamedTuple

from protocol.internal.record_fields import (
    NO_TAGGED_FIELDS,
    Assignment,
    assignment_field,
    flexible_value,
)

_VERSION = b"\0\0"
_EPOCH = Struct(">hi")


class TargetAssignmentMetadataValue(NamedTuple):
    """Group epoch that the target was computed for."""

    assignment_epoch: int


class TargetAssignmentMemberValue(NamedTuple):
    """What a member shall own, in a consumer group once everybody has reconciled."""

    partitions: Assignment


def encode_target_assignment_metadata_value(value: TargetAssignmentMetadataValue) -> bytes:
    """The value with the epoch."""
    return _EPOCH.pack(0, value.assignment_epoch) + NO_TAGGED_FIELDS


def decode_target_assignment_metadata_value(data: bytes) -> TargetAssignmentMetadataValue:
    """Read the value with the epoch.

    Raises:
        DecodeError: The bytes are not such a value.
    """
    reader = flexible_value(data)
    value = TargetAssignmentMetadataValue(reader.int32())
    reader.tagged_fields()
    return value


def encode_target_assignment_member_value(value: TargetAssignmentMemberValue) -> bytes:
    """The value with a member's partitions; topics in the order of the mapping."""
    return b"".join((_VERSION, assignment_field(value.partitions), NO_TAGGED_FIELDS))


def decode_target_assignment_member_value(data: bytes) -> TargetAssignmentMemberValue:
    """Read the value with a member's partitions.

    Raises:
        DecodeError: The bytes are not such a value, or name a topic twice.
    """
    reader = flexible_value(data)
    value = TargetAssignmentMemberValue(reader.assignment())
    reader.tagged_fields()
    return value
