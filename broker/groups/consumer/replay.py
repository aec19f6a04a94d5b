"""Makes consumer groups of what the log says last about each of their keys.

The order in which keys come does not matter. A member that is only half there, because a record
was damaged, is left out: it is told to join again.

Source: Kafka, GroupMetadataManager.java (replay).
"""

from collections.abc import Iterator
from typing import TypeAlias

from broker.groups.consumer.consumer_group import ConsumerGroup, ResolvedRegularExpression
from broker.groups.consumer.member import ConsumerGroupMember, sorted_assignment
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
"""What the log says of a consumer group; None: nothing that is still of use."""


class GroupReplay:
    """Collects consumer groups; `groups` are complete when `finish` is exhausted."""

    def __init__(self) -> None:
        self.groups: dict[str, ConsumerGroup] = {}
        self._metadata: dict[tuple[str, str], r.ConsumerGroupMemberMetadataValue] = {}
        self._current: dict[tuple[str, str], r.ConsumerGroupCurrentMemberAssignmentValue] = {}

    def add(self, key: r.ConsumerGroupKey, value: DecodedValue) -> None:
        """Take in one record; the value is what `decode` made of it."""
        group_id = key.group
        if isinstance(value, r.ConsumerGroupMetadataValue):
            group = self._group(group_id)
            group.group_epoch = value.epoch
            group.metadata_hash = value.metadata_hash
        elif isinstance(key, r.ConsumerGroupMemberMetadataKey):
            assert isinstance(value, r.ConsumerGroupMemberMetadataValue)
            self._metadata[group_id, key.member_id] = value
            self._group(group_id)
        elif isinstance(key, r.ConsumerGroupCurrentMemberAssignmentKey):
            assert isinstance(value, r.ConsumerGroupCurrentMemberAssignmentValue)
            self._current[group_id, key.member_id] = value
        elif isinstance(value, r.ConsumerGroupTargetAssignmentMetadataValue):
            self._group(group_id).assignment_epoch = value.assignment_epoch
        elif isinstance(key, r.ConsumerGroupTargetAssignmentMemberKey):
            assert isinstance(value, r.ConsumerGroupTargetAssignmentMemberValue)
            self._group(group_id).target[key.member_id] = sorted_assignment(value.partitions)
        elif isinstance(key, r.ConsumerGroupRegularExpressionKey):
            assert isinstance(value, ResolvedRegularExpression)
            self._group(group_id).update_resolved(key.pattern, value)
        else:
            # Kafka before 4.1 kept what topics were like; the next change deletes it.
            self._group(group_id).has_partition_metadata_record = True

    def _group(self, group_id: str) -> ConsumerGroup:
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = ConsumerGroup(group_id)
        return group

    def finish(self) -> Iterator[None]:
        """Put the members into their groups, one at a time."""
        for (group_id, member_id), metadata in self._metadata.items():
            member = ConsumerGroupMember(member_id).with_metadata(metadata)
            current = self._current.get((group_id, member_id))
            if current is not None:
                member = member.with_current(current)
            self.groups[group_id].update_member(member)
            yield
        self._metadata.clear()
        self._current.clear()


def decode(key: r.ConsumerGroupKey, value: bytes) -> DecodedValue:
    """What one record says; touches nothing else.

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
