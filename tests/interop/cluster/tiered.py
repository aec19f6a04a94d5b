"""Tiered topics on real processes: what lies in the bucket, and what the leader says of it."""

import json
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewTopic

from bench.node import VarveNode

TIERED_BROKER = {
    "remote.log.storage.system.enable": "true",
    "remote.log.manager.task.interval.ms": "200",
    "rlmm.config.remote.log.metadata.topic.num.partitions": "2",
    "log.retention.check.interval.ms": "300",
    "log.initial.task.delay.ms": "300",
    "tier.gc.grace.ms": "0",
    "offsets.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "broker.session.timeout.ms": "2000",
}
TIERED_TOPIC = {
    "remote.storage.enable": "true",
    "segment.bytes": str(1 << 20),
    "local.retention.bytes": "1",
    "file.delete.delay.ms": "0",
}
WAIT_S = 60.0
_VALUE = b"x" * 250_000


def create_tiered(bootstrap: str, topic: str, replicas: int, **configs: str) -> None:
    """One partition, four records to a segment."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(topic, 1, replicas, config={**TIERED_TOPIC, **configs})
    admin.create_topics([new])[topic].result(60)


def set_again(bootstrap: str, topic: str) -> dict[str, str | None]:
    """Set what a tiered topic was made with, as after a recovery; what was set before."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result(60)
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in TIERED_TOPIC.items()
    ]
    wanted = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    admin.incremental_alter_configs([wanted])[wanted].result(60)
    return {name: found[name].value for name in TIERED_TOPIC}


def write(bootstrap: str, topic: str, first: int, count: int) -> None:
    """Numbered records, acknowledged by all."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(first, first + count):
        producer.produce(topic, b"%08d" % number + _VALUE, partition=0)
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0


def numbers(bootstrap: str, topic: str, count: int, first: int = 0) -> list[int]:
    """So many records' numbers, from an offset on; fewer if they do not come."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "all", "auto.offset.reset": "error"}
    )
    consumer.assign([TopicPartition(topic, 0, first)])
    found: list[int] = []
    deadline = time.monotonic() + WAIT_S
    while len(found) < count and time.monotonic() < deadline:
        for message in consumer.consume(100, timeout=0.5):
            assert message.error() is None, message.error()
            value = message.value()
            assert value is not None
            found.append(int(value[:8]))
    consumer.close()
    return found


def page(node: VarveNode, path: str, *, post: bool = False) -> dict[str, Any] | None:
    """An admin page of a broker; None: it refuses."""
    request = urllib.request.Request(
        f"http://{node.admin_address}{path}",
        headers={"Varve-Action": "1"},
        method="POST" if post else "GET",
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found
    except urllib.error.HTTPError as error:
        error.close()
        return None
    except OSError:
        return None


def row(node: VarveNode, topic: str) -> dict[str, Any] | None:
    """What the leader says of the partition; None: this broker does not lead it."""
    found = page(node, f"/tier?topic={topic}")
    return None if found is None else found["partitions"][0]


def is_copied(node: VarveNode, topic: str, count: int) -> bool:
    """Of so many records all closed segments are remote, and no others are on the leader's disk."""
    shown = row(node, topic)
    return (
        shown is not None
        and bool(shown["ready"])
        and shown["logEnd"] == count
        and shown["unfinishedSegments"] == 0
        and shown["localLogStart"] > 0
        and shown["localLogStart"] == shown["highestRemote"] + 1
    )


def collect(nodes: list[VarveNode]) -> dict[str, Any]:
    """The report of a pass of garbage collection, by the broker that does it."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        for node in nodes:
            report = page(node, "/tier/gc", post=True) if node.is_running else None
            if report is not None:
                return report
        time.sleep(0.2)
    raise AssertionError("no broker collects garbage")


def files(bucket: Path) -> set[str]:
    """Names of segments' objects in a directory."""
    ends = (".log", ".indexes", ".rsm-manifest")
    return {path.name for path in bucket.rglob("*") if path.name.endswith(ends)}


def wait_until(what: str, nodes: list[VarveNode], condition: Any) -> None:
    """Ask until it is so."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        shown = [(page(node, "/tier") or {}).get("partitions") for node in nodes if node.is_running]
        assert time.monotonic() < deadline, f"{what}: {shown}"
        time.sleep(0.1)
