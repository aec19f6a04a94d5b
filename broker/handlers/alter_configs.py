"""AlterConfigs (API key 33), versions 0 to 2.

Behaviour:
- Replaces all configs of a resource: those that the request does not name fall back to their
  default. Today's tools use IncrementalAlterConfigs.
- One result per resource, in the order of the request; a resource is replaced whole or not at all.
- What is set on this broker is judged by it, with what it was started with; then the controller has
  the request.
- The answer comes when the change is stored and applied.

Versions:
- 0  KIP-133
- 2  flexible
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from broker.controller.configs.config_requests import (
    RequestedChange,
    RequestedResource,
    left_to_forward,
    outcomes,
    refused,
    resources_to_change,
    with_answers,
)
from broker.controller.images.cluster_image import ConfigResource
from broker.controller.images.results import Result
from broker.runtime.errors import ApiError
from protocol.api_keys import ApiKey
from protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.requests.request_context import RequestContext
    from broker.services import Services

    Send = Callable[[AlterConfigsRequest], Awaitable[AlterConfigsResponse | None]]

API_KEY = ApiKey.ALTER_CONFIGS
VERSIONS = (0, 2)
FORWARDED = True


async def handle(
    services: "Services", context: "RequestContext", request: AlterConfigsRequest
) -> AlterConfigsResponse:
    """Replace the configs of each resource by itself."""
    requested, judged = _judged(services, request)
    results = await services.controller.alter_configs(
        _changes(requested, judged), validate_only=request.validate_only
    )
    return AlterConfigsResponse(responses=_responses(requested, judged, results))


async def forward(
    services: "Services",
    request: AlterConfigsRequest,
    send: "Send",
) -> AlterConfigsResponse | None:
    """Have the controller make the changes that this broker does not refuse.

    Its own settings only this broker can judge: with what it was started with.

    Args:
        services: The broker's parts.
        request: As the client sent it.
        send: Forwards a request; None: to be handled here.
    """
    requested, judged = _judged(services, request)
    refusals = services.controller.judge_own(_changes(requested, judged))
    if not refusals:
        return await send(request)
    judged = refused(judged, refusals)
    rest = left_to_forward(request.resources, judged)
    answer: AlterConfigsResponse | None = AlterConfigsResponse()
    if rest:
        answer = await send(
            AlterConfigsRequest(resources=rest, validate_only=request.validate_only)
        )
    if answer is None:
        return None
    own = _responses(requested, judged, {})
    return AlterConfigsResponse(responses=with_answers(own, judged, answer.responses))


def _judged(
    services: "Services", request: AlterConfigsRequest
) -> tuple[list[RequestedResource], list[ConfigResource | ApiError]]:
    requested = [
        RequestedResource(
            resource.resource_type,
            resource.resource_name,
            [RequestedChange(config.name, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]
    nodes = services.controller.image.brokers
    return requested, resources_to_change(requested, nodes=nodes, incremental=False)


def _changes(
    requested: Sequence[RequestedResource], judged: Sequence[ConfigResource | ApiError]
) -> dict[ConfigResource, dict[str, str]]:
    return {
        verdict: {
            change.name: change.value for change in resource.changes if change.value is not None
        }
        for resource, verdict in zip(requested, judged, strict=True)
        if isinstance(verdict, ConfigResource)
    }


def _responses(
    requested: Sequence[RequestedResource],
    judged: Sequence[ConfigResource | ApiError],
    results: Mapping[ConfigResource, Result],
) -> list[AlterConfigsResourceResponse]:
    return [
        AlterConfigsResourceResponse(
            error_code=int(error),
            error_message=message,
            resource_type=resource.type,
            resource_name=resource.name,
        )
        for resource, error, message in outcomes(requested, judged, results)
    ]
