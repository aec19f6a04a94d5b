"""AlterConfigs: replaces all that is set."""

import pytest

from broker.controller.topics.topics import NewTopic
from broker.handlers import alter_configs
from protocol.error_codes import ErrorCode
from protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
)
from tests.fakes.broker.controller import open_controller, services_of
from tests.fakes.broker.wire import call, versions_of


def resource(kind: int, name: str, **settings: str | None) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            AlterableConfig(name=key.replace("_", "."), value=value)
            for key, value in settings.items()
        ],
    )


@pytest.mark.parametrize("version", versions_of(alter_configs))
async def test_one_result_per_resource_in_order(version: int) -> None:
    controller = await open_controller()
    await controller.create_topics([NewTopic("a", 1, 1, configs=[("flush.ms", "5")])])
    request = AlterConfigsRequest(
        resources=[
            resource(2, "none", retention_ms="1"),
            resource(2, "a", retention_ms="1"),
            resource(4, "1", log_cleaner_backoff_ms="9"),
            resource(8, "1"),
            resource(2, "x", retention_ms=None),
        ]
    )
    response = await call(alter_configs, services_of(controller), request, version)
    assert [
        (r.resource_type, r.resource_name, ErrorCode(r.error_code)) for r in response.responses
    ] == [
        (2, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (2, "a", ErrorCode.NONE),
        (4, "1", ErrorCode.NONE),
        (8, "1", ErrorCode.INVALID_REQUEST),
        (2, "x", ErrorCode.INVALID_REQUEST),
    ]
    assert controller.image.topics["a"].overrides == {"retention.ms": "1"}
    assert controller.effective_settings.log_cleaner_backoff_ms == 9


async def test_validate_only() -> None:
    controller = await open_controller()
    await controller.create_topics([NewTopic("a", 1, 1)])
    request = AlterConfigsRequest(
        resources=[resource(2, "a", retention_ms="1")], validate_only=True
    )
    response = await call(alter_configs, services_of(controller), request, 2)
    assert response.responses[0].error_code == ErrorCode.NONE
    assert controller.image.topics["a"].overrides == {}


async def test_a_brokers_own_settings_are_judged_before_the_controller_sees_them() -> None:
    """The controller does not know what this broker was started with."""
    controller = await open_controller()
    request = AlterConfigsRequest(
        resources=[
            resource(4, "1", listeners="FOO://h:1", listener_security_protocol_map="FOO:PLAINTEXT"),
            resource(2, "t"),
        ]
    )
    sent: list[AlterConfigsRequest] = []

    async def send(rest: AlterConfigsRequest) -> AlterConfigsResponse | None:
        sent.append(rest)
        return None

    assert await alter_configs.forward(services_of(controller), request, send) is None
    assert [one.resource_name for one in sent[0].resources] == ["t"]
