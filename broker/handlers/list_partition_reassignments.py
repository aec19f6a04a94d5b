"""ListPartitionReassignments (API key 46), version 0.

Behaviour:
- The reassignments under way, of all partitions or of those that are named; unknown ones are passed
  over. Answered from this broker's image.
- Replicas that an earlier reassignment has begun to add, and a later one removes, are listed as
  removing only.

Versions:
- 0  KIP-455, flexible
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import ClusterImage
    from broker.controller.images.partition_image import PartitionImage
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.LIST_PARTITION_REASSIGNMENTS
VERSIONS = (0, 0)


def handle(
    services: "Services", _context: "RequestContext", request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """List what is under way."""
    image = services.controller.image
    wanted: Iterable[tuple[str, Iterable[PartitionImage]]]
    if request.topics is None:
        wanted = ((topic.name, topic.partitions) for topic in image.topics.values())
    else:
        wanted = (
            (topic.name, _named(image, topic.name, topic.partition_indexes))
            for topic in request.topics
        )
    topics = []
    for name, partitions in wanted:
        ongoing = [_ongoing(one) for one in partitions if one.is_reassigning]
        if ongoing:
            topics.append(OngoingTopicReassignment(name=name, partitions=ongoing))
    return ListPartitionReassignmentsResponse(error_message=None, topics=topics)


def _named(image: "ClusterImage", topic: str, indexes: Iterable[int]) -> "Iterator[PartitionImage]":
    for index in indexes:
        partition = image.partition(topic, index)
        if partition is not None:
            yield partition


def _ongoing(partition: "PartitionImage") -> OngoingPartitionReassignment:
    return OngoingPartitionReassignment(
        partition_index=partition.index,
        replicas=list(partition.replicas),
        adding_replicas=[node for node in partition.adding if node not in partition.removing],
        removing_replicas=list(partition.removing),
    )
