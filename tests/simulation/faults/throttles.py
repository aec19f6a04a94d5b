"""Throttles of replication (KIP-73): rates of brokers, replicas of topics, set and taken away."""

from collections.abc import Iterable, Sequence
from typing import Final

from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.metadata_records import ConfigResource, ResourceType
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

RATES: Final = tuple(f"{side}.replication.throttled.rate" for side in ("leader", "follower"))
REPLICAS: Final = tuple(f"{side}.replication.throttled.replicas" for side in ("leader", "follower"))
ALL: Final = "*"


def throttling(
    rate: int, nodes: Iterable[int], topics: Iterable[str], replicas: str = ALL
) -> IncrementalAlterConfigsRequest:
    """A request that throttles replicas of topics on brokers.

    Args:
        rate: Bytes per second.
        nodes: Of the brokers.
        topics: All of which have such replicas.
        replicas: Partition and broker, `0:1,0:2`; or all.
    """
    brokers = {ConfigResource(ResourceType.BROKER, str(node)): RATES for node in nodes}
    named = {ConfigResource(ResourceType.TOPIC, topic): REPLICAS for topic in topics}
    return IncrementalAlterConfigsRequest(
        resources=[
            *(_altered(one, names, str(rate)) for one, names in brokers.items()),
            *(_altered(one, names, replicas) for one, names in named.items()),
        ]
    )


def lifting(image: ClusterImage) -> IncrementalAlterConfigsRequest | None:
    """A request that takes away all throttles there are; None: there are none."""
    found = [
        _altered(resource, names, None)
        for resource, settings in image.configs.items()
        if (names := [name for name in RATES if name in settings])
    ]
    found += [
        _altered(ConfigResource(ResourceType.TOPIC, topic.name), names, None)
        for topic in image.topics.values()
        if (names := [name for name in REPLICAS if name in topic.overrides])
    ]
    return IncrementalAlterConfigsRequest(resources=found) if found else None


def _altered(
    resource: ConfigResource, names: Sequence[str], value: str | None
) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=int(resource.type),
        resource_name=resource.name,
        configs=[
            AlterableConfig(name=name, config_operation=int(value is None), value=value)
            for name in names
        ],
    )
