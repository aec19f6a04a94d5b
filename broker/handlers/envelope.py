"""Envelope (API key 58), version 0: another broker's client asks the controller (KIP-590).

Behaviour:
- The request inside is handled as if its client had come here; its answer is the answer's data.
- NOT_CONTROLLER where this broker is not the active one: the sender tries another.
- CLUSTER_AUTHORIZATION_FAILED on a listener for clients. INVALID_REQUEST where the request inside
  is of an API that is not the controller's, UNSUPPORTED_VERSION where its version is not served.
"""

from typing import TYPE_CHECKING

from broker.runtime.errors import ApiError
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.ENVELOPE
VERSIONS = (0, 0)
FOR_BROKERS_ONLY = True


async def handle(
    services: "Services", context: "RequestContext", request: EnvelopeRequest
) -> EnvelopeResponse:
    """Open it, and handle what is inside.

    Raises:
        ApiError: See the module.
    """
    if not await services.channel.settle() or not services.active_controller.is_active:
        raise ApiError(ErrorCode.NOT_CONTROLLER)
    assert services.open_envelope is not None
    return EnvelopeResponse(
        response_data=await services.open_envelope(context, memoryview(request.request_data))
    )
