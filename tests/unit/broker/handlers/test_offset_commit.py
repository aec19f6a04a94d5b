"""OffsetCommit: every served version, end to end."""

import pytest

from broker.handlers import (
    offset_commit,
)
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from protocol.messages import offset_commit as messages
from tests.unit.broker.handlers.groups_fixture import (
    Groups,
    commit,
    fetch,
    versions,
)


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


async def test_group_error_replaces_that_of_a_partition_of_the_commit(groups: Groups) -> None:
    """Nothing was committed; that some metadata was too large as well is another matter."""
    partitions = [
        messages.OffsetCommitRequestPartition(partition_index=index, committed_metadata=metadata)
        for index, metadata in enumerate(("", "m" * 5_000))
    ]
    topic = messages.OffsetCommitRequestTopic(name="t", partitions=partitions)
    request = messages.OffsetCommitRequest(group_id="g", topics=[topic])
    answer = groups.send(offset_commit, messages, request, 8)
    assert codes(answer) == [ErrorCode.NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE]
    groups.manager.fail_with = ErrorCode.NOT_ENOUGH_REPLICAS
    answer = groups.send(offset_commit, messages, request, 8)
    assert codes(answer) == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2


def codes(answer: messages.OffsetCommitResponse) -> list[int]:
    return [partition.error_code for topic in answer.topics for partition in topic.partitions]


async def test_more_partitions_than_a_request_may_list(groups: Groups) -> None:
    """As in every other request."""
    one = messages.OffsetCommitRequestPartition()
    topic = messages.OffsetCommitRequestTopic(name="t", partitions=[one] * 10_000)
    request = messages.OffsetCommitRequest(group_id="g", topics=[topic])
    with pytest.raises(DecodeError, match="more than 10000 elements"):
        groups.send(offset_commit, messages, request, 8)


async def test_empty_group_id_may_commit(groups: Groups) -> None:
    """As in Kafka: old consumers without a group did."""
    assert commit(groups, 8, ("t", 0, 5), group="") == {("t", 0): ErrorCode.NONE}
    assert fetch(groups, 7, {"t": [0]}, group="")[1][("t", 0)][0] == 5
