"""A handler called as a client calls it: through the bytes of a version."""

import asyncio
import importlib
import inspect
from types import ModuleType
from typing import TYPE_CHECKING, Any

from broker.requests.answer import Answer
from tests.fakes.answers import in_time
from tests.fakes.broker.controller import LISTENER, context_of

if TYPE_CHECKING:
    from broker.services import Services


async def call(
    handler: ModuleType,
    services: "Services",
    request: Any,
    version: int,
    *,
    listener: str = LISTENER,
) -> Any:
    """Encode the request, let the handler answer, and decode what a client would read.

    Raises:
        ApiError: What the router would have to answer at the top.
    """
    codec = importlib.import_module(f"protocol.messages.{handler.API_KEY.name.lower()}")
    decoded = codec.decode_request(memoryview(codec.encode_request(request, version)), version)
    response = handler.handle(services, context_of(handler.API_KEY, version, listener), decoded)
    if isinstance(response, Answer):
        response = await in_time(response)
    elif inspect.iscoroutine(response) or isinstance(response, asyncio.Future):
        response = await response
    body = response if isinstance(response, bytes) else codec.encode_response(response, version)
    return codec.decode_response(memoryview(body), version)


def versions_of(handler: ModuleType) -> range:
    """Every version the handler serves."""
    first, last = handler.VERSIONS
    return range(first, last + 1)
