"""IncrementalAlterConfigs: single settings."""

import pytest

from broker.controller.images.cluster_image import ConfigResource, ResourceType
from broker.controller.topics.topics import NewTopic
from broker.handlers import incremental_alter_configs
from protocol.error_codes import ErrorCode
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.fakes.broker.controller import open_controller, services_of
from tests.fakes.broker.wire import call, versions_of

SET, DELETE, APPEND, SUBTRACT = range(4)


def resource(kind: int, name: str, *changes: tuple[str, int, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )


@pytest.mark.parametrize("version", versions_of(incremental_alter_configs))
async def test_one_result_per_resource_in_order(version: int) -> None:
    """Of one resource all changes are made or none."""
    controller = await open_controller()
    await controller.create_topics(
        [NewTopic("a", 1, 1, configs=[("flush.ms", "5")]), NewTopic("b", 1, 1)]
    )
    request = IncrementalAlterConfigsRequest(
        resources=[
            resource(2, "b", ("retention.ms", SET, "1"), ("segment.bytes", SET, "x")),
            resource(
                2,
                "a",
                ("retention.ms", SET, "1"),
                ("flush.ms", DELETE, None),
                ("cleanup.policy", APPEND, "compact"),
            ),
            resource(8, "1", ("root", SET, "DEBUG")),
            resource(8, "1"),
            resource(32, "g", ("consumer.session.timeout.ms", SET, "50000")),
            resource(16, "m", ("interval.ms", SET, "1000")),
            resource(4, "", ("log.cleaner.backoff.ms", SET, "9")),
            resource(4, "", ("log.cleaner.backoff.ms", SET, "8")),
            resource(99, "x"),
        ]
    )
    response = await call(incremental_alter_configs, services_of(controller), request, version)
    assert [
        (r.resource_type, r.resource_name, ErrorCode(r.error_code)) for r in response.responses
    ] == [
        (2, "b", ErrorCode.INVALID_CONFIG),
        (2, "a", ErrorCode.NONE),
        (8, "1", ErrorCode.INVALID_REQUEST),
        (8, "1", ErrorCode.INVALID_REQUEST),
        (32, "g", ErrorCode.NONE),
        (16, "m", ErrorCode.NONE),
        (4, "", ErrorCode.INVALID_REQUEST),
        (4, "", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ]
    image = controller.image
    assert image.topics["a"].overrides == {
        "retention.ms": "1",
        "cleanup.policy": "delete,compact",
    }
    assert image.topics["b"].overrides == {}
    assert set(image.configs) == {
        ConfigResource(ResourceType.BROKER, ""),
        ConfigResource(ResourceType.GROUP, "g"),
        ConfigResource(ResourceType.CLIENT_METRICS, "m"),
    }


@pytest.mark.parametrize(
    ("change", "error"),
    [(None, ErrorCode.NONE), (("root", SET, "DEBUG"), ErrorCode.INVALID_CONFIG)],
)
async def test_loggers(change: tuple[str, int, str] | None, error: ErrorCode) -> None:
    """There are none by name; asking for nothing is fine."""
    controller = await open_controller()
    changes = [change] if change else []
    request = IncrementalAlterConfigsRequest(resources=[resource(8, "1", *changes)])
    response = await call(incremental_alter_configs, services_of(controller), request, 1)
    assert response.responses[0].error_code == error


async def test_validate_only() -> None:
    controller = await open_controller()
    await controller.create_topics([NewTopic("a", 1, 1)])
    request = IncrementalAlterConfigsRequest(
        resources=[resource(2, "a", ("retention.ms", SET, "1"))], validate_only=True
    )
    response = await call(incremental_alter_configs, services_of(controller), request, 1)
    assert response.responses[0].error_code == ErrorCode.NONE
    assert controller.image.topics["a"].overrides == {}


OWN_LISTENER_GONE = (
    ("listeners", SET, "FOO://h:1"),
    (
        "listener.security.protocol.map",
        SET,
        "FOO:PLAINTEXT",
    ),
)


async def test_a_brokers_own_settings_are_judged_before_the_controller_sees_them() -> None:
    """With what it was started with, which the controller does not know."""
    controller = await open_controller()
    request = IncrementalAlterConfigsRequest(
        resources=[
            resource(4, "", ("log.cleaner.backoff.ms", SET, "9")),
            resource(4, "1", *OWN_LISTENER_GONE),
            resource(2, "t", ("retention.ms", SET, "x")),
        ],
        validate_only=True,
    )
    sent: list[IncrementalAlterConfigsRequest] = []

    async def send(rest: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
        sent.append(rest)
        return IncrementalAlterConfigsResponse(
            responses=[
                AlterConfigsResourceResponse(
                    resource_type=one.resource_type, resource_name=one.resource_name
                )
                for one in rest.resources
            ]
        )

    response = await incremental_alter_configs.forward(services_of(controller), request, send)
    assert response is not None
    (rest,) = sent
    assert rest.validate_only
    assert [(r.resource_type, r.resource_name) for r in rest.resources] == [(4, ""), (2, "t")]
    assert [(r.resource_name, ErrorCode(r.error_code)) for r in response.responses] == [
        ("", ErrorCode.NONE),
        ("1", ErrorCode.INVALID_REQUEST),
        ("t", ErrorCode.NONE),
    ]


async def test_nothing_is_sent_where_all_is_refused() -> None:
    controller = await open_controller()
    request = IncrementalAlterConfigsRequest(resources=[resource(4, "1", *OWN_LISTENER_GONE)])

    async def send(_: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
        raise AssertionError

    response = await incremental_alter_configs.forward(services_of(controller), request, send)
    assert response is not None
    assert response.responses[0].error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("name", ["1", "2"])
async def test_what_is_fine_is_sent_as_it_is(name: str) -> None:
    """None: it is for this broker, which has become the controller."""
    controller = await open_controller()
    request = IncrementalAlterConfigsRequest(
        resources=[resource(4, name, ("log.cleaner.backoff.ms", SET, "9"))]
    )
    sent: list[IncrementalAlterConfigsRequest] = []

    async def send(rest: IncrementalAlterConfigsRequest) -> None:
        sent.append(rest)

    assert await incremental_alter_configs.forward(services_of(controller), request, send) is None
    assert sent == [request]
