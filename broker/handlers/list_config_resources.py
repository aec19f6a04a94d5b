"""ListConfigResources (API key 74), versions 0 to 1.

Behaviour:
- Names of all config resources: groups and client metrics subscriptions with configs, all brokers,
  all topics. No types in the request means all types of the version.
- A type the version does not have: UNSUPPORTED_VERSION, and nothing else.

Versions:
- 0  client metrics subscriptions only          KIP-1000
- 1  all types                                  KIP-1142
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from broker.controller.images.cluster_image import ResourceType
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import ClusterImage
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.LIST_CONFIG_RESOURCES
VERSIONS = (0, 1)

ORDER: Final = (
    ResourceType.GROUP,
    ResourceType.CLIENT_METRICS,
    ResourceType.BROKER_LOGGER,
    ResourceType.BROKER,
    ResourceType.TOPIC,
)


def handle(
    services: "Services", context: "RequestContext", request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """Answer from the image."""
    supported = ORDER if context.api_version >= 1 else (ResourceType.CLIENT_METRICS,)
    asked = set(request.resource_types) or set(supported)
    if not asked <= set(supported):
        return ListConfigResourcesResponse(error_code=int(ErrorCode.UNSUPPORTED_VERSION))
    image = services.controller.image
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=int(kind))
            for kind in ORDER
            if kind in asked
            for name in _names(image, kind)
        ]
    )


def _names(image: "ClusterImage", kind: ResourceType) -> Iterator[str]:
    match kind:
        case ResourceType.TOPIC:
            yield from image.topics
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            yield from map(str, image.brokers)
        case ResourceType.GROUP | ResourceType.CLIENT_METRICS:
            yield from (resource.name for resource in image.configs if resource.type is kind)
