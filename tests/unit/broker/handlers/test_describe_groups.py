"""DescribeGroups: every served version, end to end."""

import asyncio
from typing import Any

import pytest

from broker.handlers import (
    describe_groups,
    join_group,
)
from protocol.error_codes import ErrorCode
from protocol.messages import describe_groups as describe_messages
from protocol.messages import join_group as join_messages
from tests.unit.broker.handlers.groups_fixture import (
    Groups,
    simple_group,
    stable_member,
    versions,
)


def describe(groups: Groups, version: int, group: str, *, operations: bool = False) -> Any:
    request = describe_messages.DescribeGroupsRequest(groups=[group])
    if version >= 3:
        request.include_authorized_operations = operations
    return groups.send(describe_groups, describe_messages, request, version).groups[0]


@pytest.mark.parametrize("version", versions(describe_groups))
async def test_groups_are_described_in_every_version(groups: Groups, version: int) -> None:
    member_id = await stable_member(groups)
    group = describe(groups, version, "live")
    assert (group.error_code, group.group_state) == (ErrorCode.NONE, "Stable")
    assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == (
        member_id,
        "app",
        "/10.1.2.3",
    )
    assert (member.member_metadata, member.member_assignment) == (b"meta", b"part")


async def test_group_named_twice_is_described_once(groups: Groups) -> None:
    """Its members may have brought a megabyte: naming it again must not cost that again."""
    await stable_member(groups)
    request = describe_messages.DescribeGroupsRequest(groups=["live", "other", "live"])
    described = groups.send(describe_groups, describe_messages, request, 6).groups
    assert [group.group_id for group in described] == ["live", "other"]


async def test_protocol_is_only_told_of_stable_groups(groups: Groups) -> None:
    member = await stable_member(groups)
    request = join_messages.JoinGroupRequest(
        group_id="live",
        member_id=member,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[join_messages.JoinGroupRequestProtocol(name="range", metadata=b"2")],
    )
    parked = groups.send(join_group, join_messages, request, 9)
    group = describe(groups, 5, "live")
    assert (group.group_state, group.protocol_data) == ("CompletingRebalance", "")
    assert group.members[0].member_metadata == b""
    if asyncio.iscoroutine(parked):
        parked.close()


@pytest.mark.parametrize("version", versions(describe_groups))
async def test_missing_groups_are_dead(groups: Groups, version: int) -> None:
    """From version 6 also an error with its message."""
    group = describe(groups, version, "missing")
    assert (group.group_id, group.group_state) == ("missing", "Dead")
    if version >= 6:
        assert group.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert group.error_message == "Group missing not found."
    else:
        assert group.error_code == ErrorCode.NONE


async def test_operations_are_told_when_asked_for(groups: Groups) -> None:
    """READ 3, DELETE 6, DESCRIBE 8, DESCRIBE_CONFIGS 10, ALTER_CONFIGS 11."""
    simple_group(groups)
    expected = 2**3 + 2**6 + 2**8 + 2**10 + 2**11
    assert describe(groups, 5, "simple", operations=True).authorized_operations == expected
    assert describe(groups, 5, "simple").authorized_operations == -(2**31)
