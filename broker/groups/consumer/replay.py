"""Makes consumer groups of what the log says last about each of their keys.

The order in which keys come does not matter. A member that is only half there, because a record
was damaged, is left out: it is told to join again.

Source: Kafka, GroupMetadataManager.java (replay).
"""

from collections.abc import Iterator

from broker.groups.consumer.consumer_group import ConsumerGroup, ResolvedRegularExpression
from broker.groups.consumer.member import ConsumerGroupMember, sorted_assignment
from protocol.internal import consumer_group_records as r


class GroupReplay:
    """Collects consumer groups; `groups` are complete when `finish` is exhausted."""

    def __init__(self) -> None:
        self.groups: dict[str, ConsumerGroup] = {}
        self._metadata: dict[tuple[str, str], r.ConsumerGroupMemberMetadataValue] = {}
        self._current: dict[tuple[str, str], r.ConsumerGroupCurrentMemberAssignmentValue] = {}

    def add(self, key: r.ConsumerGroupKey, value: bytes) -> None:
        """Take in one record.

        Raises:
            DecodeError: The value is damaged.
        """
        group_id = key.group
        if isinstance(key, r.ConsumerGroupMetadataKey):
            metadata = r.decode_consumer_group_metadata_value(value)
            group = self._group(group_id)
            group.group_epoch = metadata.epoch
            group.metadata_hash = metadata.metadata_hash
        elif isinstance(key, r.ConsumerGroupMemberMetadataKey):
            self._metadata[group_id, key.member_id] = r.decode_consumer_group_member_metadata_value(
                value
            )
            self._group(group_id)
        elif isinstance(key, r.ConsumerGroupCurrentMemberAssignmentKey):
            self._current[group_id, key.member_id] = (
                r.decode_consumer_group_current_member_assignment_value(value)
            )
        elif isinstance(key, r.ConsumerGroupTargetAssignmentMetadataKey):
            epoch = r.decode_consumer_group_target_assignment_metadata_value(value)
            self._group(group_id).assignment_epoch = epoch.assignment_epoch
        elif isinstance(key, r.ConsumerGroupTargetAssignmentMemberKey):
            target = r.decode_consumer_group_target_assignment_member_value(value)
            self._group(group_id).target[key.member_id] = sorted_assignment(target.partitions)
        elif isinstance(key, r.ConsumerGroupRegularExpressionKey):
            found = r.decode_consumer_group_regular_expression_value(value)
            self._group(group_id).update_resolved(
                key.pattern,
                ResolvedRegularExpression(
                    frozenset(found.topics), found.version, found.timestamp_ms
                ),
            )
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
