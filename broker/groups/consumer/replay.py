"""Consumer groups from the newest records of their keys; see `broker.groups.modern.replay`.

Source: Kafka, GroupMetadataManager.java (replay).
"""

from typing import TypeAlias

from typing_extensions import override

from broker.groups.consumer.consumer_group import ConsumerGroup, ResolvedRegularExpression
from broker.groups.consumer.member import ConsumerGroupMember
from broker.groups.modern.replay import ModernGroupReplay
from protocol.internal import consumer_group_records as r

DecodedValue: TypeAlias = (
    r.ConsumerGroupMetadataValue
    | r.ConsumerGroupMemberMetadataValue
    | r.ConsumerGroupCurrentMemberAssignmentValue
    | r.ConsumerGroupTargetAssignmentMetadataValue
    | r.ConsumerGroupTargetAssignmentMemberValue
    | ResolvedRegularExpression
    | None
)
"""A decoded value of a consumer group's record; None: a kind that is no longer used."""


class ConsumerGroupReplay(
    ModernGroupReplay[
        ConsumerGroup,
        r.ConsumerGroupMemberMetadataValue,
        r.ConsumerGroupCurrentMemberAssignmentValue,
    ]
):
    """Collects consumer groups."""

    def add(self, key: r.ConsumerGroupKey, value: DecodedValue) -> None:
        """Replay one record; the value is what `decode` made of it."""
        group_id = key.group
        if isinstance(value, r.ConsumerGroupMetadataValue):
            self.add_epoch(group_id, value.epoch, value.metadata_hash)
        elif isinstance(key, r.ConsumerGroupMemberMetadataKey):
            assert isinstance(value, r.ConsumerGroupMemberMetadataValue)
            self.add_metadata(group_id, key.member_id, value)
        elif isinstance(key, r.ConsumerGroupCurrentMemberAssignmentKey):
            assert isinstance(value, r.ConsumerGroupCurrentMemberAssignmentValue)
            self.add_current(group_id, key.member_id, value)
        elif isinstance(value, r.ConsumerGroupTargetAssignmentMetadataValue):
            self.add_target_epoch(group_id, value)
        elif isinstance(key, r.ConsumerGroupTargetAssignmentMemberKey):
            assert isinstance(value, r.ConsumerGroupTargetAssignmentMemberValue)
            self.add_target(group_id, key.member_id, value)
        elif isinstance(key, r.ConsumerGroupRegularExpressionKey):
            assert isinstance(value, ResolvedRegularExpression)
            self.group(group_id).update_resolved(key.pattern, value)
        else:
            # Kafka before 4.1 kept the topics' metadata; the next change deletes it.
            self.group(group_id).has_partition_metadata_record = True

    @override
    def _new_group(self, group_id: str) -> ConsumerGroup:
        return ConsumerGroup(group_id)

    @override
    def _add_member(
        self,
        group: ConsumerGroup,
        member_id: str,
        metadata: r.ConsumerGroupMemberMetadataValue,
        current: r.ConsumerGroupCurrentMemberAssignmentValue | None,
    ) -> None:
        member = ConsumerGroupMember(member_id).with_metadata(metadata)
        group.update_member(member if current is None else member.with_current(current))


def decode(key: r.ConsumerGroupKey, value: bytes) -> DecodedValue:
    """Decode one record's value; may be called on any thread.

    Raises:
        DecodeError: The value is damaged.
    """
    if isinstance(key, r.ConsumerGroupMetadataKey):
        return r.decode_consumer_group_metadata_value(value)
    if isinstance(key, r.ConsumerGroupMemberMetadataKey):
        return r.decode_consumer_group_member_metadata_value(value)
    if isinstance(key, r.ConsumerGroupCurrentMemberAssignmentKey):
        return r.decode_consumer_group_current_member_assignment_value(value)
    if isinstance(key, r.ConsumerGroupTargetAssignmentMetadataKey):
        return r.decode_consumer_group_target_assignment_metadata_value(value)
    if isinstance(key, r.ConsumerGroupTargetAssignmentMemberKey):
        return r.decode_consumer_group_target_assignment_member_value(value)
    if isinstance(key, r.ConsumerGroupRegularExpressionKey):
        found = r.decode_consumer_group_regular_expression_value(value)
        return ResolvedRegularExpression(frozenset(found.topics), found.version, found.timestamp_ms)
    return None
