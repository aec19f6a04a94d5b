"""DeleteAcls (API key 31), versions 1 to 3.

Behaviour:
- There is no authorizer: SECURITY_DISABLED for each filter, as Kafka answers without one.

Versions:
- 1  prefixed patterns                KIP-290
- 2  flexible
- 3  USER, a type of resource         KIP-373
"""

from typing import TYPE_CHECKING, Final

from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.DELETE_ACLS
VERSIONS = (1, 3)

REASON: Final = "No Authorizer is configured."


def handle(
    _services: "Services", _context: "RequestContext", request: DeleteAclsRequest
) -> DeleteAclsResponse:
    """Delete none of them."""
    code = int(ErrorCode.SECURITY_DISABLED)
    refused = DeleteAclsFilterResult(error_code=code, error_message=REASON)
    return DeleteAclsResponse(filter_results=[refused] * len(request.filters))
