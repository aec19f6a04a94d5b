"""CreatePartitions, in every version."""

import pytest

from broker.controller.topics.topics import NewTopic
from broker.handlers import create_partitions
from protocol.error_codes import ErrorCode
from protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tests.fakes.broker.controller import open_controller, services_of
from tests.fakes.broker.wire import call, versions_of


def more(name: str, count: int, *assignments: list[int]) -> CreatePartitionsTopic:
    assigned = [CreatePartitionsAssignment(broker_ids=nodes) for nodes in assignments]
    return CreatePartitionsTopic(name=name, count=count, assignments=assigned or None)


@pytest.mark.parametrize("version", versions_of(create_partitions))
async def test_one_result_per_topic(version: int) -> None:
    controller = await open_controller()
    await controller.create_topics([NewTopic(n, 2, 1) for n in ("a", "b", "c", "d")])
    request = CreatePartitionsRequest(
        timeout_ms=1_000,
        topics=[
            more("a", 5),
            more("b", 1),
            more("c", 3, [1]),
            more("none", 3),
            more("d", 3),
            more("d", 4),
        ],
    )
    response = await call(create_partitions, services_of(controller), request, version)
    assert [(t.name, ErrorCode(t.error_code)) for t in response.results] == [
        ("d", ErrorCode.INVALID_REQUEST),
        ("a", ErrorCode.NONE),
        ("b", ErrorCode.INVALID_PARTITIONS),
        ("c", ErrorCode.NONE),
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    counts = {name: len(topic.partitions) for name, topic in controller.image.topics.items()}
    assert counts == {"a": 5, "b": 2, "c": 3, "d": 2}


async def test_validate_only() -> None:
    controller = await open_controller()
    await controller.create_topics([NewTopic("a", 2, 1)])
    request = CreatePartitionsRequest(timeout_ms=1_000, topics=[more("a", 5)], validate_only=True)
    response = await call(create_partitions, services_of(controller), request, 3)
    assert response.results[0].error_code == ErrorCode.NONE
    assert len(controller.image.topics["a"].partitions) == 2


async def test_empty_assignment_list_is_not_no_assignment() -> None:
    """Null lets the broker choose; an empty list is too short."""
    controller = await open_controller()
    await controller.create_topics([NewTopic("a", 2, 1)])
    topic = CreatePartitionsTopic(name="a", count=3, assignments=[])
    request = CreatePartitionsRequest(timeout_ms=1_000, topics=[topic])
    response = await call(create_partitions, services_of(controller), request, 3)
    assert response.results[0].error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
