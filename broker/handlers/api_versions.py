"""ApiVersions (API key 18), versions 0 to 4.

Behaviour:
- Lists the APIs this broker serves, no others.
- A version above ours is answered in version 0 with UNSUPPORTED_VERSION and the range of
  ApiVersions itself, so that the client can retry (KIP-511). The router passes None for such a
  request.
- Produce is announced from 0 and JoinGroup from 0 although no client sends those: librdkafka before
  2.11 concludes from the lower bound whether it may compress, and whether groups exist
  (KAFKA-18659, KAFKA-19444).

Versions:
- 3   flexible; name and version of the client's software   KIP-511
      features                                               KIP-584
- 4   features whose lowest version is 0                     KAFKA-17011
"""

import re
from typing import TYPE_CHECKING

from broker.controller.images.features import SUPPORTED
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.API_VERSIONS
VERSIONS = (0, 4)
FEATURES_FROM_ZERO_VERSION = 4

SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""Valid names and versions of a client's software, as in Kafka."""


def handle(
    services: "Services", context: "RequestContext", request: ApiVersionsRequest | None
) -> ApiVersionsResponse:
    """List the served APIs; `request` is None where the client's version is above ours."""
    if request is None:
        low, high = VERSIONS
        return ApiVersionsResponse(
            error_code=int(ErrorCode.UNSUPPORTED_VERSION),
            api_keys=[ApiVersion(api_key=int(API_KEY), min_version=low, max_version=high)],
        )
    if context.api_version >= 3 and not (
        SOFTWARE_NAME.fullmatch(request.client_software_name)
        and SOFTWARE_NAME.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=int(ErrorCode.INVALID_REQUEST))
    image = services.controller.image
    return ApiVersionsResponse(
        api_keys=services.advertised_apis,
        supported_features=[
            SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            for name, (lowest, highest) in SUPPORTED.items()
            if lowest > 0 or context.api_version >= FEATURES_FROM_ZERO_VERSION
        ],
        finalized_features_epoch=image.revision,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in image.features.items()
            if level > 0
        ],
    )
