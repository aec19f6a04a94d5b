"""OffsetCommit, OffsetFetch, OffsetDelete: every served version, end to end."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from broker.groups.offset_store import GroupTopicPartition, OffsetAndMetadata
from broker.handlers import offset_commit, offset_delete, offset_fetch
from protocol.error_codes import ErrorCode
from protocol.internal.consumer_offsets import OffsetCommitValue
from protocol.messages import offset_commit as commit_messages
from protocol.messages import offset_delete as delete_messages
from protocol.messages import offset_fetch as fetch_messages
from tests.unit.broker.handlers.groups_fixture import Groups, versions

T, UNKNOWN = UUID(int=1), UUID(int=77)
IDS = {"t": T, "u": UUID(int=2), "nowhere": UNKNOWN}
NAMES = {topic_id: name for name, topic_id in IDS.items()}


@pytest.fixture
async def groups() -> AsyncIterator[Groups]:
    groups = Groups()
    await groups.start()
    yield groups
    await groups.coordinator.stop()


def commit(
    groups: Groups, version: int, *partitions: tuple[str, int, int], group: str = "g"
) -> dict[tuple[str, int], int]:
    """Commit (topic, partition, offset); errors by topic and partition."""
    topics: dict[str, commit_messages.OffsetCommitRequestTopic] = {}
    for name, index, offset in partitions:
        topic = topics.setdefault(
            name,
            commit_messages.OffsetCommitRequestTopic(
                **({"topic_id": IDS[name]} if version >= 10 else {"name": name})
            ),
        )
        topic.partitions.append(
            commit_messages.OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=offset,
                committed_leader_epoch=4 if version >= 6 else -1,
                committed_metadata="note",
            )
        )
    request = commit_messages.OffsetCommitRequest(group_id=group, topics=list(topics.values()))
    answer = groups.send(offset_commit, commit_messages, request, version)
    return {
        (NAMES[topic.topic_id] if version >= 10 else topic.name, p.partition_index): p.error_code
        for topic in answer.topics
        for p in topic.partitions
    }


def fetch(
    groups: Groups,
    version: int,
    topics: dict[str, list[int]] | None,
    *,
    group: str = "g",
    stable: bool = False,
) -> tuple[int, dict[tuple[str, int], tuple[int, int, int]]]:
    """Error of the group; (offset, epoch, error) by topic and partition."""
    asked: list[Any] | None
    if version < 8:
        asked = None
        if topics is not None:
            asked = [
                fetch_messages.OffsetFetchRequestTopic(name=n, partition_indexes=p)
                for n, p in topics.items()
            ]
        request = fetch_messages.OffsetFetchRequest(group_id=group, topics=asked)
    else:
        asked = None
        if topics is not None:
            asked = [
                fetch_messages.OffsetFetchRequestTopics(
                    **({"topic_id": IDS[n]} if version >= 10 else {"name": n}),
                    partition_indexes=p,
                )
                for n, p in topics.items()
            ]
        request = fetch_messages.OffsetFetchRequest(
            groups=[fetch_messages.OffsetFetchRequestGroup(group_id=group, topics=asked)]
        )
    if stable:
        request.require_stable = True
    answer = groups.send(offset_fetch, fetch_messages, request, version)
    one = answer if version < 8 else answer.groups[0]
    return one.error_code, {
        (NAMES[topic.topic_id] if version >= 10 else topic.name, p.partition_index): (
            p.committed_offset,
            p.committed_leader_epoch,
            p.error_code,
        )
        for topic in one.topics
        for p in topic.partitions
    }


@pytest.mark.parametrize("version", versions(offset_commit))
async def test_commit_in_every_version(groups: Groups, version: int) -> None:
    """Known partitions are stored, each of the others has its error."""
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert commit(groups, version, ("t", 0, 5), ("t", 3, 6), ("nowhere", 0, 7)) == {
        ("t", 0): ErrorCode.NONE,
        ("t", 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nowhere", 0): unknown,
    }
    epoch = 4 if version >= 6 else -1
    assert fetch(groups, 9, {"t": [0]}) == (ErrorCode.NONE, {("t", 0): (5, epoch, 0)})


async def test_commit_of_unknown_topics_alone_touches_no_group(groups: Groups) -> None:
    commit(groups, 9, ("nowhere", 0, 7))
    assert list(groups.coordinator.groups()) == []


async def test_group_error_reaches_every_partition(groups: Groups) -> None:
    groups.coordinator.on_resigned(0)
    assert commit(groups, 9, ("t", 0, 5), ("u", 0, 6), ("t", 9, 1)) == {
        ("t", 0): ErrorCode.NOT_COORDINATOR,
        ("u", 0): ErrorCode.NOT_COORDINATOR,
        ("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


async def test_empty_group_id_may_commit(groups: Groups) -> None:
    """As in Kafka: old consumers without a group did."""
    assert commit(groups, 8, ("t", 0, 5), group="") == {("t", 0): ErrorCode.NONE}
    assert fetch(groups, 7, {"t": [0]}, group="")[1][("t", 0)][0] == 5


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
    active = groups.coordinator._active[0]
    active.shard.offsets.put_pending(
        1, GroupTopicPartition("g", "t", 0), OffsetAndMetadata(OffsetCommitValue(9), 50)
    )
    _, offsets = fetch(groups, version, {"t": [0]}, stable=True)
    assert offsets == {("t", 0): (-1, -1, ErrorCode.UNSTABLE_OFFSET_COMMIT)}
    assert fetch(groups, version, {"t": [0]})[1][("t", 0)][0] == 5


async def test_offset_delete(groups: Groups) -> None:
    """Known partitions are forgotten; what does not exist has its error."""
    commit(groups, 9, ("t", 0, 5), ("u", 0, 6))
    request = delete_messages.OffsetDeleteRequest(
        group_id="g",
        topics=[
            delete_messages.OffsetDeleteRequestTopic(
                name=name,
                partitions=[delete_messages.OffsetDeleteRequestPartition(partition_index=0)],
            )
            for name in ("t", "nowhere")
        ],
    )
    answer = groups.send(offset_delete, delete_messages, request, 0)
    assert answer.error_code == ErrorCode.NONE
    assert [t.partitions[0].error_code for t in answer.topics] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert fetch(groups, 9, None)[1].keys() == {("u", 0)}
    for group, code in (("", ErrorCode.INVALID_GROUP_ID), ("x", ErrorCode.GROUP_ID_NOT_FOUND)):
        request.group_id = group
        refused = groups.send(offset_delete, delete_messages, request, 0)
        assert (refused.error_code, refused.topics) == (code, [])
