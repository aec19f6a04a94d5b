"""UpdateFeatures (API key 57), versions 0 to 2.

Behaviour:
- Raises or lowers finalised levels of features (`broker.controller.images.features`); all of a
  request's or none. Lowering needs an upgrade type that allows it; safe and unsafe are the same
  here, for no feature loses metadata.
- `validate_only` answers as if it were done.
- The answer comes when the levels are stored; ApiVersions returns them from then on.

Versions:
- 0   KIP-584: `allow_downgrade`
- 1   upgrade type, validate only   KIP-778
- 2   no results for single features   KIP-1022
"""

from typing import TYPE_CHECKING

from broker.controller.images.features import FeatureUpdate, UpgradeType
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.UPDATE_FEATURES
VERSIONS = (0, 2)
FORWARDED = True
SINGLE_RESULTS_UNTIL_VERSION = 1


async def handle(
    services: "Services", context: "RequestContext", request: UpdateFeaturesRequest
) -> UpdateFeaturesResponse:
    """Update all features, or none."""
    updates = [
        FeatureUpdate(
            update.feature,
            update.max_version_level,
            (
                int(UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else UpgradeType.UPGRADE)
                if context.api_version == 0
                else update.upgrade_type
            ),
        )
        for update in request.feature_updates
    ]
    error, message = await services.controller.update_features(
        updates, validate_only=request.validate_only
    )
    if error is not ErrorCode.NONE:
        return UpdateFeaturesResponse(
            error_code=int(error),
            error_message="The update failed for all features since the following feature had an "
            f"error: {message}",
        )
    results = []
    if context.api_version <= SINGLE_RESULTS_UNTIL_VERSION:
        results = [
            UpdatableFeatureResult(feature=update.name, error_message=None) for update in updates
        ]
    return UpdateFeaturesResponse(error_message=None, results=results)
