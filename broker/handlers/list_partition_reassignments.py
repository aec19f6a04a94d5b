"""ListPartitionReassignments (API key 46), version 0.

Behaviour:
- None is ever under way: a single node has no other broker to move a replica to. Kafka's
  `kafka-reassign-partitions` calls it before it moves replicas between log directories.

Versions:
- 0  KIP-455, flexible
"""

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.LIST_PARTITION_REASSIGNMENTS
VERSIONS = (0, 0)


def handle(
    services: "Services", context: "RequestContext", request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """Return an empty list."""
    return ListPartitionReassignmentsResponse(error_message=None)
