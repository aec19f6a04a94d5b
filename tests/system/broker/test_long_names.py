"""Names and values as long as a request can carry, in versions whose answers have no more room."""

import logging
from typing import Any

import pytest

from broker.runtime.errors import MESSAGE_LENGTH_MAX
from protocol.error_codes import ErrorCode
from protocol.messages import alter_configs, describe_configs, incremental_alter_configs
from protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tests.system.conftest import Node

LONG = "x" * 32_767
"""The longest string of a version that is not flexible."""

TOPIC = 2


def creation(name: str, key: str, value: str) -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=name,
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=key, value=value)],
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=1000)


def replacement(name: str, key: str, value: str) -> alter_configs.AlterConfigsRequest:
    config = alter_configs.AlterableConfig(name=key, value=value)
    return alter_configs.AlterConfigsRequest(
        resources=[
            alter_configs.AlterConfigsResource(
                resource_type=TOPIC, resource_name=name, configs=[config]
            )
        ]
    )


def change(
    name: str, key: str, value: str
) -> incremental_alter_configs.IncrementalAlterConfigsRequest:
    config = incremental_alter_configs.AlterableConfig(name=key, value=value)
    return incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[
            incremental_alter_configs.AlterConfigsResource(
                resource_type=TOPIC, resource_name=name, configs=[config]
            )
        ]
    )


def description(name: str, **_: str) -> describe_configs.DescribeConfigsRequest:
    resource = describe_configs.DescribeConfigsResource(resource_type=TOPIC, resource_name=name)
    return describe_configs.DescribeConfigsRequest(resources=[resource])


@pytest.mark.parametrize(
    ("build", "version", "field", "which"),
    [
        (creation, 2, "topics", "name"),
        (creation, 2, "topics", "key"),
        (creation, 2, "topics", "value"),
        (replacement, 0, "responses", "name"),
        (replacement, 0, "responses", "key"),
        (replacement, 0, "responses", "value"),
        (change, 0, "responses", "name"),
        (change, 0, "responses", "key"),
        (change, 0, "responses", "value"),
        (description, 1, "results", "name"),
    ],
)
async def test_refusals_that_quote_fit_into_the_answer(
    node: Node, caplog: pytest.LogCaptureFixture, build: Any, version: int, field: str, which: str
) -> None:
    """The client is told what is wrong; its connection and the broker's log stay clean."""
    client = await node.client()
    await client.create_topic("t")
    name = "new" if build is creation else "t"
    words = {"name": name, "key": "retention.ms", "value": "1", which: LONG}
    with caplog.at_level(logging.WARNING):
        answer = await client.call(build(**words), version)
    (result,) = getattr(answer, field)
    assert result.error_code != ErrorCode.NONE
    assert 0 < len(result.error_message) <= MESSAGE_LENGTH_MAX
    assert not caplog.records
    await client.metadata()
