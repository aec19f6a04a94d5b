"""Records of one modern group in `__consumer_offsets`: the kinds that every such group has.

    kind                        content
    group metadata              the group epoch, and the hash of the topics
    member metadata             the member's client and subscriptions
    target assignment metadata  the group epoch that the target is for
    target assignment member    the member's target
    current member assignment   the member's assignment

Layouts are those of `protocol.internal.consumer_group_records` and `share_group_records`; the
values of targets are the same in both.

Source: Kafka, GroupCoordinatorRecordHelpers.java.
"""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from broker.coordinator.outcome import KeyValue
from broker.groups.modern.assignment import Assignment
from broker.groups.modern.member import ModernGroupMember
from protocol.internal.target_assignment import (
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
    encode_target_assignment_member_value,
    encode_target_assignment_metadata_value,
)

Member = TypeVar("Member", bound=ModernGroupMember)


class GroupRecords(ABC, Generic[Member]):
    """Encoder of the records of one kind of group."""

    @abstractmethod
    def group_key(self, group_id: str) -> bytes:
        """Key of the group metadata."""

    @abstractmethod
    def member_key(self, group_id: str, member_id: str) -> bytes:
        """Key of a member's metadata."""

    @abstractmethod
    def target_epoch_key(self, group_id: str) -> bytes:
        """Key of the target assignment metadata."""

    @abstractmethod
    def target_key(self, group_id: str, member_id: str) -> bytes:
        """Key of a member's target assignment."""

    @abstractmethod
    def current_key(self, group_id: str, member_id: str) -> bytes:
        """Key of a member's current assignment."""

    @abstractmethod
    def group_value(self, group_epoch: int, metadata_hash: int) -> bytes:
        """Value of the group metadata."""

    @abstractmethod
    def member_value(self, member: Member) -> bytes:
        """Value of a member's metadata."""

    @abstractmethod
    def current_value(self, member: Member) -> bytes:
        """Value of a member's current assignment."""

    def target(self, group_id: str, member_id: str, assignment: Assignment) -> KeyValue:
        """A member's target assignment; may be called on any thread."""
        value = encode_target_assignment_member_value(TargetAssignmentMemberValue(assignment))
        return self.target_key(group_id, member_id), value

    def target_epoch(self, group_id: str, assignment_epoch: int) -> KeyValue:
        """The target assignment metadata; comes after the targets themselves."""
        value = TargetAssignmentMetadataValue(assignment_epoch)
        return self.target_epoch_key(group_id), encode_target_assignment_metadata_value(value)

    def member_tombstones(self, group_id: str, member_id: str) -> list[KeyValue]:
        """Tombstones of a member's records; Kafka reads them in this order only."""
        return [
            (self.current_key(group_id, member_id), None),
            (self.target_key(group_id, member_id), None),
            (self.member_key(group_id, member_id), None),
        ]
