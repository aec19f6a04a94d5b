"""Heartbeat: every served version, end to end."""

import pytest

from broker.handlers import (
    heartbeat,
)
from protocol.error_codes import ErrorCode
from protocol.messages import heartbeat as heartbeat_messages
from tests.unit.broker.handlers.groups_fixture import (
    Groups,
    joined,
    versions,
)


@pytest.mark.parametrize("version", versions(heartbeat))
async def test_heartbeat_in_every_version(groups: Groups, version: int) -> None:
    member = (await joined(groups, 9)).member_id
    for member_id, code in ((member, ErrorCode.NONE), ("x", ErrorCode.UNKNOWN_MEMBER_ID)):
        request = heartbeat_messages.HeartbeatRequest(
            group_id="g", generation_id=1, member_id=member_id
        )
        answer = groups.send(heartbeat, heartbeat_messages, request, version)
        assert answer.error_code == code


async def test_empty_group_id_is_invalid(groups: Groups) -> None:
    answer = groups.send(heartbeat, heartbeat_messages, heartbeat_messages.HeartbeatRequest(), 4)
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID
