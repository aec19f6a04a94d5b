"""ListConfigResources, in both versions."""

from broker.controller.controller import Controller
from broker.controller.images.cluster_image import ConfigResource, ResourceType
from broker.controller.topics.topics import NewTopic
from broker.handlers import list_config_resources
from protocol.error_codes import ErrorCode
from protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.fakes.broker.controller import open_controller, services_of
from tests.fakes.broker.wire import call


async def filled() -> Controller:
    controller = await open_controller()
    await controller.create_topics([NewTopic("t", 1, 1)])
    await controller.alter_configs(
        {
            ConfigResource(ResourceType.GROUP, "g"): {"consumer.session.timeout.ms": "50000"},
            ConfigResource(ResourceType.CLIENT_METRICS, "m"): {"interval.ms": "1000"},
            ConfigResource(ResourceType.BROKER, "1"): {"log.cleaner.backoff.ms": "1"},
        }
    )
    return controller


async def test_version_0_lists_client_metrics() -> None:
    services = services_of(await filled())
    response = await call(list_config_resources, services, ListConfigResourcesRequest(), 0)
    assert [r.resource_name for r in response.config_resources] == ["m"]


async def test_no_types_means_all() -> None:
    services = services_of(await filled())
    response = await call(list_config_resources, services, ListConfigResourcesRequest(), 1)
    assert [(r.resource_type, r.resource_name) for r in response.config_resources] == [
        (32, "g"),
        (16, "m"),
        (8, "1"),
        (4, "1"),
        (2, "t"),
    ]


async def test_only_the_types_asked_for() -> None:
    services = services_of(await filled())
    request = ListConfigResourcesRequest(resource_types=[2, 32])
    response = await call(list_config_resources, services, request, 1)
    assert [(r.resource_type, r.resource_name) for r in response.config_resources] == [
        (32, "g"),
        (2, "t"),
    ]


async def test_unknown_type_is_an_unsupported_version() -> None:
    """And nothing is listed."""
    services = services_of(await filled())
    request = ListConfigResourcesRequest(resource_types=[2, 3])
    response = await call(list_config_resources, services, request, 1)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert response.config_resources == []
