"""DescribeConfigs, in every version."""

import pytest

from broker.controller.images.cluster_image import ConfigResource, ResourceType
from broker.controller.topics.topics import NewTopic
from broker.handlers import describe_configs
from config.broker import BROKER_KEYS
from config.topic import TOPIC_KEYS
from protocol.error_codes import ErrorCode
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.fakes.broker.controller import open_controller, services_of
from tests.fakes.broker.wire import call, versions_of

VERSIONS = versions_of(describe_configs)


def resource(kind: int, name: str, *keys: str) -> DescribeConfigsResource:
    return DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )


@pytest.mark.parametrize("version", VERSIONS)
async def test_topic_settings(version: int) -> None:
    """All keys by name; synonyms and documentation only when asked for."""
    controller = await open_controller()
    await controller.create_topics([NewTopic("t", 1, 1, configs=[("retention.ms", "1000")])])
    services = services_of(controller)
    plain = DescribeConfigsRequest(resources=[resource(2, "t")])
    (result,) = (await call(describe_configs, services, plain, version)).results
    assert (result.error_code, result.resource_type, result.resource_name) == (0, 2, "t")
    assert result.error_message == ""
    configs = {config.name: config for config in result.configs}
    assert list(configs) == sorted(n for n, row in TOPIC_KEYS.items() if not row.internal)
    retention = configs["retention.ms"]
    assert (retention.value, retention.config_source, retention.read_only) == ("1000", 1, False)
    assert retention.synonyms == []
    if version >= 3:
        assert retention.config_type == 5
        assert retention.documentation is None
    full = DescribeConfigsRequest(
        resources=[resource(2, "t", "retention.ms")],
        include_synonyms=True,
        include_documentation=version >= 3,
    )
    (result,) = (await call(describe_configs, services, full, version)).results
    (retention,) = result.configs
    assert [(s.name, s.value, s.source) for s in retention.synonyms] == [
        ("retention.ms", "1000", 1)
    ]
    if version >= 3:
        assert retention.documentation == TOPIC_KEYS["retention.ms"].text


@pytest.mark.parametrize("version", VERSIONS)
async def test_broker_settings(version: int) -> None:
    """Of this broker; of all brokers only what is set; of no other broker."""
    controller = await open_controller(num_partitions=5)
    everybody = ConfigResource(ResourceType.BROKER, "")
    wanted = {"log.cleaner.backoff.ms": "7", "min.insync.replicas": "1"}
    await controller.alter_configs({everybody: wanted})
    request = DescribeConfigsRequest(
        resources=[resource(4, "1"), resource(4, ""), resource(4, "2"), resource(4, "x")]
    )
    response = await call(describe_configs, services_of(controller), request, version)
    mine, all_, other, wrong = response.results
    configs = {config.name: config for config in mine.configs}
    assert len(configs) >= sum(not row.internal for row in BROKER_KEYS.values())
    assert (configs["num.partitions"].value, configs["num.partitions"].read_only) == ("5", True)
    assert configs["num.partitions"].config_source == 4
    assert configs["log.cleaner.backoff.ms"].config_source == 3
    assert [(c.name, c.value, c.config_source) for c in all_.configs] == [
        ("log.cleaner.backoff.ms", "7", 3),
        ("min.insync.replicas", "1", 3),
    ]
    assert configs["broker.id"].value == configs["node.id"].value == "1"
    assert configs["broker.id"].config_source == 4
    assert other.error_code == ErrorCode.INVALID_REQUEST
    assert other.error_message == (
        "Unexpected broker id, expected 1 or empty string, but received 2"
    )
    assert wrong.error_message == "Broker id must be an integer, but it is: x"


@pytest.mark.parametrize("version", VERSIONS)
async def test_other_resources(version: int) -> None:
    controller = await open_controller()
    request = DescribeConfigsRequest(
        resources=[
            resource(8, "1"),
            resource(8, ""),
            resource(8, "2"),
            resource(16, "m"),
            resource(16, ""),
            resource(32, "g"),
            resource(32, ""),
            resource(2, "none"),
            resource(2, "bad name"),
        ]
    )
    response = await call(describe_configs, services_of(controller), request, version)
    assert [(ErrorCode(r.error_code), len(r.configs)) for r in response.results] == [
        (ErrorCode.NONE, 0),
        (ErrorCode.INVALID_REQUEST, 0),
        (ErrorCode.INVALID_REQUEST, 0),
        (ErrorCode.NONE, 3),
        (ErrorCode.INVALID_REQUEST, 0),
        (ErrorCode.NONE, 11),
        (ErrorCode.INVALID_REQUEST, 0),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, 0),
    ]


async def test_unknown_resource_type_spoils_the_request() -> None:
    """As in Kafka, every resource of it is refused."""
    controller = await open_controller()
    request = DescribeConfigsRequest(resources=[resource(4, "1"), resource(3, "x")])
    response = await call(describe_configs, services_of(controller), request, 4)
    assert [r.error_code for r in response.results] == [ErrorCode.INVALID_REQUEST] * 2


async def test_empty_list_of_keys_means_all() -> None:
    controller = await open_controller()
    await controller.create_topics([NewTopic("t", 1, 1)])
    asked = DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=[])
    request = DescribeConfigsRequest(resources=[asked])
    response = await call(describe_configs, services_of(controller), request, 4)
    assert len(response.results[0].configs) > 30


async def test_what_is_named_twice_is_answered_once() -> None:
    """A few bytes each, and 10 KB of an answer: that would be a lever."""
    services = services_of(await open_controller())
    request = DescribeConfigsRequest(
        resources=[
            resource(4, "1"),
            resource(4, "1"),
            resource(4, "1", "num.partitions"),
            resource(2, "absent"),
            resource(2, "absent"),
        ]
    )
    everything, one, absent = (await call(describe_configs, services, request, 4)).results
    assert len(everything.configs) > 100
    assert [config.name for config in one.configs] == ["num.partitions"]
    assert absent.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
