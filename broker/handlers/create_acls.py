"""CreateAcls (API key 30), versions 1 to 3.

Behaviour:
- There is no authorizer: SECURITY_DISABLED for each, as Kafka answers without one.

Versions:
- 1  prefixed patterns                KIP-290
- 2  flexible
- 3  USER, a type of resource         KIP-373
"""

from typing import TYPE_CHECKING, Final

from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.CREATE_ACLS
VERSIONS = (1, 3)

REASON: Final = "No Authorizer is configured."


def handle(
    _services: "Services", _context: "RequestContext", request: CreateAclsRequest
) -> CreateAclsResponse:
    """Create none of them."""
    code = int(ErrorCode.SECURITY_DISABLED)
    refused = AclCreationResult(error_code=code, error_message=REASON)
    return CreateAclsResponse(results=[refused] * len(request.creations))
