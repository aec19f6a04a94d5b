"""DescribeGroups (API key 15), versions 0 to 6.

Behaviour:
- State, protocol and members of classic groups. Protocol and the members' metadata only while the
  group is Stable.
- A group that is listed several times is described once: it may be large, and its name short.
- A group that does not exist is Dead; from version 6 also GROUP_ID_NOT_FOUND.

Versions:
- 1   throttle time
- 3   authorized operations      KIP-430
- 4   group instance id          KIP-345
- 5   flexible
- 6   error message, GROUP_ID_NOT_FOUND      KIP-1043
"""

from typing import TYPE_CHECKING

from broker.groups.classic.classic_group import ClassicGroup
from broker.groups.classic.classic_group_state import ClassicGroupState
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.DESCRIBE_GROUPS
VERSIONS = (0, 6)

_READ, _DELETE, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS = 3, 6, 8, 10, 11
ALL_OPERATIONS = (
    1 << _READ | 1 << _DELETE | 1 << _DESCRIBE | 1 << _DESCRIBE_CONFIGS | 1 << _ALTER_CONFIGS
)
"""All operations on a group, as a bit field of AclOperation codes."""


def handle(
    services: "Services", context: "RequestContext", request: DescribeGroupsRequest
) -> DescribeGroupsResponse:
    """Describe groups."""
    wants_operations = context.api_version >= 3 and request.include_authorized_operations
    described = []
    for group_id in dict.fromkeys(request.groups):
        code, group = services.groups.find_group(group_id)
        if isinstance(group, ClassicGroup):
            one = _describe(group)
        elif code is not ErrorCode.NONE:
            one = DescribedGroup(group_id=group_id, error_code=code, error_message=code.message)
        elif context.api_version >= 6:
            one = DescribedGroup(
                group_id=group_id,
                group_state=ClassicGroupState.DEAD.value,
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=(
                    f"Group {group_id} not found."
                    if group is None
                    else f"Group {group_id} is not a classic group."
                ),
            )
        else:
            one = DescribedGroup(group_id=group_id, group_state=ClassicGroupState.DEAD.value)
        if wants_operations and one.error_code == ErrorCode.NONE:
            one.authorized_operations = ALL_OPERATIONS
        described.append(one)
    return DescribeGroupsResponse(groups=described)


def _describe(group: ClassicGroup) -> DescribedGroup:
    is_stable = group.state is ClassicGroupState.STABLE
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if is_stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if is_stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )
