"""SaslHandshake (API key 17), versions 0 and 1.

Behaviour:
- No listener has SASL: ILLEGAL_SASL_STATE, and no mechanism, as Kafka answers at a listener without
  it. So a client that is set to SASL by mistake says what is wrong; that of a connection which is
  closed tries again for ever.

Versions:
- 1  SaslAuthenticate follows, not bare tokens   KIP-152

Source: Kafka, KafkaApis.handleSaslHandshakeRequest.
"""

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.SASL_HANDSHAKE
VERSIONS = (0, 1)


def handle(
    _services: "Services", _context: "RequestContext", _request: SaslHandshakeRequest
) -> SaslHandshakeResponse:
    """Refuse: no listener has SASL."""
    return SaslHandshakeResponse(error_code=int(ErrorCode.ILLEGAL_SASL_STATE))
