"""Makes share groups of what the log says last about each of their keys.

The order in which keys come does not matter. A member that is only half there, because a record
was damaged, is left out: it is told to join again.

Source: Kafka, GroupMetadataManager.java (replay).
"""

from collections.abc import Iterator

from broker.groups.consumer.member import sorted_assignment
from broker.groups.share.kept_state import KeptState
from broker.groups.share.member import ShareGroupMember
from broker.groups.share.share_group import ShareGroup
from protocol.internal import share_group_records as r


class ShareGroupReplay:
    """Collects share groups; `groups` are complete when `finish` is exhausted."""

    def __init__(self) -> None:
        self.groups: dict[str, ShareGroup] = {}
        self._metadata: dict[tuple[str, str], r.ShareGroupMemberMetadataValue] = {}
        self._current: dict[tuple[str, str], r.ShareGroupCurrentMemberAssignmentValue] = {}

    def add(self, key: r.ShareGroupKey, value: bytes) -> None:
        """Take in one record.

        Raises:
            DecodeError: The value is damaged.
        """
        group_id = key.group
        if isinstance(key, r.ShareGroupMetadataKey):
            metadata = r.decode_share_group_metadata_value(value)
            group = self._group(group_id)
            group.group_epoch = metadata.epoch
            group.metadata_hash = metadata.metadata_hash
        elif isinstance(key, r.ShareGroupMemberMetadataKey):
            self._metadata[group_id, key.member_id] = r.decode_share_group_member_metadata_value(
                value
            )
            self._group(group_id)
        elif isinstance(key, r.ShareGroupCurrentMemberAssignmentKey):
            self._current[group_id, key.member_id] = (
                r.decode_share_group_current_member_assignment_value(value)
            )
        elif isinstance(key, r.ShareGroupTargetAssignmentMetadataKey):
            epoch = r.decode_share_group_target_assignment_metadata_value(value)
            self._group(group_id).assignment_epoch = epoch.assignment_epoch
        elif isinstance(key, r.ShareGroupTargetAssignmentMemberKey):
            target = r.decode_share_group_target_assignment_member_value(value)
            self._group(group_id).target[key.member_id] = sorted_assignment(target.partitions)
        else:
            kept = r.decode_share_group_state_partition_metadata_value(value)
            self._group(group_id).update_kept(KeptState.of(kept))

    def _group(self, group_id: str) -> ShareGroup:
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = ShareGroup(group_id)
        return group

    def finish(self) -> Iterator[None]:
        """Put the members into their groups, one at a time."""
        for (group_id, member_id), metadata in self._metadata.items():
            member = ShareGroupMember(member_id).with_metadata(metadata)
            current = self._current.get((group_id, member_id))
            if current is not None:
                member = member.with_current(current)
            self.groups[group_id].update_member(member)
            yield
        self._metadata.clear()
        self._current.clear()
