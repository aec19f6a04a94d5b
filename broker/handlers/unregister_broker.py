"""UnregisterBroker (API key 64), version 0: forget a broker that is gone for good (KIP-631).

Behaviour:
- Only for one that is fenced (`broker.controller.active.unregistration`); its replicas have to be
  reassigned.
"""

from typing import TYPE_CHECKING

from protocol.api_keys import ApiKey
from protocol.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.UNREGISTER_BROKER
VERSIONS = (0, 0)
FORWARDED = True


async def handle(
    services: "Services", _context: "RequestContext", request: UnregisterBrokerRequest
) -> UnregisterBrokerResponse:
    """Delete its registration.

    Raises:
        ApiError: BROKER_ID_NOT_REGISTERED, INVALID_REQUEST, NOT_CONTROLLER.
    """
    await services.active_controller.unregister(request.broker_id)
    return UnregisterBrokerResponse(error_message=None)
