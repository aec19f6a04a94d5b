"""DescribeUserScramCredentials (API key 50), version 0.

Behaviour:
- There is no SASL, so no user has credentials: of all users an empty list, of one that is named
  RESOURCE_NOT_FOUND, of one that is named twice DUPLICATE_RESOURCE, as Kafka answers where none
  were set. `kafka-configs --describe --entity-type users` and administration consoles ask for it.

Versions:
- 0  KIP-554

Source: Kafka, ScramImage.java.
"""

from collections import Counter
from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
VERSIONS = (0, 0)


def handle(
    _services: "Services", _context: "RequestContext", request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Say of each user that is named that there are no credentials."""
    named = Counter(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(
        results=[_result(user, count) for user, count in named.items()]
    )


def _result(user: str, count: int) -> DescribeUserScramCredentialsResult:
    code = ErrorCode.RESOURCE_NOT_FOUND
    message = f"Attempt to describe a user credential that does not exist: {user}"
    if count > 1:
        code = ErrorCode.DUPLICATE_RESOURCE
        message = (
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        )
    return DescribeUserScramCredentialsResult(
        user=user, error_code=int(code), error_message=message
    )
