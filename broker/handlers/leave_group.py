"""LeaveGroup (API key 13), versions 0 to 5.

Behaviour:
- Removes members and starts a rebalance. A static member can be removed by its instance id alone:
  so an administrator does.

Versions:
- 1   throttle time
- 3   several members, each with an answer; group instance id     KIP-345
- 4   flexible
- 5   reason                                                      KIP-800
"""

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity

if TYPE_CHECKING:
    from broker.request import RequestContext
    from broker.services import Services

API_KEY = ApiKey.LEAVE_GROUP
VERSIONS = (0, 5)


def handle(
    services: "Services", context: "RequestContext", request: LeaveGroupRequest
) -> LeaveGroupResponse:
    """Remove members from a group."""
    if context.api_version >= 3:
        code, members = services.groups.leave_group(request.group_id, request.members)
        return LeaveGroupResponse(error_code=code, members=members)
    code, members = services.groups.leave_group(
        request.group_id, [MemberIdentity(member_id=request.member_id)]
    )
    # Old answers have no room for members: the only one's error is the answer's.
    return LeaveGroupResponse(error_code=members[0].error_code if code is ErrorCode.NONE else code)
