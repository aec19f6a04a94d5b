"""DeleteGroups (API key 42), versions 0 to 2.

Behaviour:
- An empty group is deleted with all its offsets; one with members is NON_EMPTY_GROUP. Answered when
  the tombstones are committed.

Versions:
- 2   flexible
"""

from functools import partial
from typing import TYPE_CHECKING

from broker.requests.answer import Answer
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.DELETE_GROUPS
VERSIONS = (0, 2)


def handle(
    services: "Services", context: "RequestContext", request: DeleteGroupsRequest
) -> "DeleteGroupsResponse | Answer[DeleteGroupsResponse]":
    """Delete groups."""
    response = DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id=group_id)
            for group_id in dict.fromkeys(request.groups_names)
        ]
    )
    if not response.results:
        return response
    answer: Answer[DeleteGroupsResponse] = Answer()
    missing = len(response.results)

    def done(result: DeletableGroupResult, code: ErrorCode) -> None:
        nonlocal missing
        result.error_code = code
        missing -= 1
        if not missing:
            answer(response)

    for result in response.results:
        services.groups.delete_group(result.group_id, partial(done, result))
    return answer.result()
