"""ListGroups: every served version, end to end."""

import pytest

from broker.handlers import (
    list_groups,
)
from protocol.error_codes import ErrorCode
from protocol.messages import list_groups as list_messages
from tests.unit.broker.handlers.groups_fixture import (
    Groups,
    simple_group,
    stable_member,
    versions,
)


def listed(groups: Groups, version: int, **filters: list[str]) -> set[tuple[str, str, str, str]]:
    request = list_messages.ListGroupsRequest(**filters)
    answer = groups.send(list_groups, list_messages, request, version)
    assert answer.error_code == ErrorCode.NONE
    return {(g.group_id, g.protocol_type, g.group_state, g.group_type) for g in answer.groups}


@pytest.mark.parametrize("version", versions(list_groups))
async def test_groups_are_listed_in_every_version(groups: Groups, version: int) -> None:
    await stable_member(groups)
    simple_group(groups)
    live, simple = ("live", "consumer", "Stable", "classic"), ("simple", "", "Empty", "classic")
    shown = 4 if version >= 5 else 3 if version == 4 else 2
    padding = ("",) * (4 - shown)
    assert listed(groups, version) == {(*g[:shown], *padding) for g in (live, simple)}


async def test_listing_can_be_filtered(groups: Groups) -> None:
    """By state and type, whatever the case."""
    await stable_member(groups)
    simple_group(groups)
    assert {g[0] for g in listed(groups, 4, states_filter=["stable "])} == {"live"}
    assert {g[0] for g in listed(groups, 5, states_filter=["EMPTY", "Dead"])} == {"simple"}
    assert {g[0] for g in listed(groups, 5, types_filter=["Classic"])} == {"live", "simple"}
    assert listed(groups, 5, types_filter=["consumer"]) == set()


async def test_listing_waits_for_loading_shards(groups: Groups) -> None:
    groups.coordinator.on_resigned(0)
    groups.coordinator.on_elected(0, 0)
    answer = groups.send(list_groups, list_messages, list_messages.ListGroupsRequest(), 4)
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_nothing_is_listed_while_another_broker_may_have_the_groups(groups: Groups) -> None:
    """As other requests get NOT_COORDINATOR then."""
    await stable_member(groups)
    groups.manager.has_followers = True
    groups.manager.valid_until_ms = groups.clock.monotonic_ms() - 1
    answer = groups.send(list_groups, list_messages, list_messages.ListGroupsRequest(), 4)
    assert (answer.error_code, answer.groups) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, [])
