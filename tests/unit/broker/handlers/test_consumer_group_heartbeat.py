"""ConsumerGroupHeartbeat through the codec of each version, and what other requests see then."""

import asyncio
from typing import Any

import pytest

from broker.handlers import (
    consumer_group_describe,
    consumer_group_heartbeat,
    describe_groups,
    list_groups,
    offset_fetch,
)
from config.broker import BrokerConfig
from protocol.error_codes import ErrorCode
from protocol.messages import consumer_group_describe as describe_messages
from protocol.messages import consumer_group_heartbeat as messages
from protocol.messages import describe_groups as describe_groups_messages
from protocol.messages import list_groups as list_messages
from protocol.messages import offset_fetch as fetch_messages
from tests.unit.broker.handlers.groups_fixture import Groups, T, simple_group, versions


async def beat(groups: Groups, version: int, **values: Any) -> Any:
    request = messages.ConsumerGroupHeartbeatRequest(
        **{"group_id": "g", "member_id": "m", "topic_partitions": None, **values}
    )
    answer = groups.send(consumer_group_heartbeat, messages, request, version)
    if not asyncio.iscoroutine(answer):
        return answer
    waiting = asyncio.ensure_future(answer)
    await asyncio.sleep(0)
    groups.timer.advance(300)
    return await waiting


async def join(groups: Groups, version: int = 1, **values: Any) -> Any:
    return await beat(
        groups,
        version,
        **{
            "member_epoch": 0,
            "rebalance_timeout_ms": 1_000,
            "subscribed_topic_names": ["t"],
            "topic_partitions": [],
            **values,
        },
    )


@pytest.fixture
async def groups() -> Groups:
    made = Groups()
    await made.start()
    return made


@pytest.mark.parametrize("version", versions(consumer_group_heartbeat))
async def test_member_joins_stays_and_leaves(groups: Groups, version: int) -> None:
    joined = await join(groups, version)
    assert (joined.error_code, joined.member_epoch, joined.member_id) == (0, 1, "m")
    assert [(t.topic_id, t.partitions) for t in joined.assignment.topic_partitions] == [
        (T, [0, 1, 2])
    ]
    stays = await beat(groups, version, member_epoch=1)
    assert (stays.error_code, stays.member_epoch, stays.assignment) == (0, 1, None)
    left = await beat(groups, version, member_epoch=-1)
    assert (left.error_code, left.member_epoch) == (0, -1)


async def test_errors_have_words(groups: Groups) -> None:
    refused = await beat(groups, 1, member_epoch=4)
    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert refused.error_message == "Consumer group g not found."
    refused = await join(groups, group_id="")
    assert refused.error_code == ErrorCode.INVALID_REQUEST


async def test_who_does_not_coordinate_says_so() -> None:
    groups = Groups()
    assert (await join(groups)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    await groups.start(elect=False)
    assert (await join(groups)).error_code == ErrorCode.NOT_COORDINATOR


async def test_protocol_can_be_switched_off() -> None:
    groups = Groups()
    await groups.start()
    groups.coordinator._settings = BrokerConfig().replace(
        group_coordinator_rebalance_protocols=("classic",)
    )
    assert (await join(groups)).error_code == ErrorCode.UNSUPPORTED_VERSION
    described = describe(groups, "g")
    assert described.error_code == ErrorCode.UNSUPPORTED_VERSION


def describe(groups: Groups, group: str, version: int = 1) -> Any:
    request = describe_messages.ConsumerGroupDescribeRequest(
        group_ids=[group], include_authorized_operations=True
    )
    answer = groups.send(consumer_group_describe, describe_messages, request, version)
    (one,) = answer.groups
    return one


async def test_classic_description_does_not_know_it(groups: Groups) -> None:
    await join(groups)
    for version in versions(describe_groups):
        request = describe_groups_messages.DescribeGroupsRequest(groups=["g"])
        (one,) = groups.send(describe_groups, describe_groups_messages, request, version).groups
        assert one.group_state == "Dead"
        if version >= 6:
            assert one.error_code == ErrorCode.GROUP_ID_NOT_FOUND
            assert one.error_message == "Group g is not a classic group."


async def test_list_tells_types(groups: Groups) -> None:
    await join(groups)
    simple_group(groups)

    def listed(**filters: list[str]) -> list[tuple[str, str, str]]:
        request = list_messages.ListGroupsRequest(**filters)
        answer = groups.send(list_groups, list_messages, request, 5)
        return sorted((g.group_id, g.group_type, g.group_state) for g in answer.groups)

    ours, simple = ("g", "consumer", "Stable"), ("simple", "classic", "Empty")
    assert listed() == [ours, simple]
    assert listed(types_filter=["Consumer"]) == [ours]
    assert listed(types_filter=["classic"]) == [simple]
    assert listed(types_filter=["share"]) == []
    assert listed(states_filter=["stable"], types_filter=["consumer"]) == [ours]


@pytest.mark.parametrize("version", [9, 10])
async def test_offset_fetch_checks_member_and_epoch(groups: Groups, version: int) -> None:
    await join(groups)

    def code(member_id: str | None, epoch: int) -> int:
        group = fetch_messages.OffsetFetchRequestGroup(
            group_id="g", member_id=member_id, member_epoch=epoch, topics=None
        )
        request = fetch_messages.OffsetFetchRequest(groups=[group])
        answer = groups.send(offset_fetch, fetch_messages, request, version)
        found: int = answer.groups[0].error_code
        return found

    assert code(None, -1) == ErrorCode.NONE
    assert code("m", 1) == ErrorCode.NONE
    assert code("m", 2) == ErrorCode.STALE_MEMBER_EPOCH
    assert code("x", 1) == ErrorCode.UNKNOWN_MEMBER_ID
