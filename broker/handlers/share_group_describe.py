"""ShareGroupDescribe (API key 77), version 1.

Behaviour:
- Share groups only; another group is GROUP_ID_NOT_FOUND, as one that does not exist.
- INVALID_GROUP_ID for no name at all.
- Each member with its assignment; deleted topics are left out.

Versions:
- 1   stable in Kafka 4.1    KIP-932
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from broker.controller.authorized_operations import GROUP_OPERATIONS
from broker.controller.images.cluster_image import TopicImage
from broker.groups.share.member import ShareGroupMember
from broker.groups.share.share_group import ShareGroup
from broker.groups.share.simple_assignor import SimpleAssignor
from broker.runtime.errors import ApiError
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.SHARE_GROUP_DESCRIBE
VERSIONS = (1, 1)


def handle(
    services: "Services", context: "RequestContext", request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse:
    """Describe groups."""
    group_ids = dict.fromkeys(request.group_ids)
    return ShareGroupDescribeResponse(
        groups=[_described(services, request, group_id) for group_id in group_ids]
    )


def _described(
    services: "Services", request: ShareGroupDescribeRequest, group_id: str
) -> DescribedGroup:
    try:
        if not services.groups.serves_share_groups:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID, ErrorCode.INVALID_GROUP_ID.message)
        group = services.groups.group_of(group_id, ShareGroup, "share")
    except ApiError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
    described = _describe(services, group)
    if request.include_authorized_operations:
        described.authorized_operations = GROUP_OPERATIONS
    return described


def _describe(services: "Services", group: ShareGroup) -> DescribedGroup:
    topics = services.controller.image.topics_by_id
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=SimpleAssignor.name,
        members=[_member(member, topics) for member in group.members.values()],
    )


def _member(member: ShareGroupMember, topics: Mapping[UUID, TopicImage]) -> Member:
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        assignment=Assignment(
            topic_partitions=[
                TopicPartitions(
                    topic_id=topic_id, topic_name=topic.name, partitions=list(partitions)
                )
                for topic_id, partitions in member.assigned.items()
                if (topic := topics.get(topic_id)) is not None
            ]
        ),
    )
