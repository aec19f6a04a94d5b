"""Validation of ConsumerGroupHeartbeat, independent of the group.

Source: Kafka, GroupCoordinatorService.java (throwIfConsumerGroupHeartbeatRequestIsInvalid).
"""

from collections.abc import Collection

from broker.groups.consumer.member import STATIC_LEAVE_EPOCH
from broker.groups.modern.member import JOIN_EPOCH, LEAVE_EPOCH
from broker.groups.modern.validation import (
    SUBSCRIPTION_SIZE_MAX,
    check_lengths,
    check_not_empty,
    invalid_request,
)
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

MEMBER_ID_REQUIRED_FROM_VERSION = 1
"""From here on clients make up their member ids themselves."""

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
        check_not_empty("MemberId", request.member_id)
    check_not_empty("GroupId", request.group_id)
    check_not_empty("InstanceId", request.instance_id)
    check_not_empty("RackId", request.rack_id)
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms == -1:
            raise invalid_request("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise invalid_request("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise invalid_request(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
                "(re-)joining."
            )
    elif epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            raise invalid_request("InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise invalid_request("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: "
            f"{', '.join(assignors)}.",
        )
    _check_sizes(request)


def _check_sizes(request: ConsumerGroupHeartbeatRequest) -> None:
    check_lengths(
        (
            ("GroupId", request.group_id),
            ("MemberId", request.member_id),
            ("InstanceId", request.instance_id),
            ("RackId", request.rack_id),
            ("SubscribedTopicRegex", request.subscribed_topic_regex),
        )
    )
    names = request.subscribed_topic_names
    if names is not None and (
        len(names) > SUBSCRIPTION_NAMES_MAX
        or sum(map(len, names)) > SUBSCRIPTION_SIZE_MAX
        or sum(len(name.encode()) for name in names if not name.isascii()) > SUBSCRIPTION_SIZE_MAX
    ):
        raise invalid_request("SubscribedTopicNames are too long.")
