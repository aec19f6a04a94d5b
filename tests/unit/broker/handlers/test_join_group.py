"""JoinGroup: every served version, end to end."""

import pytest

from broker.groups.classic.classic_group import ClassicGroup
from broker.handlers import (
    join_group,
)
from protocol.error_codes import ErrorCode
from tests.unit.broker.handlers.groups_fixture import (
    Groups,
    joined,
    versions,
)


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
    assert isinstance(group, ClassicGroup)
    assert group.rebalance_timeout_ms == 10_000
