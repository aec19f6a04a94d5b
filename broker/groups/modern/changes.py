"""Changes of a modern group in memory, and their records.

A group is changed when its records are on their way to the log, as the next request has to see
the change; the request that made it is answered when they are committed. If the log refuses them
the shard fails and is loaded again: the log is authoritative.

Source: Kafka, GroupCoordinatorRecordHelpers.java.
"""

from typing import Generic, TypeVar

from broker.coordinator.outcome import KeyValue
from broker.groups.modern.assignment import Assignment
from broker.groups.modern.member import ModernGroupMember
from broker.groups.modern.modern_group import AnyModernGroup
from broker.groups.modern.records import GroupRecords

Changed = TypeVar("Changed", bound=AnyModernGroup)
Member = TypeVar("Member", bound=ModernGroupMember)


class ModernChanges(Generic[Changed, Member]):
    """A group's changes; `records` go to the log in one batch, or in batches in this order."""

    __slots__ = ("_encode", "group", "records")

    def __init__(self, group: Changed) -> None:
        self.group = group
        self.records: list[KeyValue] = []
        self._encode: GroupRecords[Member] = group.records

    def set_epoch(self, group_epoch: int, metadata_hash: int) -> None:
        """Begin a new group epoch."""
        group = self.group
        group.group_epoch = group_epoch
        group.metadata_hash = metadata_hash
        value = self._encode.group_value(group_epoch, metadata_hash)
        self.records.append((self._encode.group_key(group.group_id), value))

    def put_member(self, member: Member) -> None:
        """Add or update a member."""
        self.group.update_member(member)
        key = self._encode.member_key(self.group.group_id, member.member_id)
        self.records.append((key, self._encode.member_value(member)))

    def put_current(self, member: Member) -> None:
        """Change a member's assignment and epoch."""
        self.group.update_member(member)
        key = self._encode.current_key(self.group.group_id, member.member_id)
        self.records.append((key, self._encode.current_value(member)))

    def remove_member(self, member_id: str) -> None:
        """Remove a member and its target."""
        group = self.group
        group.remove_member(member_id)
        group.target.pop(member_id, None)
        self.records += self._encode.member_tombstones(group.group_id, member_id)

    def set_target(self, member_id: str, assignment: Assignment) -> None:
        """Set a member's target."""
        record = self._encode.target(self.group.group_id, member_id, assignment)
        self.add_target(member_id, assignment, record)

    def add_target(self, member_id: str, assignment: Assignment, record: KeyValue) -> None:
        """Set a member's target; the record was encoded before."""
        self.group.update_target(member_id, assignment)
        self.records.append(record)

    def set_assignment_epoch(self, epoch: int) -> None:
        """Set the group epoch that the target is for; after the targets themselves."""
        self.group.assignment_epoch = epoch
        self.records.append(self._encode.target_epoch(self.group.group_id, epoch))
