"""Records of a consumer group in `__consumer_offsets`; layouts: `consumer_group_records`."""

from typing_extensions import override

from broker.groups.consumer.member import ConsumerGroupMember
from broker.groups.modern.records import GroupRecords
from protocol.internal import consumer_group_records as r
from protocol.internal.consumer_group_records import encode_consumer_group_key as key


class ConsumerGroupRecords(GroupRecords[ConsumerGroupMember]):
    """Encodes them; those of patterns are made in `changes`."""

    @override
    def group_key(self, group_id: str) -> bytes:
        return key(r.ConsumerGroupMetadataKey(group_id))

    @override
    def member_key(self, group_id: str, member_id: str) -> bytes:
        return key(r.ConsumerGroupMemberMetadataKey(group_id, member_id))

    @override
    def target_epoch_key(self, group_id: str) -> bytes:
        return key(r.ConsumerGroupTargetAssignmentMetadataKey(group_id))

    @override
    def target_key(self, group_id: str, member_id: str) -> bytes:
        return key(r.ConsumerGroupTargetAssignmentMemberKey(group_id, member_id))

    @override
    def current_key(self, group_id: str, member_id: str) -> bytes:
        return key(r.ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id))

    @override
    def group_value(self, group_epoch: int, metadata_hash: int) -> bytes:
        value = r.ConsumerGroupMetadataValue(group_epoch, metadata_hash)
        return r.encode_consumer_group_metadata_value(value)

    @override
    def member_value(self, member: ConsumerGroupMember) -> bytes:
        return r.encode_consumer_group_member_metadata_value(member.metadata_value())

    @override
    def current_value(self, member: ConsumerGroupMember) -> bytes:
        return r.encode_consumer_group_current_member_assignment_value(member.current_value())


CONSUMER_GROUP_RECORDS = ConsumerGroupRecords()
