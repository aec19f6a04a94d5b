"""SyncGroup (API key 14), versions 0 to 5.

Behaviour:
- Parked until the leader's assignment is committed to `__consumer_offsets`; then each member gets
  its part. In a stable group it is answered at once.

Versions:
- 1   throttle time
- 3   group instance id                                  KIP-345
- 4   flexible
- 5   protocol type and name, required and compared      KIP-559
"""

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from broker.requests.answer import Answer
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.SYNC_GROUP
VERSIONS = (0, 5)


def handle(
    services: "Services", context: "RequestContext", request: SyncGroupRequest
) -> "SyncGroupResponse | Answer[SyncGroupResponse]":
    """Store or fetch the assignment of a generation."""
    if context.api_version >= 5 and (
        request.protocol_type is None or request.protocol_name is None
    ):
        return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return services.groups.sync_group(request)
