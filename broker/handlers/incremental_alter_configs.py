"""IncrementalAlterConfigs (API key 44), versions 0 to 1.

Behaviour:
- One result per resource, in the order of the request; of one resource all changes are made or
  none.
- Topics, brokers (their id, or empty for all of them), groups and client metrics subscriptions.
  A broker's static configs are never changed, only overridden. There are no loggers to set by
  name.
- APPEND and SUBTRACT work on lists only; a list that is not set starts from its default.
- What is set on this broker is judged by it, with what it was started with; then the controller has
  the request.
- The answer comes when the change is stored and applied.

Versions:
- 0  KIP-339
- 1  flexible
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
from broker.controller.configs.configs import ConfigOperation, Operation
from broker.controller.images.cluster_image import ConfigResource, ResourceType
from broker.controller.images.results import Result
from broker.runtime.errors import ApiError
from protocol.api_keys import ApiKey
from protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.requests.request_context import RequestContext
    from broker.services import Services

    Send = Callable[
        [IncrementalAlterConfigsRequest], Awaitable[IncrementalAlterConfigsResponse | None]
    ]

API_KEY = ApiKey.INCREMENTAL_ALTER_CONFIGS
VERSIONS = (0, 1)
FORWARDED = True


async def handle(
    services: "Services", context: "RequestContext", request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change the configs of each resource by itself."""
    requested, judged = _judged(services, request)
    results = await services.controller.incremental_alter_configs(
        _changes(requested, judged), validate_only=request.validate_only
    )
    return IncrementalAlterConfigsResponse(responses=_responses(requested, judged, results))


async def forward(
    services: "Services",
    request: IncrementalAlterConfigsRequest,
    send: "Send",
) -> IncrementalAlterConfigsResponse | None:
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
    answer: IncrementalAlterConfigsResponse | None = IncrementalAlterConfigsResponse()
    if rest:
        answer = await send(
            IncrementalAlterConfigsRequest(resources=rest, validate_only=request.validate_only)
        )
    if answer is None:
        return None
    own = _responses(requested, judged, {})
    return IncrementalAlterConfigsResponse(responses=with_answers(own, judged, answer.responses))


def _judged(
    services: "Services", request: IncrementalAlterConfigsRequest
) -> tuple[list[RequestedResource], list[ConfigResource | ApiError]]:
    requested = [
        RequestedResource(
            resource.resource_type,
            resource.resource_name,
            [
                RequestedChange(config.name, config.value, config.config_operation)
                for config in resource.configs
            ],
        )
        for resource in request.resources
    ]
    nodes = services.controller.image.brokers
    return requested, resources_to_change(requested, nodes=nodes, incremental=True)


def _changes(
    requested: Sequence[RequestedResource], judged: Sequence[ConfigResource | ApiError]
) -> dict[ConfigResource, list[ConfigOperation]]:
    return {
        verdict: [
            ConfigOperation(change.name, Operation(change.operation), change.value)
            for change in resource.changes
        ]
        for resource, verdict in zip(requested, judged, strict=True)
        if isinstance(verdict, ConfigResource) and verdict.type is not ResourceType.BROKER_LOGGER
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
