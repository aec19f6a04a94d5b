"""Records of a share group in `__consumer_offsets`; layouts: `share_group_records`."""

from typing_extensions import override

from broker.groups.modern.records import GroupRecords
from broker.groups.share.member import ShareGroupMember
from protocol.internal import share_group_records as r
from protocol.internal.share_group_records import encode_share_group_key as key


class ShareGroupRecords(GroupRecords[ShareGroupMember]):
    """Encodes them; those of share state are made in `changes`."""

    @override
    def group_key(self, group_id: str) -> bytes:
        return key(r.ShareGroupMetadataKey(group_id))

    @override
    def member_key(self, group_id: str, member_id: str) -> bytes:
        return key(r.ShareGroupMemberMetadataKey(group_id, member_id))

    @override
    def target_epoch_key(self, group_id: str) -> bytes:
        return key(r.ShareGroupTargetAssignmentMetadataKey(group_id))

    @override
    def target_key(self, group_id: str, member_id: str) -> bytes:
        return key(r.ShareGroupTargetAssignmentMemberKey(group_id, member_id))

    @override
    def current_key(self, group_id: str, member_id: str) -> bytes:
        return key(r.ShareGroupCurrentMemberAssignmentKey(group_id, member_id))

    @override
    def group_value(self, group_epoch: int, metadata_hash: int) -> bytes:
        value = r.ShareGroupMetadataValue(group_epoch, metadata_hash)
        return r.encode_share_group_metadata_value(value)

    @override
    def member_value(self, member: ShareGroupMember) -> bytes:
        return r.encode_share_group_member_metadata_value(member.metadata_value())

    @override
    def current_value(self, member: ShareGroupMember) -> bytes:
        return r.encode_share_group_current_member_assignment_value(member.current_value())


SHARE_GROUP_RECORDS = ShareGroupRecords()
