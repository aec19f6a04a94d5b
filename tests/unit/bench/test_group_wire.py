"""Frames of members and of offsets say what our own codec reads in them, and answers likewise."""

import uuid
from types import ModuleType
from typing import Any

import pytest

from bench import group_wire
from bench.group_wire import Assignment, CommitFrame, HeartbeatAnswer, Joined, Subscription
from protocol.messages import (
    consumer_group_heartbeat,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    metadata,
    offset_commit,
    offset_fetch,
    sync_group,
)
from tests.harness.broker_headers import decode_request_header, encode_response_header

TOPIC = uuid.UUID(int=7)


def read(module: ModuleType, frame: bytes | bytearray, number: int) -> Any:
    """The request in a frame; its header and its size are looked at too."""
    data = bytes(frame)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    header, position = decode_request_header(data[4:])
    assert (header.api_key, header.correlation_id) == (module.API_KEY, number)
    return module.decode_request(data[4 + position :], header.api_version)


def answer(module: ModuleType, message: object, version: int) -> bytes:
    """An answer from its correlation id on."""
    head = encode_response_header(module.API_KEY, version, 3)
    return head + bytes(module.encode_response(message, version))


@pytest.mark.parametrize("kind", [0, 1])
def test_find_coordinator(kind: int) -> None:
    request = read(find_coordinator, group_wire.find_coordinator_frame("g", 5, kind=kind), 5)
    assert (request.key, request.key_type) == ("g", kind)


def test_join() -> None:
    request = read(join_group, group_wire.join_frame("g", "m", "topic", 5), 5)
    assert (request.group_id, request.member_id, request.protocol_type) == ("g", "m", "consumer")
    assert [one.name for one in request.protocols] == ["range"]
    members = [
        join_group.JoinGroupResponseMember(member_id=name, metadata=b"x") for name in ("a", "b")
    ]
    response = join_group.JoinGroupResponse(
        generation_id=4, protocol_name="range", leader="a", member_id="b", members=members
    )
    found = Joined.read(answer(join_group, response, 5))
    assert found == Joined(0, 4, "a", "b", ("a", "b"))


def test_sync_gives_back_what_the_leader_sent() -> None:
    owned = {"a": [0, 2], "b": [1]}
    frame = group_wire.sync_frame("g", 4, "a", 5, topic="topic", owned=owned)
    request = read(sync_group, frame, 5)
    assert (request.generation_id, request.member_id) == (4, "a")
    for one, partitions in zip(request.assignments, owned.values(), strict=True):
        response = sync_group.SyncGroupResponse(assignment=one.assignment)
        found = group_wire.assigned_partitions(answer(sync_group, response, 3))
        assert found == (0, partitions)
    refused = sync_group.SyncGroupResponse(error_code=27)
    assert group_wire.assigned_partitions(answer(sync_group, refused, 3)) == (27, [])


def test_classic_heartbeat_and_leave() -> None:
    request = read(heartbeat, group_wire.classic_heartbeat_frame("g", 4, "m", 5), 5)
    assert (request.group_id, request.generation_id, request.member_id) == ("g", 4, "m")
    refused = heartbeat.HeartbeatResponse(error_code=27)
    assert group_wire.plain_error(answer(heartbeat, refused, 3)) == 27
    assert read(leave_group, group_wire.classic_leave_frame("g", "m", 5), 5).member_id == "m"


def test_consumer_heartbeat_of_a_member_that_joins() -> None:
    frame = group_wire.consumer_heartbeat_frame(
        "g", "m", 0, 5, subscription=Subscription(["one", "two"]), owned={}
    )
    request = read(consumer_group_heartbeat, frame, 5)
    assert (request.group_id, request.member_id, request.member_epoch) == ("g", "m", 0)
    assert request.subscribed_topic_names == ["one", "two"]
    assert (request.topic_partitions, request.rebalance_timeout_ms) == ([], 300_000)
    assert request.subscribed_topic_regex is None


def test_consumer_heartbeat_says_what_changed_alone() -> None:
    plain = read(consumer_group_heartbeat, group_wire.consumer_heartbeat_frame("g", "m", 6, 5), 5)
    assert (plain.subscribed_topic_names, plain.topic_partitions) == (None, None)
    assert plain.rebalance_timeout_ms == -1
    frame = group_wire.consumer_heartbeat_frame("g", "m", 6, 5, owned={TOPIC: (3, 300)})
    (owned,) = read(consumer_group_heartbeat, frame, 5).topic_partitions
    assert (owned.topic_id, owned.partitions) == (TOPIC, [3, 300])


@pytest.mark.parametrize("assignment", [None, {}, {TOPIC: (1, 2)}], ids=["same", "none", "some"])
def test_consumer_heartbeat_answer(assignment: Assignment | None) -> None:
    cls = consumer_group_heartbeat
    response = cls.ConsumerGroupHeartbeatResponse(
        error_message="why", member_id="m", member_epoch=6, heartbeat_interval_ms=5000
    )
    if assignment is not None:
        response.assignment = cls.Assignment(
            topic_partitions=[
                cls.ConsumerGroupHeartbeatResponseTopicPartitions(
                    topic_id=topic, partitions=list(partitions)
                )
                for topic, partitions in assignment.items()
            ]
        )
    found = HeartbeatAnswer.read(answer(cls, response, 1))
    assert found == HeartbeatAnswer(0, "why", 6, 5.0, assignment)


def test_metadata_of_one_topic() -> None:
    request = read(metadata, group_wire.topic_id_frame("topic", 5), 5)
    assert [one.name for one in request.topics] == ["topic"]
    assert not request.allow_auto_topic_creation


def test_commit_is_filled_where_offset_and_number_are() -> None:
    frame = CommitFrame.of("g", 4, "m", "topic", [0, 5])
    for number, offset in ((9, 0), (10, 1 << 40)):
        request = read(offset_commit, frame.filled(number, offset), number)
        assert (request.generation_id_or_member_epoch, request.member_id) == (4, "m")
        (topic,) = request.topics
        assert [(p.partition_index, p.committed_offset) for p in topic.partitions] == [
            (0, offset),
            (5, offset),
        ]


def test_commit_answer() -> None:
    partitions = [
        offset_commit.OffsetCommitResponsePartition(partition_index=index, error_code=code)
        for index, code in ((0, 0), (1, 25), (2, 0))
    ]
    topics = [offset_commit.OffsetCommitResponseTopic(name="topic", partitions=partitions)]
    response = offset_commit.OffsetCommitResponse(topics=topics)
    assert group_wire.commit_errors(answer(offset_commit, response, 8)) == {25}


def test_offset_fetch() -> None:
    request = read(offset_fetch, group_wire.offset_fetch_frame("g", "topic", [0, 2], 5), 5)
    assert [(one.name, one.partition_indexes) for one in request.topics] == [("topic", [0, 2])]
    partitions = [
        offset_fetch.OffsetFetchResponsePartition(partition_index=index, committed_offset=70)
        for index in (0, 2)
    ]
    topics = [offset_fetch.OffsetFetchResponseTopic(name="topic", partitions=partitions)]
    response = offset_fetch.OffsetFetchResponse(topics=topics)
    assert group_wire.fetched_offsets(answer(offset_fetch, response, 3)) == {0: 70, 2: 70}
