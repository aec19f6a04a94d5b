"""ApiVersions: what is served, and how a client from the future gets to know it."""

from dataclasses import replace

import pytest

from broker.controller.images.cluster_image import ClusterImage
from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.headers import encode_request_header
from protocol.messages.api_versions import ApiVersionsRequest
from tests.unit.broker.world import HANDLERS, World


def request(name: str = "lib", version: str = "1.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@pytest.mark.parametrize("version", range(5))
async def test_what_is_served_is_listed_and_nothing_else(world: World, version: int) -> None:
    """Produce from 0, although 0 to 2 are refused: librdkafka looks at the lower bound."""
    world.services.advertised_apis = world.apis.advertised()
    answer = world.ask(ApiKey.API_VERSIONS, version, request())
    assert answer.error_code == 0
    listed = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}
    served = {int(module.API_KEY): module.VERSIONS for module in HANDLERS}
    served[ApiKey.PRODUCE] = (0, 13)
    assert listed == served
    assert [key.api_key for key in answer.api_keys] == sorted(listed)


@pytest.mark.parametrize("version", [5, 99, 32_767])
async def test_a_newer_client_is_answered_in_version_0(world: World, version: int) -> None:
    """With ApiVersions' own range, so that it asks again; the connection stays (KIP-511)."""
    data = encode_request_header(ApiKey.API_VERSIONS, 4, 7, "future")
    data = data[:2] + version.to_bytes(2, "big") + data[4:] + b"whatever newer clients send"
    world.h.receive(len(data).to_bytes(4, "big") + data)
    answer = world.answer(ApiKey.API_VERSIONS, 0)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    (key,) = answer.api_keys
    assert (key.api_key, key.min_version, key.max_version) == (ApiKey.API_VERSIONS, 0, 4)
    assert world.ask(ApiKey.API_VERSIONS, 4, request()).error_code == 0


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("name", ["", "-lib", "lib-", "a b", "lib\n", "é", ".", "a_b"])
async def test_software_names_are_checked(world: World, version: int, name: str) -> None:
    """They end up in metrics and logs. Either of the two fields."""
    for asked in (request(name=name), request(version=name)):
        answer = world.ask(ApiKey.API_VERSIONS, version, asked)
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert answer.api_keys == []


@pytest.mark.parametrize("name", ["a", "apache-kafka-java", "librdkafka", "3.9.0", "v1.0-rc.2"])
async def test_names_of_real_clients_pass(world: World, name: str) -> None:
    assert world.ask(ApiKey.API_VERSIONS, 3, request(name=name, version=name)).error_code == 0


async def test_old_versions_have_no_name_to_check(world: World) -> None:
    assert world.ask(ApiKey.API_VERSIONS, 2, request(name="")).error_code == 0


@pytest.mark.parametrize("version", [3, 4])
async def test_features_are_told(world: World, version: int) -> None:
    """Those whose lowest level is 0 break older clients, who get no range (KAFKA-17492)."""
    image = replace(ClusterImage.empty(), revision=77)
    world.services.controller.image = image
    answer = world.ask(ApiKey.API_VERSIONS, version, request())
    supported = {f.name: (f.min_version, f.max_version) for f in answer.supported_features}
    ranges = {
        "group.version": (0, 1),
        "transaction.version": (0, 2),
        "share.version": (0, 1),
        "eligible.leader.replicas.version": (0, 1),
        "varve.version": (0, 1),
    }
    assert supported == (ranges if version == 4 else {})
    finalized = {
        f.name: (f.min_version_level, f.max_version_level) for f in answer.finalized_features
    }
    assert finalized == {
        "group.version": (1, 1),
        "transaction.version": (2, 2),
        "share.version": (1, 1),
        "eligible.leader.replicas.version": (1, 1),
        "varve.version": (1, 1),
    }
    assert answer.finalized_features_epoch == 77


async def test_a_feature_at_level_0_is_not_finalized(world: World) -> None:
    """It is as if it did not exist."""
    levels = {"group.version": 0, "transaction.version": 1}
    world.services.controller.image = replace(ClusterImage.empty(), features=levels)
    answer = world.ask(ApiKey.API_VERSIONS, 4, request())
    assert [(f.name, f.max_version_level) for f in answer.finalized_features] == [
        ("transaction.version", 1)
    ]
