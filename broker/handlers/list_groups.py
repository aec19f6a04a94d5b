"""ListGroups (API key 16), versions 0 to 5.

Behaviour:
- Groups coordinated by this broker. COORDINATOR_LOAD_IN_PROGRESS while some may still be missing;
  COORDINATOR_NOT_AVAILABLE while another broker may coordinate some of them by now.

Versions:
- 1   throttle time
- 3   flexible
- 4   filter by state, without regard to case      KIP-518
- 5   filter by type                               KIP-848
"""

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.LIST_GROUPS
VERSIONS = (0, 5)


def handle(
    services: "Services", context: "RequestContext", request: ListGroupsRequest
) -> ListGroupsResponse:
    """List groups, all or those in some states and of some types."""
    if not services.groups.is_running or services.groups.is_in_doubt:
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    if services.groups.is_loading:
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    states = {state.strip().lower() for state in request.states_filter}
    types = {kind.strip().lower() for kind in request.types_filter}
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state_name,
                group_type=group.type.value.lower(),
            )
            for group in services.groups.groups()
            if (not states or group.state_name.lower() in states)
            and (not types or group.type.value.lower() in types)
        ]
    )
