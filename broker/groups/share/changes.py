"""Changes of a share group: made here and now, and the records that say so.

A group is changed when its records are on their way to the log, as the next request has to see
the change; whoever asked is answered when they are committed. If the log refuses them the shard is
given up and read anew: what is in the log is true.

Source: Kafka, GroupCoordinatorRecordHelpers.java.
"""

from broker.coordinator.outcome import KeyValue
from broker.groups.consumer.member import Assignment
from broker.groups.share.kept_state import KeptState
from broker.groups.share.member import ShareGroupMember
from broker.groups.share.share_group import ShareGroup
from protocol.internal import share_group_records as r
from protocol.internal.share_group_records import encode_share_group_key as key


class ShareChanges:
    """A change in the making; `records` go to the log in one batch, or in batches in this order."""

    __slots__ = ("group", "records")

    def __init__(self, group: ShareGroup) -> None:
        self.group = group
        self.records: list[KeyValue] = []

    def set_epoch(self, group_epoch: int, metadata_hash: int) -> None:
        """Begin a new group epoch."""
        group = self.group
        group.group_epoch = group_epoch
        group.metadata_hash = metadata_hash
        value = r.ShareGroupMetadataValue(group_epoch, metadata_hash)
        self._put(
            r.ShareGroupMetadataKey(group.group_id), r.encode_share_group_metadata_value(value)
        )

    def put_member(self, member: ShareGroupMember) -> None:
        """Take a member in, or what it says of itself now."""
        self.group.update_member(member)
        self._put(
            r.ShareGroupMemberMetadataKey(self.group.group_id, member.member_id),
            r.encode_share_group_member_metadata_value(member.metadata_value()),
        )

    def put_current(self, member: ShareGroupMember) -> None:
        """Change what a member owns, and its epoch."""
        self.group.update_member(member)
        self._put(
            r.ShareGroupCurrentMemberAssignmentKey(self.group.group_id, member.member_id),
            r.encode_share_group_current_member_assignment_value(member.current_value()),
        )

    def remove_member(self, member_id: str) -> None:
        """Let a member go; the order of the records matters to Kafka."""
        group = self.group
        group.remove_member(member_id)
        group.target.pop(member_id, None)
        self.records += (
            (key(r.ShareGroupCurrentMemberAssignmentKey(group.group_id, member_id)), None),
            (key(r.ShareGroupTargetAssignmentMemberKey(group.group_id, member_id)), None),
            (key(r.ShareGroupMemberMetadataKey(group.group_id, member_id)), None),
        )

    def set_target(self, member_id: str, assignment: Assignment) -> None:
        """Say what a member shall own."""
        self.take_target(
            member_id, assignment, target_record(self.group.group_id, member_id, assignment)
        )

    def take_target(self, member_id: str, assignment: Assignment, record: KeyValue) -> None:
        """Say what a member shall own, the record being there already."""
        self.group.target[member_id] = assignment
        self.group.may_lack_partitions = True
        self.records.append(record)

    def set_assignment_epoch(self, epoch: int) -> None:
        """Say which group epoch the target is for; after the targets themselves."""
        self.group.assignment_epoch = epoch
        self._put(
            r.ShareGroupTargetAssignmentMetadataKey(self.group.group_id),
            r.encode_share_group_target_assignment_metadata_value(
                r.ShareGroupTargetAssignmentMetadataValue(epoch)
            ),
        )

    def set_kept(self, kept: KeptState) -> None:
        """Say whose share state is kept, or about to be."""
        self.group.update_kept(kept)
        self._put(
            r.ShareGroupStatePartitionMetadataKey(self.group.group_id),
            r.encode_share_group_state_partition_metadata_value(kept.value()),
        )

    def _put(self, record_key: r.ShareGroupKey, value: bytes) -> None:
        self.records.append((key(record_key), value))


def target_record(group_id: str, member_id: str, assignment: Assignment) -> KeyValue:
    """The record that says what a member shall own."""
    return (
        key(r.ShareGroupTargetAssignmentMemberKey(group_id, member_id)),
        r.encode_share_group_target_assignment_member_value(
            r.ShareGroupTargetAssignmentMemberValue(assignment)
        ),
    )
