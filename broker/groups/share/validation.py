"""Validation of ShareGroupHeartbeat, independent of the group.

Source: Kafka, GroupCoordinatorService.java (throwIfShareGroupHeartbeatRequestIsInvalid),
KafkaApis.scala (isMemberIdValid).
"""

from broker.groups.modern.member import JOIN_EPOCH, LEAVE_EPOCH
from broker.groups.modern.validation import (
    SUBSCRIPTION_SIZE_MAX,
    check_lengths,
    check_not_empty,
    invalid_request,
)
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

MEMBER_ID_LENGTH_MAX = 36
"""Characters: as many as a UUID has in its usual form."""


def check_share_heartbeat(request: ShareGroupHeartbeatRequest) -> None:
    """Check a request.

    Raises:
        ApiError: INVALID_REQUEST, with Kafka's words.
    """
    if not 0 < len(request.member_id) <= MEMBER_ID_LENGTH_MAX:
        raise invalid_request("Invalid member id in the request.")
    check_not_empty("MemberId", request.member_id)
    check_not_empty("GroupId", request.group_id)
    check_not_empty("RackId", request.rack_id)
    names = request.subscribed_topic_names
    if request.member_epoch == JOIN_EPOCH:
        if not names:
            raise invalid_request("SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEAVE_EPOCH:
        raise invalid_request("MemberEpoch is invalid.")
    check_lengths((("GroupId", request.group_id), ("RackId", request.rack_id)))
    if names is not None and sum(map(len, names)) > SUBSCRIPTION_SIZE_MAX:
        raise invalid_request("SubscribedTopicNames are too long.")
