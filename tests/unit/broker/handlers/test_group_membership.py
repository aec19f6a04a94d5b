"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup: every served version, end to end."""

import asyncio
import inspect
from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker.handlers import heartbeat, join_group, leave_group, sync_group
from protocol.error_codes import ErrorCode
from protocol.messages import heartbeat as heartbeat_messages
from protocol.messages import join_group as join_messages
from protocol.messages import leave_group as leave_messages
from protocol.messages import sync_group as sync_messages
from tests.unit.broker.handlers.groups_fixture import Groups, versions


@pytest.fixture
async def groups() -> AsyncIterator[Groups]:
    groups = Groups()
    await groups.start()
    yield groups
    await groups.coordinator.stop()


def join(groups: Groups, version: int, member_id: str = "") -> Any:
    return groups.send(
        join_group,
        join_messages,
        join_messages.JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000 if version else -1,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[join_messages.JoinGroupRequestProtocol(name="range", metadata=b"m")],
        ),
        version,
    )


async def joined(groups: Groups, version: int) -> Any:
    answer = join(groups, version)
    if version >= 4:
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        answer = join(groups, version, answer.member_id)
    assert inspect.isawaitable(answer)
    waiting = asyncio.ensure_future(answer)
    await asyncio.sleep(0)
    groups.timer.advance(3_000)
    return await waiting


@pytest.mark.parametrize("version", versions(join_group))
async def test_join_in_every_version(groups: Groups, version: int) -> None:
    answer = await joined(groups, version)
    assert answer.error_code == ErrorCode.NONE
    assert answer.generation_id == 1
    assert answer.leader == answer.member_id
    assert answer.protocol_name == "range"
    assert answer.protocol_type == ("consumer" if version >= 7 else None)
    assert [(m.member_id, m.metadata) for m in answer.members] == [(answer.member_id, b"m")]


async def test_version_0_rebalances_by_its_session_timeout(groups: Groups) -> None:
    await joined(groups, 0)
    _, group = groups.coordinator.find_group("g")
    assert group is not None
    assert group.rebalance_timeout_ms == 10_000


@pytest.mark.parametrize("version", versions(sync_group))
async def test_sync_in_every_version(groups: Groups, version: int) -> None:
    member = (await joined(groups, 9)).member_id
    request = sync_messages.SyncGroupRequest(
        group_id="g",
        generation_id=1,
        member_id=member,
        assignments=[
            sync_messages.SyncGroupRequestAssignment(member_id=member, assignment=b"part")
        ],
    )
    if version >= 5:
        refused = groups.send(sync_group, sync_messages, request, version)
        assert refused.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        request.protocol_type, request.protocol_name = "consumer", "range"
    answer = groups.send(sync_group, sync_messages, request, version)
    assert (answer.error_code, answer.assignment) == (ErrorCode.NONE, b"part")
    assert answer.protocol_name == ("range" if version >= 5 else None)


@pytest.mark.parametrize("version", versions(heartbeat))
async def test_heartbeat_in_every_version(groups: Groups, version: int) -> None:
    member = (await joined(groups, 9)).member_id
    for member_id, code in ((member, ErrorCode.NONE), ("x", ErrorCode.UNKNOWN_MEMBER_ID)):
        request = heartbeat_messages.HeartbeatRequest(
            group_id="g", generation_id=1, member_id=member_id
        )
        answer = groups.send(heartbeat, heartbeat_messages, request, version)
        assert answer.error_code == code


@pytest.mark.parametrize("version", versions(leave_group))
async def test_leave_in_every_version(groups: Groups, version: int) -> None:
    """Up to version 2 the one member's error is the answer's."""
    member = (await joined(groups, 9)).member_id
    for code in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
        request = leave_messages.LeaveGroupRequest(group_id="g")
        if version >= 3:
            request.members = [leave_messages.MemberIdentity(member_id=member)]
        else:
            request.member_id = member
        answer = groups.send(leave_group, leave_messages, request, version)
        if version >= 3:
            assert answer.error_code == ErrorCode.NONE
            assert [m.error_code for m in answer.members] == [code]
        else:
            assert answer.error_code == code


async def test_empty_group_id_is_invalid(groups: Groups) -> None:
    for handler, messages, request in (
        (heartbeat, heartbeat_messages, heartbeat_messages.HeartbeatRequest()),
        (leave_group, leave_messages, leave_messages.LeaveGroupRequest()),
        (sync_group, sync_messages, sync_messages.SyncGroupRequest()),
    ):
        answer = groups.send(handler, messages, request, 4)
        assert answer.error_code == ErrorCode.INVALID_GROUP_ID
