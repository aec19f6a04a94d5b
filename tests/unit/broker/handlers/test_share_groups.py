"""What clients are told of share groups: heartbeats, descriptions, offsets."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from broker.controller.images.features import SHARE_VERSION
from broker.handlers import (
    alter_share_group_offsets,
    delete_groups,
    delete_share_group_offsets,
    describe_share_group_offsets,
    list_groups,
    share_group_describe,
    share_group_heartbeat,
)
from protocol.error_codes import ErrorCode
from protocol.messages import alter_share_group_offsets as alter_messages
from protocol.messages import delete_groups as delete_groups_messages
from protocol.messages import delete_share_group_offsets as delete_messages
from protocol.messages import describe_share_group_offsets as offsets_messages
from protocol.messages import list_groups as list_messages
from protocol.messages import share_group_describe as describe_messages
from protocol.messages import share_group_heartbeat as heartbeat_messages
from tests.fakes.broker.share_persister import FakeSharePersister
from tests.unit.broker.handlers.groups_fixture import Groups

END = 30
"""End offset of every partition."""


@pytest.fixture
async def groups() -> Groups:
    groups = Groups()
    await groups.start()
    groups.coordinator.share_persister = FakeSharePersister()
    image = groups.controller.image
    groups.controller.image = replace(image, features={**image.features, SHARE_VERSION: 1})
    groups.services.end_offsets = SimpleNamespace(
        find=lambda wanted, done: done(dict.fromkeys(wanted, END))
    )
    return groups


def beat(groups: Groups, epoch: int, *topics: str, group: str = "g") -> Any:
    request = heartbeat_messages.ShareGroupHeartbeatRequest(
        group_id=group,
        member_id="m",
        member_epoch=epoch,
        subscribed_topic_names=list(topics) or None,
    )
    return groups.send(share_group_heartbeat, heartbeat_messages, request, 1)


def alter(groups: Groups, topic: str, *offsets: tuple[int, int], group: str = "g") -> Any:
    request = alter_messages.AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            alter_messages.AlterShareGroupOffsetsRequestTopic(
                topic_name=topic,
                partitions=[
                    alter_messages.AlterShareGroupOffsetsRequestPartition(
                        partition_index=index, start_offset=offset
                    )
                    for index, offset in offsets
                ],
            )
        ],
    )
    return groups.send(alter_share_group_offsets, alter_messages, request, 0)


def delete_offsets(groups: Groups, *topics: str, group: str = "g") -> Any:
    request = delete_messages.DeleteShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            delete_messages.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics
        ],
    )
    return groups.send(delete_share_group_offsets, delete_messages, request, 0)


def offsets(groups: Groups, asked: dict[str, list[int]] | None, version: int = 1) -> Any:
    request = offsets_messages.DescribeShareGroupOffsetsRequest(
        groups=[
            offsets_messages.DescribeShareGroupOffsetsRequestGroup(
                group_id="g",
                topics=None
                if asked is None
                else [
                    offsets_messages.DescribeShareGroupOffsetsRequestTopic(
                        topic_name=name, partitions=partitions
                    )
                    for name, partitions in asked.items()
                ],
            )
        ]
    )
    answer = groups.send(describe_share_group_offsets, offsets_messages, request, version)
    return answer.groups[0]


def found(group: Any) -> dict[tuple[str, int], tuple[int, int]]:
    return {
        (topic.topic_name, p.partition_index): (p.start_offset, p.lag)
        for topic in group.topics
        for p in topic.partitions
    }


async def test_a_member_is_given_partitions_and_described(groups: Groups) -> None:
    assert beat(groups, 0, "t").member_epoch == 1
    answer = beat(groups, 1)
    assert [topic.partitions for topic in answer.assignment.topic_partitions] == [[0, 1, 2]]
    described = groups.send(
        share_group_describe,
        describe_messages,
        describe_messages.ShareGroupDescribeRequest(
            group_ids=["g", "nobody"], include_authorized_operations=True
        ),
        1,
    ).groups
    assert (described[0].group_state, described[0].group_epoch) == ("Stable", 2)
    assert described[0].assignor_name == "simple"
    (member,) = described[0].members
    assert (member.member_id, member.client_id, member.client_host) == ("m", "app", "/10.1.2.3")
    assert member.assignment.topic_partitions[0].topic_name == "t"
    assert described[0].authorized_operations > 0
    assert described[1].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    request = list_messages.ListGroupsRequest(types_filter=["share"])
    (listed,) = groups.send(list_groups, list_messages, request, 5).groups
    assert (listed.group_id, listed.group_type, listed.protocol_type) == ("g", "share", "share")


async def test_what_is_wrong_with_a_heartbeat_is_told(groups: Groups) -> None:
    answer = beat(groups, 0)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.error_message == "SubscribedTopicNames must be set in first request."


async def test_offsets_are_altered_looked_at_and_deleted(groups: Groups) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answer = alter(groups, "t", (0, 7), (3, 7), (-1, 7))
    assert [p.error_code for p in answer.responses[0].partitions] == [0, unknown, unknown]
    answer = alter(groups, "nowhere", (0, 7))
    assert answer.responses[0].partitions[0].error_code == unknown
    assert found(offsets(groups, None)) == {("t", 0): (7, END - 7)}
    assert found(offsets(groups, {"t": [0, 1], "nowhere": [5]})) == {
        ("t", 0): (7, END - 7),
        ("t", 1): (-1, -1),
        ("nowhere", 5): (-1, -1),
    }
    assert found(offsets(groups, {"t": [0]}, version=0)) == {("t", 0): (7, -1)}
    assert offsets(groups, {}).topics == []
    answer = delete_offsets(groups, "t", "u", "nowhere")
    assert [topic.error_code for topic in answer.responses] == [0, unknown, unknown]
    assert found(offsets(groups, None)) == {}


async def test_groups_that_cannot_be_altered(groups: Groups) -> None:
    assert alter(groups, "t", (0, 1), group="").error_code == ErrorCode.INVALID_GROUP_ID
    assert delete_offsets(groups, "t", group="").error_code == ErrorCode.INVALID_GROUP_ID
    assert delete_offsets(groups, "t").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    beat(groups, 0, "t")
    assert alter(groups, "t", (0, 1)).error_code == ErrorCode.NON_EMPTY_GROUP
    assert delete_offsets(groups, "t").error_code == ErrorCode.NON_EMPTY_GROUP


async def test_a_group_is_deleted_with_its_state(groups: Groups) -> None:
    def delete() -> int:
        request = delete_groups_messages.DeleteGroupsRequest(groups_names=["g"])
        answer = groups.send(delete_groups, delete_groups_messages, request, 2)
        code: int = answer.results[0].error_code
        return code

    beat(groups, 0, "t")
    persister = groups.coordinator.share_persister
    assert isinstance(persister, FakeSharePersister)
    assert len(persister.states) == 3
    assert delete() == ErrorCode.NON_EMPTY_GROUP
    beat(groups, -1)
    assert delete() == ErrorCode.NONE
    assert not persister.states
    assert delete() == ErrorCode.GROUP_ID_NOT_FOUND


async def test_share_groups_are_switched_on_by_a_feature(groups: Groups) -> None:
    image = groups.controller.image
    groups.controller.image = replace(image, features={**image.features, SHARE_VERSION: 0})
    unsupported = ErrorCode.UNSUPPORTED_VERSION
    assert beat(groups, 0, "t").error_code == unsupported
    assert alter(groups, "t", (0, 1)).error_code == unsupported
    assert delete_offsets(groups, "t").error_code == unsupported
    assert offsets(groups, None).error_code == unsupported
    request = describe_messages.ShareGroupDescribeRequest(group_ids=["g"])
    answer = groups.send(share_group_describe, describe_messages, request, 1)
    assert answer.groups[0].error_code == unsupported
