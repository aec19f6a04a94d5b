"""Changes of a consumer group: made here and now, and the records that say so.

A group is changed when its records are on their way to the log, as the next request has to see
the change; whoever asked is answered when they are committed. If the log refuses them the shard is
given up and read anew: what is in the log is true.

Source: Kafka, GroupCoordinatorRecordHelpers.java.
"""

from collections.abc import Mapping

from broker.coordinator.outcome import KeyValue
from broker.groups.consumer.consumer_group import ConsumerGroup, ResolvedRegularExpression
from broker.groups.consumer.member import Assignment, ConsumerGroupMember
from protocol.internal import consumer_group_records as r
from protocol.internal.consumer_group_records import encode_consumer_group_key as key


class Changes:
    """A change in the making; `records` go to the log in one batch, or in batches in this order."""

    __slots__ = ("group", "records")

    def __init__(self, group: ConsumerGroup) -> None:
        self.group = group
        self.records: list[KeyValue] = []

    def set_epoch(self, group_epoch: int, metadata_hash: int) -> None:
        """Begin a new group epoch."""
        group = self.group
        group.group_epoch = group_epoch
        group.metadata_hash = metadata_hash
        self.records.append(
            (
                key(r.ConsumerGroupMetadataKey(group.group_id)),
                r.encode_consumer_group_metadata_value(
                    r.ConsumerGroupMetadataValue(group_epoch, metadata_hash)
                ),
            )
        )

    def put_member(self, member: ConsumerGroupMember) -> None:
        """Take a member in, or what it says of itself now."""
        self.group.update_member(member)
        self.records.append(
            (
                key(r.ConsumerGroupMemberMetadataKey(self.group.group_id, member.member_id)),
                r.encode_consumer_group_member_metadata_value(member.metadata_value()),
            )
        )

    def put_current(self, member: ConsumerGroupMember) -> None:
        """Change what a member owns, and its epoch."""
        self.group.update_member(member)
        self.records.append(
            (
                key(
                    r.ConsumerGroupCurrentMemberAssignmentKey(self.group.group_id, member.member_id)
                ),
                r.encode_consumer_group_current_member_assignment_value(member.current_value()),
            )
        )

    def remove_member(self, member_id: str) -> None:
        """Let a member go; the order of the records matters to Kafka."""
        group = self.group
        group.remove_member(member_id)
        group.target.pop(member_id, None)
        self.records += (
            (key(r.ConsumerGroupCurrentMemberAssignmentKey(group.group_id, member_id)), None),
            (key(r.ConsumerGroupTargetAssignmentMemberKey(group.group_id, member_id)), None),
            (key(r.ConsumerGroupMemberMetadataKey(group.group_id, member_id)), None),
        )

    def replace_member(self, old: ConsumerGroupMember, new: ConsumerGroupMember) -> None:
        """Put `new` in the place of `old`, who has the same instance id."""
        target = self.group.target_of(old.member_id)
        self.remove_member(old.member_id)
        self.put_member(new)
        self.set_target(new.member_id, target)
        self.put_current(new)

    def set_target(self, member_id: str, assignment: Assignment) -> None:
        """Say what a member shall own."""
        record = target_record(self.group.group_id, member_id, assignment)
        self.take_target(member_id, assignment, record)

    def take_target(self, member_id: str, assignment: Assignment, record: KeyValue) -> None:
        """Say what a member shall own, the record being there already."""
        self.group.target[member_id] = assignment
        self.records.append(record)

    def take_prepared_targets(self, targets: Mapping[str, Assignment]) -> None:
        """Say what members shall own whose records are in the log already."""
        self.group.target.update(targets)

    def remove_target(self, member_id: str) -> None:
        """Forget what somebody should own who has left since it was computed."""
        group = self.group
        group.target.pop(member_id, None)
        self.records.append(
            (key(r.ConsumerGroupTargetAssignmentMemberKey(group.group_id, member_id)), None)
        )

    def set_assignment_epoch(self, epoch: int) -> None:
        """Say which group epoch the target is for; after the targets themselves."""
        self.group.assignment_epoch = epoch
        self.records.append(
            (
                key(r.ConsumerGroupTargetAssignmentMetadataKey(self.group.group_id)),
                r.encode_consumer_group_target_assignment_metadata_value(
                    r.ConsumerGroupTargetAssignmentMetadataValue(epoch)
                ),
            )
        )

    def set_resolved(self, regex: str, resolved: ResolvedRegularExpression) -> None:
        """Say what a pattern stands for."""
        self.take_resolved(regex, resolved, resolved_record(self.group.group_id, regex, resolved))

    def take_resolved(
        self, regex: str, resolved: ResolvedRegularExpression, record: KeyValue
    ) -> None:
        """Say what a pattern stands for, the record being there already."""
        self.group.update_resolved(regex, resolved)
        self.records.append(record)

    def remove_resolved(self, regex: str) -> None:
        """Nobody subscribes by the pattern any more."""
        self.group.update_resolved(regex, None)
        self.records.append(
            (key(r.ConsumerGroupRegularExpressionKey(self.group.group_id, regex)), None)
        )

    def remove_partition_metadata(self) -> None:
        """Delete what Kafka before 4.1 wrote about topics."""
        self.group.has_partition_metadata_record = False
        self.records.append((key(r.ConsumerGroupPartitionMetadataKey(self.group.group_id)), None))

    def put_everything(self) -> None:
        """Write the whole group, which another kind of group has become."""
        group = self.group
        members = list(group.members.values())
        for member in members:
            self.put_member(member)
        self.set_epoch(group.group_epoch, group.metadata_hash)
        for member in members:
            self.set_target(member.member_id, group.target_of(member.member_id))
        self.set_assignment_epoch(group.assignment_epoch)
        for member in members:
            self.put_current(member)


def target_record(group_id: str, member_id: str, assignment: Assignment) -> KeyValue:
    """The record that says what a member shall own."""
    return (
        key(r.ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)),
        r.encode_consumer_group_target_assignment_member_value(
            r.ConsumerGroupTargetAssignmentMemberValue(assignment)
        ),
    )


def resolved_record(group_id: str, regex: str, resolved: ResolvedRegularExpression) -> KeyValue:
    """The record that says what a pattern stands for."""
    return (
        key(r.ConsumerGroupRegularExpressionKey(group_id, regex)),
        r.encode_consumer_group_regular_expression_value(
            r.ConsumerGroupRegularExpressionValue(
                tuple(sorted(resolved.topics)), resolved.version, resolved.timestamp_ms
            )
        ),
    )
