"""Kill -9 under load: no acknowledged record is lost, reordered or written twice.

An idempotent librdkafka producer sends numbered records without pause while the broker's process is
killed and started again. Afterwards the log is read and compared with what was acknowledged:

- every acknowledged record stands at the offset it was acknowledged with;
- no number stands twice, acknowledged or not;
- numbers of one partition ascend.
"""

import random
import time
from pathlib import Path

import pytest

from bench import wire
from bench.cluster.numbered import NumberedProducer, compare
from tests.interop.conftest import new_node

TOPIC = "crash"
PARTITIONS = 3

IMPATIENT = {
    "linger.ms": 2,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "queue.buffering.max.messages": 2_000,
}


def crash_under_load(directory: Path, kills: int, seed: int) -> None:
    """The whole experiment; the seed is printed by pytest when it fails."""
    moments = random.Random(seed)
    node = new_node(directory)
    node.start()
    with node.connect() as connection:
        wire.create_topic(connection, TOPIC, PARTITIONS, {"segment.bytes": "1048576"})
    producer = NumberedProducer(
        node.address, TOPIC, partitions=range(PARTITIONS), settings=IMPATIENT
    )
    producer.start()
    try:
        for _ in range(kills):
            producer.wait_for_acks(200)
            time.sleep(moments.uniform(0.0, 0.5))
            node.kill()
            node.start()
        producer.finish()
        with node.connect() as connection:
            wire.wait_until_led(connection, TOPIC, PARTITIONS)
        found = compare(TOPIC, producer.acknowledged, lambda *_: node.connect())
        assert found.problems == []
        assert producer.acknowledged_count >= kills * 200
    finally:
        producer.stop()
        node.stop()


def test_five_kills_lose_nothing(tmp_path: Path) -> None:
    """The short variant."""
    crash_under_load(tmp_path, kills=5, seed=5)


@pytest.mark.slow
def test_fifty_kills_lose_nothing(tmp_path: Path) -> None:
    """The full variant, with a seed of its own."""
    crash_under_load(tmp_path, kills=50, seed=50)
