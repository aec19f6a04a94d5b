"""Heartbeat (API key 12), versions 0 to 4.

Behaviour:
- Resets a member's session. REBALANCE_IN_PROGRESS: it has to join again; while the group is being
  loaded the answer is NONE.

Versions:
- 1   throttle time
- 3   group instance id      KIP-345
- 4   flexible
"""

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.HEARTBEAT
VERSIONS = (0, 4)


def handle(
    services: "Services", context: "RequestContext", request: HeartbeatRequest
) -> HeartbeatResponse:
    """Reset a member's session."""
    return HeartbeatResponse(
        error_code=services.groups.heartbeat(
            request.group_id, request.member_id, request.group_instance_id, request.generation_id
        )
    )
