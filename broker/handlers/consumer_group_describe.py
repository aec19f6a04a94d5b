"""ConsumerGroupDescribe (API key 69), versions 0 to 1.

Behaviour:
- Groups of KIP-848 only; a classic group is GROUP_ID_NOT_FOUND, as one that does not exist.
- Each member with its assignment and its target; deleted topics are left out.

Versions:
- 1   type of each member: 0 classic protocol, 1 consumer protocol    KIP-1099
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from broker.controller.authorized_operations import GROUP_OPERATIONS
from broker.controller.images.cluster_image import TopicImage
from broker.groups.consumer.consumer_group import ConsumerGroup
from broker.groups.consumer.member import ConsumerGroupMember
from broker.groups.modern.assignment import Assignment
from broker.runtime.errors import ApiError
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages import consumer_group_describe as messages
from protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.CONSUMER_GROUP_DESCRIBE
VERSIONS = (0, 1)

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def handle(
    services: "Services", context: "RequestContext", request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    """Describe groups."""
    group_ids = dict.fromkeys(request.group_ids)
    return ConsumerGroupDescribeResponse(
        groups=[_described(services, request, group_id) for group_id in group_ids]
    )


def _described(
    services: "Services", request: ConsumerGroupDescribeRequest, group_id: str
) -> DescribedGroup:
    try:
        if not services.groups.serves_consumer_groups:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        group = services.groups.group_of(group_id, ConsumerGroup, "consumer")
    except ApiError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
    described = _describe(services, group)
    if request.include_authorized_operations:
        described.authorized_operations = GROUP_OPERATIONS
    return described


def _describe(services: "Services", group: ConsumerGroup) -> DescribedGroup:
    topics = services.controller.image.topics_by_id
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(services.groups.default_assignor),
        members=[_member(group, member, topics) for member in group.members.values()],
    )


def _member(
    group: ConsumerGroup, member: ConsumerGroupMember, topics: Mapping[UUID, TopicImage]
) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(member.assigned, topics),
        target_assignment=_assignment(group.target_of(member.member_id), topics),
        member_type=CLASSIC_MEMBER if member.uses_classic_protocol else CONSUMER_MEMBER,
    )


def _assignment(assignment: Assignment, topics: Mapping[UUID, TopicImage]) -> messages.Assignment:
    return messages.Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=list(partitions))
            for topic_id, partitions in assignment.items()
            if (topic := topics.get(topic_id)) is not None
        ]
    )
