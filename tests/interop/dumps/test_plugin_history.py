"""A Kafka with Aiven's plugin moves here with its history: what it wrote is read as it read it.

`tests/golden/plugin_history` has what the plugin wrote, and what Kafka gave its own consumers.
"""

import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from bench.node import VarveNode

ARCHIVES = Path(__file__).parents[2] / "golden" / "plugin_history"
ONLY_LOCAL = 1
"""Records of each partition in its active segment, which is not copied."""

Rows = list[list[object]]
"""[offset, timestamp, key, value] each."""


@pytest.fixture(params=["plain", "zstd", "encrypted", "custom"])
def moved(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A bucket, a log directory, and what was in them."""
    with tarfile.open(ARCHIVES / f"{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def settings_of(moved: Path) -> dict[str, str]:
    """The plugin's own names."""
    settings = {
        "remote.log.storage.system.enable": "true",
        "rsm.config.storage.root": str(moved / "store"),
        "rsm.config.key.prefix": "some/prefix/",
    }
    if (moved / "keys").exists():
        pairs = "rsm.config.encryption.key.pairs"
        settings |= {
            "rsm.config.encryption.enabled": "true",
            "rsm.config.encryption.key.pair.id": "key1",
            pairs: "key1",
            f"{pairs}.key1.public.key.file": str(moved / "keys" / "public.pem"),
            f"{pairs}.key1.private.key.file": str(moved / "keys" / "private.pem"),
        }
    return settings


def read(node: VarveNode, isolation: str, topic: str, partition: int) -> Rows:
    """Everything from offset 0 to the end, as librdkafka gives it."""
    consumer = Consumer(
        {
            "bootstrap.servers": node.address,
            "group.id": "reader",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    rows: Rows = []
    while True:
        message = consumer.poll(30)
        assert message is not None, f"nothing comes after {len(rows)} records"
        if message.error():
            break
        texts = [(part or b"").decode() for part in (message.key(), message.value())]
        rows.append([message.offset(), message.timestamp()[1], *texts])
    consumer.close()
    return rows


def objects(moved: Path) -> set[str]:
    return {str(path.relative_to(moved)) for path in (moved / "store").rglob("*.*")}


@pytest.mark.parametrize("way", ["taken over", "restored"])
def test_the_plugins_history_is_read_as_kafka_read_it(
    moved: Path, way: str, ran: Callable[[str], None]
) -> None:
    """With Kafka's log directory, or of the bucket alone; and nothing of it is removed."""
    wanted: dict[str, Rows] = json.loads((moved / "records.json").read_text())
    before = objects(moved)
    settings = settings_of(moved)
    node = VarveNode(moved / "varve", settings)
    if way == "taken over":
        shutil.copytree(moved / "log-dir", node.data_directory)
    else:
        given = settings | {"log.dirs": str(node.data_directory), "cluster.id": "moved"}
        arguments = [f"--set={key}={text}" for key, text in given.items()]
        command = [sys.executable, "-m", "cli.main", "tier", "restore", "--take-ownership"]
        subprocess.run([*command, *arguments], check=True, capture_output=True, timeout=60)
        for rows in wanted.values():
            del rows[-ONLY_LOCAL:]
    node.start()
    try:
        for name, rows in wanted.items():
            isolation, _, log = name.partition("/")
            topic, _, partition = log.rpartition("-")
            assert read(node, isolation, topic, int(partition)) == rows, name
    finally:
        node.stop()
    assert before <= objects(moved)
    ran("history that Kafka copied with Aiven's plugin")
