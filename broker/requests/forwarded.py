"""A client's request on its way to the active controller, in an Envelope (KIP-590).

The request is encoded again, with a header of its own, so that the controller sees the version and
the client id that were sent to this broker; of the answer the header is taken off.
"""

from types import ModuleType
from typing import TYPE_CHECKING, Final, Protocol

from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.errors import DecodeError
from protocol.headers import decode_response_header, encode_request_header
from protocol.message import Message
from protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext

TIMEOUT_MS: Final = 30_000
"""Of a request that names no time of its own; 0 or less is none."""

WAY_MS: Final = 1_000
"""Least time for the way. A request that is cut off on it is refused by what it has done itself:
NOT_CONTROLLER, or TOPIC_ALREADY_EXISTS."""


class Channel(Protocol):
    """The way to the controller, as `broker.controller.channel` has it."""

    @property
    def is_here(self) -> bool:
        """Whether this broker is the controller."""
        ...

    async def forward(
        self, request: EnvelopeRequest, *, timeout_ms: float
    ) -> EnvelopeResponse | None:
        """Send an envelope; None: to be handled here."""
        ...


async def forwarded(
    channel: Channel, codec: ModuleType, context: "RequestContext", request: Message
) -> bytes | None:
    """The body of the controller's answer.

    None: to be handled here, since this broker is the controller now; or since there was none in
    the request's time, so that every part of it gets NOT_CONTROLLER, or is refused by what the
    store has now (`ControllerChannel.settle`).

    Raises:
        ApiError: The controller refuses the envelope.
    """
    header = encode_request_header(
        context.api_key, context.api_version, context.correlation_id, context.client_id
    )
    envelope = EnvelopeRequest(
        request_data=header + codec.encode_request(request, context.api_version),
        request_principal=None,
        client_host_address=context.connection.peer_host.encode(),
    )
    timeout_ms = getattr(request, "timeout_ms", TIMEOUT_MS)
    answer = await channel.forward(
        envelope, timeout_ms=max(timeout_ms, WAY_MS) if timeout_ms > 0 else TIMEOUT_MS
    )
    if answer is None:
        return None
    if answer.error_code != ErrorCode.NONE or answer.response_data is None:
        raise ApiError(ErrorCode(answer.error_code or ErrorCode.UNKNOWN_SERVER_ERROR))
    return body_of(answer.response_data, context.api_key, context.api_version)


def body_of(data: bytes, api_key: int, version: int) -> bytes:
    """An answer without its header.

    Raises:
        ApiError: UNKNOWN_SERVER_ERROR: it cannot be read.
    """
    try:
        _, position = decode_response_header(memoryview(data), api_key, version)
    except DecodeError as error:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
    return data[position:]
