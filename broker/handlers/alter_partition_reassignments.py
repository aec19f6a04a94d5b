"""AlterPartitionReassignments (API key 45), versions 0 to 1.

Behaviour:
- A single node can have one assignment only, which each partition has already: that is accepted,
  as by Kafka, and changes nothing. `kafka-reassign-partitions` sends it along with a move to
  another log directory.
- INVALID_REPLICA_ASSIGNMENT: no replica, one twice, or a broker that is not registered.
  NO_REASSIGNMENT_IN_PROGRESS: replicas null, which cancels. UNKNOWN_TOPIC_OR_PARTITION.

Versions:
- 0  KIP-455, flexible
- 1  whether the number of replicas may change: here it cannot

Source: Kafka, ReplicationControlManager.java (alterPartitionReassignments).
"""

from typing import TYPE_CHECKING

from broker.controller.topics.topics import assigned_partition
from broker.runtime.errors import ApiError
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import ClusterImage
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.ALTER_PARTITION_REASSIGNMENTS
VERSIONS = (0, 1)


def handle(
    services: "Services", context: "RequestContext", request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Check each partition by itself."""
    image = services.controller.image
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    _answer(image, topic.name, partition) for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _answer(
    image: "ClusterImage", topic: str, partition: ReassignablePartition
) -> ReassignablePartitionResponse:
    code, message = ErrorCode.NONE, None
    try:
        _check(image, topic, partition)
    except ApiError as error:
        code, message = error.code, error.message
    return ReassignablePartitionResponse(
        partition_index=partition.partition_index, error_code=int(code), error_message=message
    )


def _check(image: "ClusterImage", topic: str, partition: ReassignablePartition) -> None:
    index = partition.partition_index
    if topic not in image.topics:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {topic}."
        )
    current = image.partition(topic, index)
    if current is None:
        raise ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {topic}:{index}."
        )
    if partition.replicas is None:
        code = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        raise ApiError(code, code.message)
    wanted = assigned_partition(index, partition.replicas, None, image)
    if wanted.replicas != current.replicas:
        raise ApiError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Replicas are not moved between brokers, only between log directories.",
        )
