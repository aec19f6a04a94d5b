"""What a ShareGroupHeartbeat must be like, whatever the group is like.

Source: Kafka, GroupCoordinatorService.java (throwIfShareGroupHeartbeatRequestIsInvalid),
KafkaApis.scala (isMemberIdValid).
"""

from broker.groups.consumer.member import JOIN_EPOCH, LEAVE_EPOCH
from broker.groups.consumer.validation import NAME_LENGTH_MAX, SUBSCRIPTION_SIZE_MAX
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

MEMBER_ID_LENGTH_MAX = 36
"""Characters: as many as a UUID has in its usual form."""


def check_share_heartbeat(request: ShareGroupHeartbeatRequest) -> None:
    """Check a request.

    Raises:
        ApiError: INVALID_REQUEST, with Kafka's words.
    """
    if not 0 < len(request.member_id) <= MEMBER_ID_LENGTH_MAX:
        raise _invalid("Invalid member id in the request.")
    _not_empty(request.member_id, "MemberId can't be empty.")
    _not_empty(request.group_id, "GroupId can't be empty.")
    _not_empty(request.rack_id, "RackId can't be empty.")
    names = request.subscribed_topic_names
    if request.member_epoch == JOIN_EPOCH:
        if not names:
            raise _invalid("SubscribedTopicNames must be set in first request.")
    elif request.member_epoch < LEAVE_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    for name, value in (("GroupId", request.group_id), ("RackId", request.rack_id)):
        if value is not None and len(value) > NAME_LENGTH_MAX:
            raise _invalid(f"{name} is too long.")
    if names is not None and sum(map(len, names)) > SUBSCRIPTION_SIZE_MAX:
        raise _invalid("SubscribedTopicNames are too long.")


def _not_empty(value: str | None, message: str) -> None:
    if value is not None and not value.strip():
        raise _invalid(message)


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
