"""Heartbeats of share groups that are refused whatever the group is like."""

import pytest

from broker.groups.share.validation import check_share_heartbeat
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

GOOD: dict[str, object] = {
    "group_id": "g",
    "member_id": "m",
    "member_epoch": 0,
    "subscribed_topic_names": ["foo"],
}


def check(**changes: object) -> None:
    check_share_heartbeat(ShareGroupHeartbeatRequest(**{**GOOD, **changes}))  # type: ignore[arg-type]  # reason: values by name


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"rack_id": "r"},
        {"member_epoch": 5, "subscribed_topic_names": None},
        {"member_epoch": 5, "subscribed_topic_names": []},
        {"member_epoch": -1, "subscribed_topic_names": None},
        {"member_id": "m" * 36},
    ],
)
def test_accepted(changes: dict[str, object]) -> None:
    check(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"member_id": ""}, "Invalid member id in the request."),
        ({"member_id": "m" * 37}, "Invalid member id in the request."),
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"group_id": "g" * 40_000}, "GroupId is too long."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rack_id": "r" * 40_000}, "RackId is too long."),
        ({"subscribed_topic_names": None}, "SubscribedTopicNames must be set in first request."),
        ({"subscribed_topic_names": []}, "SubscribedTopicNames must be set in first request."),
        ({"subscribed_topic_names": ["t" * 249] * 2000}, "SubscribedTopicNames are too long."),
        ({"member_epoch": -2}, "MemberEpoch is invalid."),
    ],
)
def test_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        check(**changes)
    assert (caught.value.code, caught.value.message) == (ErrorCode.INVALID_REQUEST, message)
