"""DescribeAcls (API key 29), versions 1 to 3.

Behaviour:
- There is no authorizer: SECURITY_DISABLED, as Kafka answers without one. By it MirrorMaker knows
  that there are no ACLs to copy.

Versions:
- 1  prefixed patterns                KIP-290
- 2  flexible
- 3  USER, a type of resource         KIP-373
"""

from typing import TYPE_CHECKING, Final

from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.DESCRIBE_ACLS
VERSIONS = (1, 3)

REASON: Final = "No Authorizer is configured on the broker"


def handle(
    _services: "Services", _context: "RequestContext", _request: DescribeAclsRequest
) -> DescribeAclsResponse:
    """Say that there is no authorizer."""
    return DescribeAclsResponse(error_code=int(ErrorCode.SECURITY_DISABLED), error_message=REASON)
