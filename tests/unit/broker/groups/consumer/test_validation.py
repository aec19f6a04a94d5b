"""Requests that are refused whatever the group is like; the words are Kafka's."""

from typing import Any

import pytest

from broker.groups.consumer.validation import (
    SUBSCRIPTION_NAMES_MAX,
    check_heartbeat,
)
from broker.groups.modern.validation import SUBSCRIPTION_SIZE_MAX
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)

ASSIGNORS = ("uniform", "range")
JOIN: dict[str, Any] = {
    "group_id": "g",
    "member_id": "m",
    "member_epoch": 0,
    "rebalance_timeout_ms": 1,
    "topic_partitions": [],
    "subscribed_topic_names": [],
}


def check(version: int = 1, **values: Any) -> None:
    check_heartbeat(ConsumerGroupHeartbeatRequest(**values), version, ASSIGNORS)


def test_joins_and_heartbeats_and_leaves() -> None:
    check(**JOIN)
    check(**{**JOIN, "subscribed_topic_names": None, "subscribed_topic_regex": ""})
    check(0, **{**JOIN, "member_id": ""})
    check(**{**JOIN, "server_assignor": "range", "instance_id": "i", "rack_id": "r"})
    check(group_id="g", member_id="m", member_epoch=3, topic_partitions=None)
    check(group_id="g", member_id="m", member_epoch=-1)
    check(group_id="g", member_id="m", member_epoch=-2, instance_id="i")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"member_id": " ", "member_epoch": 1}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"topic_partitions": [ConsumerGroupHeartbeatRequestTopicPartitions()]},
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when "
            "(re-)joining.",
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
        ({"group_id": "g" * 9_000}, "GroupId is too long."),
        ({"subscribed_topic_regex": "x" * 9_000}, "SubscribedTopicRegex is too long."),
        (
            {"subscribed_topic_names": ["x" * SUBSCRIPTION_SIZE_MAX, "y"]},
            "SubscribedTopicNames are too long.",
        ),
        (
            {"subscribed_topic_names": ["😀" * (SUBSCRIPTION_SIZE_MAX // 4), "😀"]},
            "SubscribedTopicNames are too long.",
        ),
        (
            {"subscribed_topic_names": ["x"] * (SUBSCRIPTION_NAMES_MAX + 1)},
            "SubscribedTopicNames are too long.",
        ),
    ],
)
def test_invalid_request(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as refused:
        check(**{**JOIN, **values})
    assert (refused.value.code, refused.value.message) == (ErrorCode.INVALID_REQUEST, message)


def test_assignor_that_nobody_knows() -> None:
    with pytest.raises(ApiError) as refused:
        check(**{**JOIN, "server_assignor": "sticky"})
    assert refused.value.code is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert refused.value.message == (
        "ServerAssignor sticky is not supported. Supported assignors: uniform, range."
    )


def test_old_clients_join_without_member_id_but_go_on_with_it() -> None:
    for epoch in (1, -1):
        with pytest.raises(ApiError):
            check(0, **{**JOIN, "member_id": "", "member_epoch": epoch})
