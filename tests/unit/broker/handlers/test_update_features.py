"""UpdateFeatures: what each version asks for and is told."""

import pytest

from broker.controller.images.features import INITIAL
from broker.handlers import update_features
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tests.fakes.broker.controller import context_of, open_controller, services_of

NAME = "transaction.version"


async def ask(
    version: int, update: FeatureUpdateKey, *, validate_only: bool = False
) -> tuple[UpdateFeaturesResponse, int]:
    controller = await open_controller()
    request = UpdateFeaturesRequest(feature_updates=[update], validate_only=validate_only)
    context = context_of(ApiKey.UPDATE_FEATURES, version)
    answer = await update_features.handle(services_of(controller), context, request)
    return answer, controller.image.features[NAME]


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_a_downgrade(version: int) -> None:
    """Version 0 has a flag for it, later ones a type; version 2 has no single results."""
    update = FeatureUpdateKey(
        feature=NAME,
        max_version_level=1,
        upgrade_type=1 if version == 0 else 2,
        allow_downgrade=version == 0,
    )
    answer, level = await ask(version, update)
    assert (answer.error_code, level) == (0, 1)
    results = [(result.feature, result.error_code) for result in answer.results]
    assert results == ([(NAME, 0)] if version < 2 else [])


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_a_refusal_is_told_once_for_all(version: int) -> None:
    """At the top."""
    answer, level = await ask(version, FeatureUpdateKey(feature=NAME, max_version_level=1))
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert answer.error_message is not None
    assert "Invalid update version 1 for feature transaction.version." in answer.error_message
    assert (answer.results, level) == ([], INITIAL[NAME])


async def test_validate_only() -> None:
    """Answers as if done."""
    update = FeatureUpdateKey(feature=NAME, max_version_level=0, upgrade_type=3)
    answer, level = await ask(2, update, validate_only=True)
    assert (answer.error_code, level) == (0, INITIAL[NAME])
