"""Settings of one consumer group, from IncrementalAlterConfigs to the next heartbeat."""

from broker.controller.configs.config_descriptions import ConfigSource
from broker.controller.images.cluster_image import ResourceType
from protocol.error_codes import ErrorCode
from protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.fakes.network.client import Client
from tests.system.conftest import Node, StartNode

KEY = "consumer.heartbeat.interval.ms"
SET, DELETE = 0, 1


async def alter(client: Client, value: str | None, key: str = KEY) -> tuple[ErrorCode, str | None]:
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(
                resource_type=int(ResourceType.GROUP),
                resource_name="g",
                configs=[
                    AlterableConfig(
                        name=key, config_operation=DELETE if value is None else SET, value=value
                    )
                ],
            )
        ]
    )
    (answer,) = (await client.call(request)).responses
    return ErrorCode(answer.error_code), answer.error_message


async def described(client: Client) -> tuple[str, int]:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=int(ResourceType.GROUP), resource_name="g", configuration_keys=[KEY]
            )
        ]
    )
    (answer,) = (await client.call(request)).results
    (entry,) = answer.configs
    return entry.value, entry.config_source


async def beat(client: Client, epoch: int) -> ConsumerGroupHeartbeatResponse:
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch)
    if epoch == 0:
        request.rebalance_timeout_ms = 60_000
        request.subscribed_topic_names = ["t"]
        request.topic_partitions = []
    answer = await client.call(request)
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    assert answer.error_code == ErrorCode.NONE, answer.error_message
    return answer


async def test_a_members_next_heartbeat_follows_the_group_settings(
    start_node: StartNode,
) -> None:
    """Until they are taken back; the broker's own settings are default and bounds."""
    node: Node = await start_node(group_consumer_heartbeat_interval_ms=6_000)
    client = await node.client()
    await client.create_topic("t")
    await client.find_coordinator("g")
    await node.ready()
    epoch = (joined := await beat(client, 0)).member_epoch
    assert joined.heartbeat_interval_ms == 6_000
    assert await described(client) == ("6000", ConfigSource.DEFAULT_CONFIG)

    assert await alter(client, "7000") == (ErrorCode.NONE, None)
    assert await described(client) == ("7000", ConfigSource.GROUP_CONFIG)
    assert (await beat(client, epoch)).heartbeat_interval_ms == 7_000
    listed = await client.call(ListConfigResourcesRequest(resource_types=[int(ResourceType.GROUP)]))
    assert [one.resource_name for one in listed.config_resources] == ["g"]

    code, said = await alter(client, "4999")
    assert code is ErrorCode.INVALID_CONFIG
    assert said is not None
    assert "group.consumer.min.heartbeat.interval.ms" in said
    code, said = await alter(client, "1", "no.such.key")
    assert code is ErrorCode.INVALID_CONFIG
    assert said == "Unknown group config name: no.such.key"

    assert await alter(client, None) == (ErrorCode.NONE, None)
    assert (await beat(client, epoch)).heartbeat_interval_ms == 6_000
