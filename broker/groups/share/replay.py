"""Replay of share groups from the newest records of their keys; see `broker.groups.modern.replay`.

Source: Kafka, GroupMetadataManager.java (replay).
"""

from typing_extensions import override

from broker.groups.modern.replay import ModernGroupReplay
from broker.groups.share.kept_state import KeptState
from broker.groups.share.member import ShareGroupMember
from broker.groups.share.share_group import ShareGroup
from protocol.internal import share_group_records as r


class ShareGroupReplay(
    ModernGroupReplay[
        ShareGroup, r.ShareGroupMemberMetadataValue, r.ShareGroupCurrentMemberAssignmentValue
    ]
):
    """Replayed share groups."""

    def add(self, key: r.ShareGroupKey, value: bytes) -> None:
        """Replay one record.

        Raises:
            DecodeError: The value is damaged.
        """
        group_id = key.group
        if isinstance(key, r.ShareGroupMetadataKey):
            metadata = r.decode_share_group_metadata_value(value)
            self.add_epoch(group_id, metadata.epoch, metadata.metadata_hash)
        elif isinstance(key, r.ShareGroupMemberMetadataKey):
            self.add_metadata(
                group_id, key.member_id, r.decode_share_group_member_metadata_value(value)
            )
        elif isinstance(key, r.ShareGroupCurrentMemberAssignmentKey):
            self.add_current(
                group_id, key.member_id, r.decode_share_group_current_member_assignment_value(value)
            )
        elif isinstance(key, r.ShareGroupTargetAssignmentMetadataKey):
            self.add_target_epoch(
                group_id, r.decode_share_group_target_assignment_metadata_value(value)
            )
        elif isinstance(key, r.ShareGroupTargetAssignmentMemberKey):
            self.add_target(
                group_id, key.member_id, r.decode_share_group_target_assignment_member_value(value)
            )
        else:
            kept = r.decode_share_group_state_partition_metadata_value(value)
            self.group(group_id).update_kept(KeptState.of(kept))

    @override
    def _new_group(self, group_id: str) -> ShareGroup:
        return ShareGroup(group_id)

    @override
    def _add_member(
        self,
        group: ShareGroup,
        member_id: str,
        metadata: r.ShareGroupMemberMetadataValue,
        current: r.ShareGroupCurrentMemberAssignmentValue | None,
    ) -> None:
        member = ShareGroupMember(member_id).with_metadata(metadata)
        group.update_member(member if current is None else member.with_current(current))
