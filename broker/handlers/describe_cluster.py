"""DescribeCluster (API key 60), versions 0 to 2.

Behaviour:
- Brokers with the endpoints of the listener the client has connected to; fenced ones only on
  request. Without an authorizer every client may do every operation.
- Endpoints of controllers are not for clients of a broker: MISMATCHED_ENDPOINT_TYPE, as Kafka.

Versions:
- 0  KIP-700
- 1  brokers or controllers                    KIP-919
- 2  fenced brokers                            KIP-1073
"""

from typing import TYPE_CHECKING

from broker.controller.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED
from broker.runtime.errors import ApiError
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.DESCRIBE_CLUSTER
VERSIONS = (0, 2)

BROKERS = 1
CONTROLLERS = 2

NO_CONTROLLER = -1


def handle(
    services: "Services", context: "RequestContext", request: DescribeClusterRequest
) -> DescribeClusterResponse:
    """Answer from the image.

    Raises:
        ApiError: MISMATCHED_ENDPOINT_TYPE, UNSUPPORTED_ENDPOINT_TYPE.
    """
    if request.endpoint_type == CONTROLLERS:
        raise ApiError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of "
            "type CONTROLLER",
        )
    if request.endpoint_type != BROKERS:
        raise ApiError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            f"Unsupported endpoint type {request.endpoint_type}",
        )
    image = services.controller.image
    listener = context.connection.listener_name
    asked = request.include_cluster_authorized_operations
    return DescribeClusterResponse(
        endpoint_type=BROKERS,
        cluster_id=image.cluster_id,
        # What an image names as the controller can do nothing while its store is away.
        controller_id=NO_CONTROLLER if services.store_is_away() else image.controller_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=broker.node_id,
                host=broker.listeners[listener].host,
                port=broker.listeners[listener].port,
                rack=broker.rack,
                is_fenced=broker.is_fenced,
            )
            for broker in image.brokers.values()
            if listener in broker.listeners
            and (not broker.is_fenced or request.include_fenced_brokers)
        ],
        cluster_authorized_operations=CLUSTER_OPERATIONS if asked else NOT_ASKED,
    )
