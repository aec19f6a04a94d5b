"""Why the jobs of the workload do without re-bootstrapping: librdkafka hangs, not the broker.

After a broker's restart `send_offsets_to_transaction` waits for ever, with Kafka as with Varve:
librdkafka still waits for the broker object that it has given up itself. See `LASTING`.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.node import REPOSITORY
from tests.checker.brokers import create_topic, new_broker
from tests.checker.clients.client_process import LASTING

pytestmark = pytest.mark.interop

# A call that knows no timeout is best made by a process that can be ended.
PROGRAM = """
import sys
from confluent_kafka import Consumer, Producer, TopicPartition
address, strategy = sys.argv[1:]
settings = {
    "bootstrap.servers": address,
    "metadata.recovery.strategy": strategy,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 500,
    "log_level": 0,
    "error_cb": lambda _: None,
}
consumer = Consumer({"group.id": "group", **settings})
consumer.subscribe(["in"])
while not consumer.assignment():
    consumer.poll(0.1)
producer = Producer({"transactional.id": "job", "transaction.timeout.ms": 60_000, **settings})
producer.init_transactions(30)
for offset in range(2):
    producer.begin_transaction()
    producer.produce("in", b"", partition=0)
    at = [TopicPartition("in", 0, offset)]
    producer.send_offsets_to_transaction(at, consumer.consumer_group_metadata(), 5)
    producer.commit_transaction(30)
    print("committed", flush=True)
    if offset == 0:
        sys.stdin.readline()
"""

KAFKA = pytest.param("kafka", marks=pytest.mark.slow)


def ends(kind: str, strategy: str, directory: Path, patience_s: float) -> bool:
    """Two transactions with offsets, a kill of the broker between them: does the second one end?"""
    node = new_broker(kind, directory)
    process = None
    try:
        node.start()
        create_topic(node, "in", 1)
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, node.address, strategy],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "committed\n"
        node.kill()
        node.start()
        try:
            rest, _ = process.communicate("\n", timeout=patience_s)
        except subprocess.TimeoutExpired:
            return False
        assert process.returncode == 0
        return rest == "committed\n"
    finally:
        if process is not None:
            process.kill()
            process.communicate()
        node.kill()


@pytest.mark.parametrize("kind", ["varve", KAFKA])
def test_offsets_are_sent_after_a_restart(tmp_path: Path, kind: str) -> None:
    """What the broker answers lets a client go on that looks for the coordinator again."""
    assert ends(kind, LASTING["metadata.recovery.strategy"], tmp_path, 40)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["varve", "kafka"])
def test_a_client_that_bootstraps_again_hangs(tmp_path: Path, kind: str) -> None:
    """With both brokers alike; when this fails, librdkafka is mended and `LASTING` can go."""
    assert not ends(kind, "rebootstrap", tmp_path, 20)
