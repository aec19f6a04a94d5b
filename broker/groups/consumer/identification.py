"""Which member sends a heartbeat: known, new, or the successor of a static member; epochs checked.

Source: Kafka, GroupMetadataManager.java (getOrMaybeSubscribeDynamicConsumerMember,
getOrMaybeSubscribeStaticConsumerMember, throwIfConsumerGroupMemberEpochIsInvalid).
"""

from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.member import STATIC_LEAVE_EPOCH, ConsumerGroupMember
from broker.groups.consumer.reconciliation import owns_only
from broker.groups.modern.member import JOIN_EPOCH, Client
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
)


def find_member(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, member_id: str
) -> tuple[ConsumerGroupMember, ConsumerGroupMember | None]:
    """The member as the group knows it, or a new one; and the static member that it replaces.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, FENCED_INSTANCE_ID or
            UNRELEASED_INSTANCE_ID.
    """
    instance_id = request.instance_id
    if request.member_epoch != JOIN_EPOCH:
        member = known_member(group, member_id, instance_id)
        _check_epoch(member, request)
        return member, None
    if instance_id is None:
        known = group.members.get(member_id)
        if known is None:
            return ConsumerGroupMember(member_id), None
        _check_epoch(known, request)
        return known, None
    existing = group.members.get(group.static_members.get(instance_id, ""))
    if existing is None:
        return group.members.get(member_id) or ConsumerGroupMember(member_id), None
    if (
        existing.member_id == member_id
        and existing.classic is None
        and existing.member_epoch != STATIC_LEAVE_EPOCH
        and JOIN_EPOCH in (existing.member_epoch, existing.previous_member_epoch)
    ):
        # It missed the response. Kafka refuses it, which is fatal to a client; there the
        # response is sent at once, here it waits for the target, and a broker may die meanwhile.
        return existing, None
    if existing.classic is None and existing.member_epoch != STATIC_LEAVE_EPOCH:
        raise ApiError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {existing.member_id} member.",
        )
    # It gets its predecessor's assignment, from the first epoch on.
    heir = existing._replace(
        member_id=member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=JOIN_EPOCH
    )
    return heir, existing


def known_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> ConsumerGroupMember:
    """The member of this id, or of this instance id.

    Raises:
        ApiError: UNKNOWN_MEMBER_ID; FENCED_INSTANCE_ID where another member has the instance id.
    """
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {group.group_id}.",
            )
        return member
    member = group.members.get(group.static_members.get(instance_id, ""))
    if member is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise ApiError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def _check_epoch(member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest) -> None:
    """Refuse a member with an invalid epoch.

    The previous epoch is accepted from a member that owns no more than its target: the response
    with the new epoch may have got lost. A join under the id of a member is that member, which has
    lost its state.
    """
    epoch = request.member_epoch
    if epoch in (JOIN_EPOCH, member.member_epoch):
        return
    if epoch < member.member_epoch:
        if epoch == member.previous_member_epoch and (
            owns_only(request.topic_partitions, member.assigned)
        ):
            return
        kind = "smaller"
    else:
        kind = "greater"
    raise ApiError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {kind} member epoch ({epoch}) than the one known by the "
        f"group coordinator ({member.member_epoch}). The member must abandon all its partitions "
        "and rejoin.",
    )


def updated_member(
    member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest, client: Client
) -> ConsumerGroupMember:
    """The member with the request's fields; those left out stay as they are."""
    names = request.subscribed_topic_names
    new_names = member.subscribed_topic_names if names is None else frozenset(names)
    if new_names == member.subscribed_topic_names:
        new_names = member.subscribed_topic_names
    regex = request.subscribed_topic_regex
    rebalance_timeout_ms = request.rebalance_timeout_ms
    return member._replace(
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=(
            member.rebalance_timeout_ms if rebalance_timeout_ms == -1 else rebalance_timeout_ms
        ),
        server_assignor=request.server_assignor or member.server_assignor,
        subscribed_topic_names=new_names,
        subscribed_topic_regex=member.subscribed_topic_regex if regex is None else regex,
        client_id=client.client_id,
        client_host=client.client_host,
        classic=None,
    )
