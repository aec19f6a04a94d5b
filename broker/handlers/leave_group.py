"""LeaveGroup (API key 13), versions 0 to 5.

Behaviour:
- Removes members and starts a rebalance. A static member can be removed by its instance id alone,
  by an administrator.
- In a consumer group (KIP-848) the answer comes when the removal is committed.

Versions:
- 1   throttle time
- 3   several members, each with an answer; group instance id     KIP-345
- 4   flexible
- 5   reason                                                      KIP-800
"""

from typing import TYPE_CHECKING

from broker.requests.answer import Answer
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.LEAVE_GROUP
VERSIONS = (0, 5)


def handle(
    services: "Services", context: "RequestContext", request: LeaveGroupRequest
) -> "LeaveGroupResponse | Answer[LeaveGroupResponse]":
    """Remove members from a group."""
    answer: Answer[LeaveGroupResponse] = Answer()
    has_members = context.api_version >= 3

    def left(code: ErrorCode, members: list[MemberResponse]) -> None:
        if has_members:
            answer(LeaveGroupResponse(error_code=code, members=members))
        else:
            # Old responses have no members: the error of the only one is the response's.
            one = members[0].error_code if code is ErrorCode.NONE else code
            answer(LeaveGroupResponse(error_code=one))

    identities = request.members if has_members else [MemberIdentity(member_id=request.member_id)]
    services.groups.leave_group(request.group_id, identities, left)
    return answer.result()
