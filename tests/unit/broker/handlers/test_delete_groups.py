"""DeleteGroups: every served version, end to end."""

import asyncio

import pytest

from broker.handlers import (
    delete_groups,
)
from protocol.error_codes import ErrorCode
from protocol.messages import delete_groups as delete_messages
from tests.unit.broker.handlers.groups_fixture import (
    Groups,
    simple_group,
    stable_member,
    versions,
)


@pytest.mark.parametrize("version", versions(delete_groups))
async def test_groups_are_deleted_in_every_version(groups: Groups, version: int) -> None:
    await stable_member(groups)
    simple_group(groups)
    request = delete_messages.DeleteGroupsRequest(
        groups_names=["live", "simple", "missing", "simple"]
    )
    answer = groups.send(delete_groups, delete_messages, request, version)
    assert {r.group_id: r.error_code for r in answer.results} == {
        "live": ErrorCode.NON_EMPTY_GROUP,
        "simple": ErrorCode.NONE,
        "missing": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert [group.group_id for group in groups.coordinator.groups()] == ["live"]


async def test_deletion_is_answered_when_it_is_committed(groups: Groups) -> None:
    simple_group(groups)
    groups.manager.hold = True
    request = delete_messages.DeleteGroupsRequest(groups_names=["simple"])
    waiting = asyncio.ensure_future(groups.send(delete_groups, delete_messages, request, 2))
    await asyncio.sleep(0)
    assert not waiting.done()
    groups.manager.commit_held()
    assert (await waiting).results[0].error_code == ErrorCode.NONE
