"""ShareGroupHeartbeat (API key 76), version 1.

Behaviour:
- The one request of a share group's members to its coordinator: a member joins with epoch 0 and
  leaves with -1; each response has its epoch and, when it has changed, its assignment, which other
  members may share.
- UNSUPPORTED_VERSION unless the feature `share.version` is at level 1.

Versions:
- 1   stable in Kafka 4.1    KIP-932
"""

from typing import TYPE_CHECKING

from broker.runtime.errors import ApiError
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from broker.requests.answer import Answer
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.SHARE_GROUP_HEARTBEAT
VERSIONS = (1, 1)


def handle(
    services: "Services", context: "RequestContext", request: ShareGroupHeartbeatRequest
) -> "ShareGroupHeartbeatResponse | Answer[ShareGroupHeartbeatResponse]":
    """Join, stay in, or leave a share group."""
    if not services.groups.serves_share_groups:
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    try:
        return services.groups.share_group_heartbeat(context, request)
    except ApiError as error:
        return ShareGroupHeartbeatResponse(error_code=error.code, error_message=error.message)
