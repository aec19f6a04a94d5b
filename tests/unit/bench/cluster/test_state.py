"""What the measurements ask a cluster, against our own codec at the other end of a socket."""

import socket
import struct
import threading
from collections.abc import Callable
from typing import TypeVar

import pytest

from bench import wire
from bench.cluster.state import cluster_state, create_assigned_topic, quorum_leader
from protocol.messages import create_topics, describe_quorum, metadata
from tests.harness.broker_headers import decode_request_header, encode_response_header

T = TypeVar("T")

Answer = Callable[[bytes, int], bytes]
"""Body of a request and its version to the body of the answer."""


def asked(question: Callable[[socket.socket], T], answer: Answer) -> T:
    """What a question comes to when its one request is answered so."""
    ours, theirs = socket.socketpair()

    def serve() -> None:
        frame = bytes(wire.receive(theirs))
        header, position = decode_request_header(frame)
        body = answer(frame[position:], header.api_version)
        head = encode_response_header(header.api_key, header.api_version, header.correlation_id)
        theirs.sendall(struct.pack(">i", len(head) + len(body)) + head + body)

    server = threading.Thread(target=serve)
    server.start()
    try:
        with ours, theirs:
            return question(ours)
    finally:
        server.join(10)


def test_state_has_brokers_controller_and_replicas() -> None:
    """A topic with an error is absent, a partition without a leader is there."""
    seen: list[metadata.MetadataRequest] = []

    def answer(body: bytes, version: int) -> bytes:
        seen.append(metadata.decode_request(body, version))
        partitions = [
            metadata.MetadataResponsePartition(
                partition_index=0,
                leader_id=2,
                leader_epoch=7,
                replica_nodes=[1, 2, 3],
                isr_nodes=[2, 3, 1],
                offline_replicas=[],
            ),
            metadata.MetadataResponsePartition(
                error_code=5,
                partition_index=1,
                leader_id=-1,
                leader_epoch=8,
                replica_nodes=[1, 3],
                isr_nodes=[3],
                offline_replicas=[1, 3],
            ),
        ]
        response = metadata.MetadataResponse(
            brokers=[metadata.MetadataResponseBroker(node_id=2, host="h", port=9092, rack="a")],
            cluster_id="c",
            controller_id=3,
            topics=[
                metadata.MetadataResponseTopic(name="t", partitions=partitions),
                metadata.MetadataResponseTopic(error_code=3, name="gone", partitions=[]),
            ],
        )
        return metadata.encode_response(response, version)

    state = asked(lambda connection: cluster_state(connection, ["t", "gone"]), answer)
    assert [topic.name for topic in seen[0].topics or []] == ["t", "gone"]
    assert not seen[0].allow_auto_topic_creation
    assert state.brokers == {2: ("h", 9092)}
    assert state.controller_id == 3
    first, second = state.partitions
    assert (first.leader, first.leader_epoch, first.replicas) == (2, 7, (1, 2, 3))
    assert first.is_in_sync
    assert (second.error_code, second.leader, second.isr) == (5, -1, (3,))
    assert not second.is_in_sync
    assert state.partition("t", 1) is second
    assert state.partition("t", 2) is None


def test_topic_is_created_on_the_brokers_named() -> None:
    seen: list[create_topics.CreateTopicsRequest] = []

    def answer(body: bytes, version: int) -> bytes:
        seen.append(create_topics.decode_request(body, version))
        result = create_topics.CreatableTopicResult(name="t")
        return create_topics.encode_response(
            create_topics.CreateTopicsResponse(topics=[result]), version
        )

    asked(lambda c: create_assigned_topic(c, "t", [[1, 2], [2, 3]], {"a": "b"}), answer)
    (topic,) = seen[0].topics
    assert (topic.num_partitions, topic.replication_factor) == (-1, -1)
    assert [(a.partition_index, a.broker_ids) for a in topic.assignments] == [
        (0, [1, 2]),
        (1, [2, 3]),
    ]
    assert [(c.name, c.value) for c in topic.configs] == [("a", "b")]


def test_a_refusal_is_an_error() -> None:
    def answer(_body: bytes, version: int) -> bytes:
        result = create_topics.CreatableTopicResult(
            name="t", error_code=38, error_message="too few brokers"
        )
        return create_topics.encode_response(
            create_topics.CreateTopicsResponse(topics=[result]), version
        )

    with pytest.raises(wire.WireError, match="error 38 too few brokers"):
        asked(lambda c: create_assigned_topic(c, "t", [[1]]), answer)


def test_leader_of_kafkas_quorum() -> None:
    def answer(body: bytes, version: int) -> bytes:
        (topic,) = describe_quorum.decode_request(body, version).topics
        assert topic.topic_name == "__cluster_metadata"
        assert [p.partition_index for p in topic.partitions] == [0]
        partition = describe_quorum.DescribeQuorumResponsePartitionData(
            partition_index=0, leader_id=2
        )
        data = describe_quorum.DescribeQuorumResponseTopicData(
            topic_name=topic.topic_name, partitions=[partition]
        )
        return describe_quorum.encode_response(
            describe_quorum.DescribeQuorumResponse(topics=[data]), version
        )

    assert asked(quorum_leader, answer) == 2
