"""ConsumerGroupHeartbeat (API key 68), versions 0 to 1.

Behaviour:
- The one request of a consumer group's members to its coordinator: a member joins with epoch 0 and
  leaves with -1 (a static member temporarily with -2); each response has its epoch and, when it has
  changed, its assignment.
- A joining member is answered when there is a target assignment that includes it: mostly after
  50 ms, or 200 ms in a new group.
- UNSUPPORTED_VERSION where `group.coordinator.rebalance.protocols` lacks `consumer`.

Versions:
- 0   KIP-848
- 1   subscription by a regular expression; clients generate their member ids   KIP-848, 1082
"""

from typing import TYPE_CHECKING

from broker.runtime.errors import ApiError
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from broker.requests.answer import Answer
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.CONSUMER_GROUP_HEARTBEAT
VERSIONS = (0, 1)


def handle(
    services: "Services", context: "RequestContext", request: ConsumerGroupHeartbeatRequest
) -> "ConsumerGroupHeartbeatResponse | Answer[ConsumerGroupHeartbeatResponse]":
    """Join, stay in, or leave a consumer group."""
    if not services.groups.serves_consumer_groups:
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    try:
        return services.groups.consumer_group_heartbeat(context, request)
    except ApiError as error:
        return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
