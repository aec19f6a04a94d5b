"""OffsetFetch: every served version, end to end."""

import pytest

from broker.groups.coordinator import OFFSETS_TOPIC
from broker.groups.state.offset_store import GroupTopicPartition, OffsetAndMetadata
from broker.handlers import (
    offset_fetch,
)
from protocol.error_codes import ErrorCode
from protocol.internal.consumer_offsets import OffsetCommitValue
from protocol.messages import offset_fetch as fetch_messages
from tests.fakes.broker.offsets_partition import FakeController, topic_image
from tests.unit.broker.handlers.groups_fixture import (
    Groups,
    commit,
    fetch,
    versions,
)


@pytest.mark.parametrize("version", versions(offset_fetch))
async def test_fetch_in_every_version(groups: Groups, version: int) -> None:
    commit(groups, 9, ("t", 0, 5), ("u", 0, 6))
    epoch = 4 if version >= 5 else -1
    code, offsets = fetch(groups, version, {"t": [0, 1]})
    assert code == ErrorCode.NONE
    assert offsets == {("t", 0): (5, epoch, 0), ("t", 1): (-1, -1, 0)}


@pytest.mark.parametrize("version", [v for v in versions(offset_fetch) if v >= 2])
async def test_null_topics_ask_for_everything(groups: Groups, version: int) -> None:
    commit(groups, 9, ("t", 0, 5), ("t", 2, 6), ("u", 0, 7))
    _, offsets = fetch(groups, version, None)
    assert {key: offset for key, (offset, _, _) in offsets.items()} == {
        ("t", 0): 5,
        ("t", 2): 6,
        ("u", 0): 7,
    }
    assert fetch(groups, version, None, group="other") == (ErrorCode.NONE, {})


@pytest.mark.parametrize("version", [v for v in versions(offset_fetch) if v < 10])
@pytest.mark.parametrize("committed_in", [5, 8, 10])
async def test_offsets_of_an_earlier_topic_of_the_name(
    groups: Groups, version: int, committed_in: int
) -> None:
    """It was deleted and created again while no broker coordinated the group."""
    commit(groups, committed_in, ("t", 0, 5), ("u", 0, 6))
    groups.controller.image = FakeController(
        topic_image("t", 3, 3), topic_image("u", 2, 1), topic_image(OFFSETS_TOPIC, 99, 1)
    ).image
    _, offsets = fetch(groups, version, {"t": [0], "u": [0]})
    assert {key: offset for key, (offset, _, _) in offsets.items()} == {("t", 0): -1, ("u", 0): 6}


async def test_everything_is_told_once(groups: Groups) -> None:
    """A group may have much, and its name is short; partitions that are named are all answered."""
    commit(groups, 9, ("t", 0, 5))
    named = [fetch_messages.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    request = fetch_messages.OffsetFetchRequest(
        groups=[
            fetch_messages.OffsetFetchRequestGroup(group_id="g", topics=topics)
            for topics in (None, named, None, named)
        ]
    )
    answer = groups.send(offset_fetch, fetch_messages, request, 9)
    assert [len(group.topics[0].partitions) for group in answer.groups] == [1, 1, 1]


async def test_fetch_by_unknown_id(groups: Groups) -> None:
    _, offsets = fetch(groups, 10, {"nowhere": [0]})
    assert offsets == {("nowhere", 0): (-1, -1, ErrorCode.UNKNOWN_TOPIC_ID)}


@pytest.mark.parametrize("version", versions(offset_fetch))
async def test_fetch_from_another_coordinator(groups: Groups, version: int) -> None:
    """The group's error; version 1 has room for it in partitions only."""
    groups.coordinator.on_resigned(0)
    code, offsets = fetch(groups, version, {"t": [0]})
    if version >= 2:
        assert (code, offsets) == (ErrorCode.NOT_COORDINATOR, {})
    else:
        assert offsets == {("t", 0): (-1, -1, ErrorCode.NOT_COORDINATOR)}


async def test_several_groups_at_once(groups: Groups) -> None:
    """KIP-709: each with its own answer, in the order asked for."""
    for offset, group in enumerate(("a", "b")):
        commit(groups, 9, ("t", 0, offset), group=group)
    request = fetch_messages.OffsetFetchRequest(
        groups=[
            fetch_messages.OffsetFetchRequestGroup(
                group_id=group,
                topics=[fetch_messages.OffsetFetchRequestTopics(name="t", partition_indexes=[0])],
            )
            for group in ("b", "x", "a")
        ]
    )
    answer = groups.send(offset_fetch, fetch_messages, request, 9)
    assert [(g.group_id, g.topics[0].partitions[0].committed_offset) for g in answer.groups] == [
        ("b", 1),
        ("x", -1),
        ("a", 0),
    ]


@pytest.mark.parametrize("version", [7, 8, 9, 10])
async def test_unstable_offsets_are_told_from_version_7(groups: Groups, version: int) -> None:
    commit(groups, 9, ("t", 0, 5))
    active = groups.coordinator._runtime.shard_at(0)
    assert active is not None
    active.shard.offsets.put_pending(
        1, GroupTopicPartition("g", "t", 0), OffsetAndMetadata(OffsetCommitValue(9), 50)
    )
    _, offsets = fetch(groups, version, {"t": [0]}, stable=True)
    assert offsets == {("t", 0): (-1, -1, ErrorCode.UNSTABLE_OFFSET_COMMIT)}
    assert fetch(groups, version, {"t": [0]})[1][("t", 0)][0] == 5
