"""FindCoordinator, ListGroups, DescribeGroups, DeleteGroups: every served version, end to end."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from broker.handlers import (
    delete_groups,
    describe_groups,
    find_coordinator,
    join_group,
    list_groups,
    offset_commit,
    sync_group,
)
from protocol.error_codes import ErrorCode
from protocol.messages import delete_groups as delete_messages
from protocol.messages import describe_groups as describe_messages
from protocol.messages import find_coordinator as find_messages
from protocol.messages import join_group as join_messages
from protocol.messages import list_groups as list_messages
from protocol.messages import offset_commit as commit_messages
from protocol.messages import sync_group as sync_messages
from tests.unit.broker.handlers.groups_fixture import Groups, versions


@pytest.fixture
async def groups() -> AsyncIterator[Groups]:
    groups = Groups()
    await groups.start()
    yield groups
    await groups.coordinator.stop()


async def stable_member(groups: Groups) -> str:
    answer = groups.send(
        join_group,
        join_messages,
        join_messages.JoinGroupRequest(
            group_id="live",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[join_messages.JoinGroupRequestProtocol(name="range", metadata=b"meta")],
        ),
        3,
    )
    waiting = asyncio.ensure_future(answer)
    await asyncio.sleep(0)
    groups.timer.advance(3_000)
    member: str = (await waiting).member_id
    request = sync_messages.SyncGroupRequest(
        group_id="live",
        generation_id=1,
        member_id=member,
        assignments=[
            sync_messages.SyncGroupRequestAssignment(member_id=member, assignment=b"part")
        ],
    )
    assert groups.send(sync_group, sync_messages, request, 3).error_code == ErrorCode.NONE
    return member


def simple_group(groups: Groups) -> None:
    partition = commit_messages.OffsetCommitRequestPartition(committed_offset=5)
    topic = commit_messages.OffsetCommitRequestTopic(name="t", partitions=[partition])
    request = commit_messages.OffsetCommitRequest(group_id="simple", topics=[topic])
    groups.send(offset_commit, commit_messages, request, 8)


def find(groups: Groups, version: int, key: str = "g", key_type: int = 0) -> Any:
    if version >= 4:
        request = find_messages.FindCoordinatorRequest(coordinator_keys=[key])
    else:
        request = find_messages.FindCoordinatorRequest(key=key)
    if version >= 1:
        request.key_type = key_type
    return groups.send(find_coordinator, find_messages, request, version)


def place(answer: Any, version: int) -> tuple[int, int, str, int]:
    one = answer.coordinators[0] if version >= 4 else answer
    return one.error_code, one.node_id, one.host, one.port


@pytest.mark.parametrize("version", versions(find_coordinator))
async def test_coordinator_is_found_in_every_version(groups: Groups, version: int) -> None:
    """By what the listener of the request is advertised as."""
    assert place(find(groups, version), version) == (ErrorCode.NONE, 1, "broker.test", 9092)


@pytest.mark.parametrize("version", versions(find_coordinator))
async def test_first_request_creates_the_topic(version: int) -> None:
    groups = Groups(with_offsets_topic=False)
    groups.controller.on_created = lambda: groups.coordinator.on_elected(0)
    await groups.start(elect=False)
    answer = await find(groups, version)
    assert place(answer, version) == (ErrorCode.NONE, 1, "broker.test", 9092)
    await groups.coordinator.stop()


async def test_topic_that_cannot_be_created_is_tried_again_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    groups = Groups(with_offsets_topic=False)
    groups.controller.refuse_with = ErrorCode.INVALID_REPLICATION_FACTOR
    await groups.start(elect=False)
    answer = await find(groups, 4)
    assert place(answer, 4) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, "", -1)
    assert "cannot be created" in caplog.text
    await groups.coordinator.stop()


async def test_other_kinds_of_coordinators(groups: Groups) -> None:
    for key_type, code in (
        (1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (2, ErrorCode.INVALID_REQUEST),
        (9, ErrorCode.INVALID_REQUEST),
    ):
        answer = find(groups, 6, "k", key_type)
        assert place(answer, 6) == (code, -1, "", -1)
        assert answer.coordinators[0].key == "k"
        assert answer.coordinators[0].error_message


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
    groups.coordinator.on_elected(0)
    answer = groups.send(list_groups, list_messages, list_messages.ListGroupsRequest(), 4)
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


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
    assert {g[0] for g in listed(groups, 4)} == {"live"}


async def test_deletion_is_answered_when_it_is_committed(groups: Groups) -> None:
    simple_group(groups)
    groups.manager.hold = True
    request = delete_messages.DeleteGroupsRequest(groups_names=["simple"])
    waiting = asyncio.ensure_future(groups.send(delete_groups, delete_messages, request, 2))
    await asyncio.sleep(0)
    assert not waiting.done()
    groups.manager.commit_held()
    assert (await waiting).results[0].error_code == ErrorCode.NONE
