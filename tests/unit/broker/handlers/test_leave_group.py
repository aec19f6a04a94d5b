"""LeaveGroup: every served version, end to end."""

import pytest

from broker.handlers import (
    leave_group,
)
from protocol.error_codes import ErrorCode
from protocol.messages import leave_group as leave_messages
from tests.unit.broker.handlers.groups_fixture import (
    Groups,
    joined,
    versions,
)


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
    answer = groups.send(leave_group, leave_messages, leave_messages.LeaveGroupRequest(), 4)
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID
