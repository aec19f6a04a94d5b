"""AlterPartitionReassignments and its list, in every version, on the one node there is."""

import pytest

from broker.controller.topics.topics import NewTopic
from broker.handlers import alter_partition_reassignments, list_partition_reassignments
from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from tests.fakes.broker.controller import open_controller, services_of
from tests.fakes.broker.wire import call, versions_of


@pytest.mark.parametrize("version", versions_of(alter_partition_reassignments))
@pytest.mark.parametrize(
    ("topic", "index", "replicas", "code"),
    [
        ("t", 0, [1], ErrorCode.NONE),
        ("t", 0, [2], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, [1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ("t", 1, [1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("none", 0, [1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
async def test_only_what_is_already_so_is_accepted(
    version: int, topic: str, index: int, replicas: list[int] | None, code: ErrorCode
) -> None:
    """With Kafka's codes for the rest."""
    controller = await open_controller()
    await controller.create_topics([NewTopic("t", 1, 1)])
    before = controller.image
    partition = ReassignablePartition(partition_index=index, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name=topic, partitions=[partition])]
    )
    answer = await call(alter_partition_reassignments, services_of(controller), request, version)
    (found,) = answer.responses[0].partitions
    assert (answer.error_code, found.partition_index, found.error_code) == (0, index, code)
    assert controller.image is before


async def test_nothing_is_ever_under_way() -> None:
    services = services_of(await open_controller())
    request = ListPartitionReassignmentsRequest(topics=None)
    answer = await call(list_partition_reassignments, services, request, 0)
    assert (answer.error_code, answer.topics) == (0, [])
