"""Brokers for histories: started as users start them, with a proxy in front where asked for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench import wire
from bench.node import KafkaNode, OwnedNode, VarveNode
from tests.checker.clients.share_work import PROPERTIES as SHARE_PROPERTIES

BROKERS: Final[dict[str, type[OwnedNode]]] = {"varve": VarveNode, "kafka": KafkaNode}

PROPERTIES: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    # Shorter than a frozen client sleeps.
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    # Kafka waits for its own old session before it starts again.
    "broker.session.timeout.ms": "1500",
    "broker.heartbeat.interval.ms": "300",
    # So that a killed client's transaction does not hold up readers for long.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    **SHARE_PROPERTIES,
}


def new_broker(
    kind: str,
    directory: Path,
    *,
    properties: Mapping[str, str] | None = None,
    advertised_port: int | None = None,
) -> OwnedNode:
    """A broker, not yet started; `advertised_port` is where clients are told to go."""
    given = {**PROPERTIES, **(properties or {})}
    if advertised_port is not None:
        given["advertised.listeners"] = f"PLAINTEXT://127.0.0.1:{advertised_port}"
    return BROKERS[kind](directory, given)


def create_topic(
    node: OwnedNode, name: str, partitions: int, configs: Mapping[str, str] | None = None
) -> None:
    """Create a topic and wait until it is led."""
    with node.connect() as connection:
        wire.create_topic(connection, name, partitions, dict(configs or {}))
