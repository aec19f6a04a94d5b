"""What a ConsumerGroupHeartbeat must be like, whatever the group is like.

Source: Kafka, GroupCoordinatorService.java (throwIfConsumerGroupHeartbeatRequestIsInvalid).
"""

from collections.abc import Collection

from broker.groups.consumer.member import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.internal.consumer_offsets import STRING_SIZE_MAX
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

MEMBER_ID_REQUIRED_FROM_VERSION = 1
"""From here on clients make up their member ids themselves."""

NAME_LENGTH_MAX = STRING_SIZE_MAX // 4
"""Characters of a name that is part of a record's key, of at most four bytes each."""

SUBSCRIPTION_SIZE_MAX = 256 * 1024
"""Bytes of all topics that one member names: they have to fit into one record."""

SUBSCRIPTION_NAMES_MAX = 20_000
"""Topics that one member names: each costs the loop some time."""


def check_heartbeat(
    request: ConsumerGroupHeartbeatRequest, api_version: int, assignors: Collection[str]
) -> None:
    """Check a request.

    Raises:
        ApiError: INVALID_REQUEST or UNSUPPORTED_ASSIGNOR, with Kafka's words.
    """
    epoch = request.member_epoch
    if api_version >= MEMBER_ID_REQUIRED_FROM_VERSION or epoch > 0 or epoch == LEAVE_EPOCH:
        _not_empty(request.member_id, "MemberId can't be empty.")
    _not_empty(request.group_id, "GroupId can't be empty.")
    _not_empty(request.instance_id, "InstanceId can't be empty.")
    _not_empty(request.rack_id, "RackId can't be empty.")
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
                "(re-)joining."
            )
    elif epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: "
            f"{', '.join(assignors)}.",
        )
    _check_sizes(request)


def _check_sizes(request: ConsumerGroupHeartbeatRequest) -> None:
    for name, value in (
        ("GroupId", request.group_id),
        ("MemberId", request.member_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
        ("SubscribedTopicRegex", request.subscribed_topic_regex),
    ):
        if value is not None and len(value) > NAME_LENGTH_MAX:
            raise _invalid(f"{name} is too long.")
    names = request.subscribed_topic_names
    if names is not None and (
        len(names) > SUBSCRIPTION_NAMES_MAX
        or sum(map(len, names)) > SUBSCRIPTION_SIZE_MAX
        or sum(len(name.encode()) for name in names if not name.isascii()) > SUBSCRIPTION_SIZE_MAX
    ):
        raise _invalid("SubscribedTopicNames are too long.")


def _not_empty(value: str | None, message: str) -> None:
    if value is not None and not value.strip():
        raise _invalid(message)


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
