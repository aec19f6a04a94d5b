"""Rules about classic members of a consumer group: which one a request is of, and its errors."""

from broker.groups.classic.join_attempt import JoinAttempt
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.member import ConsumerGroupMember
from broker.groups.migration.conversion import classic_metadata
from broker.groups.modern.member import JOIN_EPOCH
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.internal.consumer_protocol import ConsumerSubscription
from protocol.internal.consumer_subscription import PROTOCOL_TYPE
from protocol.messages.leave_group import MemberIdentity
from protocol.messages.sync_group import SyncGroupRequest


def waits_for_partitions(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Whether other members still own partitions of the member's target."""
    for topic_id, partitions in group.target_of(member.member_id).items():
        assigned = member.assigned.get(topic_id, ())
        for partition in partitions:
            if partition not in assigned and group.partition_epoch(topic_id, partition) != -1:
                return True
    return False


def supports_one_protocol(group: ConsumerGroup, attempt: JoinAttempt) -> bool:
    """Whether all classic members support one of the protocols, so that a downgrade is possible."""
    if attempt.protocol_type != PROTOCOL_TYPE or not attempt.protocols:
        return False
    counts = group.classic_protocol_counts
    return any(counts.get(name, 0) == group.classic_member_count for name, _ in attempt.protocols)


def find_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, *, is_unknown: bool
) -> tuple[ConsumerGroupMember, ConsumerGroupMember | None]:
    """The group's member, or a new one; and the static member that it replaces.

    Args:
        group: Of the member.
        member_id: As the client, or the coordinator, has chosen it.
        instance_id: Of a static member.
        is_unknown: The request named no member id: a static member is replaced by a new one.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID: another member has that instance id.
    """
    if instance_id is None:
        return group.members.get(member_id) or ConsumerGroupMember(member_id), None
    existing = group.members.get(group.static_members.get(instance_id, ""))
    if not is_unknown:
        if existing is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        if existing.member_id != member_id:
            raise ApiError(ErrorCode.FENCED_INSTANCE_ID)
        return existing, None
    if existing is None:
        return ConsumerGroupMember(member_id), None
    heir = existing._replace(
        member_id=member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=JOIN_EPOCH
    )
    return heir, existing


def updated_member(
    member: ConsumerGroupMember, attempt: JoinAttempt, subscription: ConsumerSubscription
) -> ConsumerGroupMember:
    """The member with what its JoinGroup says."""
    names = frozenset(subscription.topics)
    if names == member.subscribed_topic_names:
        names = member.subscribed_topic_names
    return member._replace(
        instance_id=attempt.group_instance_id or member.instance_id,
        rack_id=subscription.rack or member.rack_id,
        rebalance_timeout_ms=attempt.rebalance_timeout_ms,
        subscribed_topic_names=names,
        # Classic members have resolved their patterns themselves.
        subscribed_topic_regex="",
        client_id=attempt.client_id,
        client_host=attempt.client_host,
        classic=classic_metadata(attempt.session_timeout_ms, attempt.protocols),
    )


def _member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerGroupMember:
    if instance_id is None:
        member = group.members.get(member_id)
    else:
        member = group.members.get(group.static_members.get(instance_id, ""))
        if member is not None and member.member_id != member_id:
            raise ApiError(ErrorCode.FENCED_INSTANCE_ID)
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    return member


def classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> ConsumerGroupMember:
    """A member that uses the classic protocol.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    member = _member(group, member_id, instance_id)
    if member.classic is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    return member


def leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerGroupMember:
    """The member that a LeaveGroup names, of either protocol.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    instance_id = identity.group_instance_id
    if instance_id is not None and not identity.member_id:
        # An administrator does not know the member id.
        return _member(group, group.static_members.get(instance_id, ""), instance_id)
    return _member(group, identity.member_id, instance_id)


def check_generation(member: ConsumerGroupMember, generation: int) -> None:
    """Check that a request is of the member's generation, which is its epoch.

    Raises:
        ApiError: ILLEGAL_GENERATION.
    """
    if generation != member.member_epoch:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)


def check_protocol(member: ConsumerGroupMember, request: SyncGroupRequest) -> None:
    """Check that a SyncGroup names the protocol that the member's JoinGroup was answered with.

    Raises:
        ApiError: INCONSISTENT_GROUP_PROTOCOL.
    """
    assert member.classic is not None
    if (request.protocol_type is not None and request.protocol_type != PROTOCOL_TYPE) or (
        request.protocol_name is not None
        and request.protocol_name != member.classic.supported_protocols[0].name
    ):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
