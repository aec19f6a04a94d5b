"""SyncGroup: every served version, end to end."""

import pytest

from broker.handlers import (
    sync_group,
)
from protocol.error_codes import ErrorCode
from protocol.messages import sync_group as sync_messages
from tests.unit.broker.handlers.groups_fixture import (
    Groups,
    joined,
    versions,
)


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


async def test_empty_group_id_is_invalid(groups: Groups) -> None:
    answer = groups.send(sync_group, sync_messages, sync_messages.SyncGroupRequest(), 4)
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID
