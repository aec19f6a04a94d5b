"""SaslAuthenticate (API key 36), versions 0 to 2.

Behaviour:
- No listener has SASL: ILLEGAL_SASL_STATE, as Kafka answers at a listener without it.

Versions:
- 1  lifetime of the session          KIP-368
- 2  flexible

Source: Kafka, KafkaApis.handleSaslAuthenticateRequest.
"""

from typing import TYPE_CHECKING, Final

from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.SASL_AUTHENTICATE
VERSIONS = (0, 2)

REASON: Final = "SaslAuthenticate request received after successful authentication"


def handle(
    _services: "Services", _context: "RequestContext", _request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    """Refuse: no listener has SASL."""
    return SaslAuthenticateResponse(
        error_code=int(ErrorCode.ILLEGAL_SASL_STATE), error_message=REASON
    )
