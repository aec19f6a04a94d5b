"""Requests to the controller whose time is over before it begins: nothing is changed."""

from types import ModuleType
from typing import Any

import pytest

from broker.controller.topics.topics import NewTopic
from broker.handlers import (
    alter_partition_reassignments,
    create_partitions,
    create_topics,
    delete_topics,
    elect_leaders,
)
from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tests.fakes.broker.controller import open_controller, services_of
from tests.fakes.broker.wire import call, versions_of

LATE = ErrorCode.REQUEST_TIMED_OUT


def created(timeout_ms: int, version: int) -> Any:
    new = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[new], timeout_ms=timeout_ms)


def extended(timeout_ms: int, version: int) -> Any:
    more = CreatePartitionsTopic(name="t", count=3)
    return CreatePartitionsRequest(topics=[more], timeout_ms=timeout_ms)


def deleted(timeout_ms: int, version: int) -> Any:
    if version < 6:
        return DeleteTopicsRequest(topic_names=["t"], timeout_ms=timeout_ms)
    return DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=timeout_ms)


def moved(timeout_ms: int, version: int) -> Any:
    one = ReassignablePartition(partition_index=0, replicas=[1])
    topic = ReassignableTopic(name="t", partitions=[one])
    return AlterPartitionReassignmentsRequest(topics=[topic], timeout_ms=timeout_ms)


def elected(timeout_ms: int, version: int) -> Any:
    topic = TopicPartitions(topic="t", partitions=[0])
    return ElectLeadersRequest(topic_partitions=[topic], timeout_ms=timeout_ms)


def codes_of(answer: Any) -> list[int]:
    """Of each topic or partition."""
    name = next(
        one
        for one in ("topics", "results", "responses", "replica_election_results")
        if hasattr(answer, one)
    )
    found = []
    for topic in getattr(answer, name):
        parts = getattr(topic, "partitions", None) or getattr(topic, "partition_result", None)
        found += [one.error_code for one in parts or [topic]]
    return found


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
@pytest.mark.parametrize(
    ("module", "request_of", "version"),
    [
        (module, request_of, version)
        for module, request_of in (
            (create_topics, created),
            (create_partitions, extended),
            (delete_topics, deleted),
            (alter_partition_reassignments, moved),
            (elect_leaders, elected),
        )
        for version in versions_of(module)
    ],
)
async def test_nothing_is_done(
    module: ModuleType, request_of: Any, version: int, timeout_ms: int
) -> None:
    controller = await open_controller()
    await controller.create_topics([NewTopic("t", 2, 1)])
    before = controller.image
    answer = await call(module, services_of(controller), request_of(timeout_ms, version), version)
    assert codes_of(answer) == [LATE]
    assert controller.image is before
