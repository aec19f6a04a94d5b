"""Changes specific to consumer groups: static members, patterns, migration.

Source: Kafka, GroupCoordinatorRecordHelpers.java.
"""

from collections.abc import Mapping

from broker.coordinator.outcome import KeyValue
from broker.groups.consumer.consumer_group import ConsumerGroup, ResolvedRegularExpression
from broker.groups.consumer.member import ConsumerGroupMember
from broker.groups.modern.assignment import Assignment
from broker.groups.modern.changes import ModernChanges
from protocol.internal import consumer_group_records as r
from protocol.internal.consumer_group_records import encode_consumer_group_key as key


class Changes(ModernChanges[ConsumerGroup, ConsumerGroupMember]):
    """A consumer group's changes and their records; see `ModernChanges`."""

    __slots__ = ()

    def replace_member(self, old: ConsumerGroupMember, new: ConsumerGroupMember) -> None:
        """Replace `old` by `new`, which has the same instance id."""
        target = self.group.target_of(old.member_id)
        self.remove_member(old.member_id)
        self.put_member(new)
        self.set_target(new.member_id, target)
        self.put_current(new)

    def add_written_targets(self, targets: Mapping[str, Assignment]) -> None:
        """Set target assignments whose records are in the log already."""
        self.group.target.update(targets)

    def remove_target(self, member_id: str) -> None:
        """Remove the target of a member that has left since it was computed."""
        group = self.group
        group.target.pop(member_id, None)
        self.records.append((group.records.target_key(group.group_id, member_id), None))

    def set_resolved(
        self, regex: str, resolved: ResolvedRegularExpression, record: KeyValue
    ) -> None:
        """Set a pattern's topics; `record` was encoded before."""
        self.group.update_resolved(regex, resolved)
        self.records.append(record)

    def remove_resolved(self, regex: str) -> None:
        """Remove a pattern: no member subscribes by it any more."""
        self.group.update_resolved(regex, None)
        self.records.append(
            (key(r.ConsumerGroupRegularExpressionKey(self.group.group_id, regex)), None)
        )

    def remove_partition_metadata(self) -> None:
        """Delete the partition metadata record that Kafka before 4.1 wrote."""
        self.group.has_partition_metadata_record = False
        self.records.append((key(r.ConsumerGroupPartitionMetadataKey(self.group.group_id)), None))

    def put_everything(self) -> None:
        """Write the whole group, which was converted from another kind."""
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


def resolved_record(group_id: str, regex: str, resolved: ResolvedRegularExpression) -> KeyValue:
    """The record of a resolved pattern."""
    return (
        key(r.ConsumerGroupRegularExpressionKey(group_id, regex)),
        r.encode_consumer_group_regular_expression_value(
            r.ConsumerGroupRegularExpressionValue(
                tuple(sorted(resolved.topics)), resolved.version, resolved.timestamp_ms
            )
        ),
    )
