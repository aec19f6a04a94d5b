"""AlterConfigs (API key 33), versions 0 to 2.

Behaviour:
- Replaces all configs of a resource: those that the request does not name fall back to their
  default. Today's tools use IncrementalAlterConfigs.
- One result per resource, in the order of the request; a resource is replaced whole or not at all.
- The answer comes when the change is stored and applied.

Versions:
- 0  KIP-133
- 2  flexible
"""

from typing import TYPE_CHECKING

from broker.controller.configs.config_requests import (
    RequestedChange,
    RequestedResource,
    outcomes,
    resources_to_change,
)
from broker.controller.images.cluster_image import ConfigResource
from protocol.api_keys import ApiKey
from protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.ALTER_CONFIGS
VERSIONS = (0, 2)
FORWARDED = True


async def handle(
    services: "Services", context: "RequestContext", request: AlterConfigsRequest
) -> AlterConfigsResponse:
    """Replace the configs of each resource by itself."""
    requested = [
        RequestedResource(
            resource.resource_type,
            resource.resource_name,
            [RequestedChange(config.name, config.value) for config in resource.configs],
        )
        for resource in request.resources
    ]
    judged = resources_to_change(
        requested, nodes=services.controller.image.brokers, incremental=False
    )
    changes = {
        verdict: {
            change.name: change.value for change in resource.changes if change.value is not None
        }
        for resource, verdict in zip(requested, judged, strict=True)
        if isinstance(verdict, ConfigResource)
    }
    results = await services.controller.alter_configs(changes, validate_only=request.validate_only)
    return AlterConfigsResponse(
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
