"""ConsumerGroupDescribe through the codec of each version."""

import pytest

from broker.controller.authorized_operations import GROUP_OPERATIONS
from broker.handlers import consumer_group_describe
from protocol.error_codes import ErrorCode
from tests.unit.broker.handlers.groups_fixture import Groups, T, simple_group, versions
from tests.unit.broker.handlers.test_consumer_group_heartbeat import describe, join


@pytest.fixture
async def groups() -> Groups:
    made = Groups()
    await made.start()
    return made


@pytest.mark.parametrize("version", versions(consumer_group_describe))
async def test_group_with_its_members(groups: Groups, version: int) -> None:
    await join(groups, instance_id="i", rack_id="r")
    one = describe(groups, "g", version)
    assert (one.error_code, one.group_state, one.assignor_name) == (0, "Stable", "uniform")
    assert (one.group_epoch, one.assignment_epoch) == (1, 1)
    assert one.authorized_operations == GROUP_OPERATIONS
    (member,) = one.members
    assert (member.member_id, member.instance_id, member.rack_id) == ("m", "i", "r")
    assert (member.client_id, member.client_host, member.member_epoch) == ("app", "/10.1.2.3", 1)
    assert member.subscribed_topic_names == ["t"]
    for assignment in (member.assignment, member.target_assignment):
        (topic,) = assignment.topic_partitions
        assert (topic.topic_id, topic.topic_name, topic.partitions) == (T, "t", [0, 1, 2])
    assert member.member_type == (1 if version >= 1 else -1)


async def test_groups_that_are_none_of_these(groups: Groups) -> None:
    simple_group(groups)
    for group, message in (
        ("none", "Group none not found."),
        ("simple", "Group simple is not a consumer group."),
    ):
        one = describe(groups, group)
        assert one.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert one.error_message == message


async def test_group_without_a_name(groups: Groups) -> None:
    assert describe(groups, "").error_code == ErrorCode.INVALID_GROUP_ID


async def test_loading_and_elsewhere() -> None:
    groups = Groups()
    await groups.start(elect=False)
    assert describe(groups, "g").error_code == ErrorCode.NOT_COORDINATOR
