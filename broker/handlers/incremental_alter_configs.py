"""IncrementalAlterConfigs (API key 44), versions 0 to 1.

Behaviour:
- One result per resource, in the order of the request; of one resource all changes are made or
  none.
- Topics, brokers (their id, or empty for all of them), groups and client metrics subscriptions.
  A broker's static configs are never changed, only overridden. There are no loggers to set by
  name.
- APPEND and SUBTRACT work on lists only; a list that is not set starts from its default.
- The answer comes when the change is stored and applied.

Versions:
- 0  KIP-339
- 1  flexible
"""

from typing import TYPE_CHECKING

from broker.controller.configs.config_requests import (
    RequestedChange,
    RequestedResource,
    outcomes,
    resources_to_change,
)
from broker.controller.configs.configs import ConfigOperation, Operation
from broker.controller.images.cluster_image import ConfigResource, ResourceType
from protocol.api_keys import ApiKey
from protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.INCREMENTAL_ALTER_CONFIGS
VERSIONS = (0, 1)
FORWARDED = True


async def handle(
    services: "Services", context: "RequestContext", request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change the configs of each resource by itself."""
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
    judged = resources_to_change(
        requested, nodes=services.controller.image.brokers, incremental=True
    )
    changes = {
        verdict: [
            ConfigOperation(change.name, Operation(change.operation), change.value)
            for change in resource.changes
        ]
        for resource, verdict in zip(requested, judged, strict=True)
        if isinstance(verdict, ConfigResource) and verdict.type is not ResourceType.BROKER_LOGGER
    }
    results = await services.controller.incremental_alter_configs(
        changes, validate_only=request.validate_only
    )
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=int(error),
                error_message=message,
                resource_type=resource.type,
                resource_name=resource.name,
            )
            for resource, error, message in outcomes(requested, judged, results)
        ]
    )
