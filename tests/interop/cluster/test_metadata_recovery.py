"""etcd is emptied, or given back an old copy: brokers refuse it, and are led out of it.

Real processes, a real etcd whose data directory is exchanged, and real clients. What was
acknowledged before is there afterwards, on equal replicas.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.cluster.kinds import VarveCluster
from bench.cluster.replicas import wait_until_equal
from bench.etcd_server import EtcdServer
from tests.harness.etcd import etcd_or_skip

PARTITIONS = 3
RECORDS = 300
GROUP = "readers"
PROPERTIES = {
    "offsets.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "broker.session.timeout.ms": "2000",
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[VarveCluster]:
    etcd_or_skip()
    cluster = VarveCluster(tmp_path, PROPERTIES)
    cluster.start()
    yield cluster
    cluster.close()


def server(cluster: VarveCluster) -> EtcdServer:
    assert isinstance(cluster.etcd, EtcdServer)
    return cluster.etcd


def recover(cluster: VarveCluster, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "varve"), "cluster", "recover-metadata"]
    command.append(f"--to=etcd://{server(cluster).endpoint}")
    if not any(word.startswith("--dirs") for word in words):
        command += [f"--dirs={node.data_directory}" for node in cluster.nodes.values()]
    return subprocess.run([*command, *words], capture_output=True, text=True, timeout=120)


def create(cluster: VarveCluster, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    topics = [NewTopic(name, PARTITIONS, 3, config={"retention.ms": "777777"}) for name in names]
    for future in admin.create_topics(topics).values():
        future.result(60)
    cluster.wait_until_in_sync(names, partitions=PARTITIONS * len(names))


def write(cluster: VarveCluster, topic: str, first: int = 0) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
    for number in range(first, first + RECORDS):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(60) == 0


def commit(cluster: VarveCluster, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": GROUP})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def committed(cluster: VarveCluster, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": GROUP})
    (place,) = consumer.committed([TopicPartition(topic, 0)], timeout=60)
    consumer.close()
    return place.offset


def numbers(cluster: VarveCluster, topic: str, count: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "all"})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    found: list[int] = []
    deadline = time.monotonic() + 60
    while len(found) < count and time.monotonic() < deadline:
        for message in consumer.consume(500, timeout=0.5):
            assert message.error() is None
            value = message.value()
            assert value is not None
            found.append(int(value))
    consumer.close()
    return sorted(found)


def kill_all(cluster: VarveCluster) -> None:
    for node_id in cluster.nodes:
        cluster.kill(node_id)


def refused_start(cluster: VarveCluster, node_id: int) -> str:
    """The last line of a start that ends with status 1."""
    node = cluster.nodes[node_id]
    node.launch()
    process = node._process
    assert process is not None
    assert process.wait(60) == 1
    node.stop()
    return node.log_tail(1)


def start_all(cluster: VarveCluster) -> None:
    for node in cluster.nodes.values():
        node.launch()
    cluster.wait_for_all()


def test_an_emptied_store_is_rebuilt_from_directories(cluster: VarveCluster) -> None:
    """Topics keep ids, records, offsets; what is not known is said; twice is harmless."""
    create(cluster, "orders")
    write(cluster, "orders")
    commit(cluster, "orders", 42)
    kill_all(cluster)
    etcd = server(cluster)
    etcd.kill()
    shutil.rmtree(etcd.data)
    etcd.start()
    assert "recover-metadata" in refused_start(cluster, 1)
    first = next(iter(cluster.nodes.values()))
    partly = recover(cluster, f"--dirs={first.data_directory}", "--execute")
    assert partly.returncode == 1
    assert "the cluster has also brokers 2, 3, of which" in partly.stderr
    shown = recover(cluster)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "the store is empty" in shown.stdout
    assert "nothing was written" in shown.stdout
    assert "recover-metadata" in refused_start(cluster, 2)
    done = recover(cluster, "--execute")
    assert (done.returncode, done.stderr) == (0, "")
    again = recover(cluster, "--execute")
    assert "nothing to do" in again.stdout
    start_all(cluster)
    cluster.wait_until_in_sync()
    assert numbers(cluster, "orders", RECORDS) == list(range(RECORDS))
    assert committed(cluster, "orders") == 42
    write(cluster, "orders", RECORDS)
    assert numbers(cluster, "orders", 2 * RECORDS) == list(range(2 * RECORDS))
    wait_until_equal(cluster, "orders", PARTITIONS)


def test_an_old_copy_is_raised_above_what_the_logs_have(cluster: VarveCluster) -> None:
    """With elections, a topic made and one deleted since; brokers were running when it came."""
    create(cluster, "orders", "gone")
    write(cluster, "orders")
    etcd = server(cluster)
    etcd.kill()
    copy = etcd.data.with_name("copy")
    shutil.copytree(etcd.data, copy)
    etcd.start()
    cluster.wait_for_all()
    create(cluster, "later")
    write(cluster, "later")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.delete_topics(["gone"])["gone"].result(60)
    leader = cluster.leader_of("orders")
    cluster.kill(leader)
    write(cluster, "orders", RECORDS)
    cluster.restart(leader)
    cluster.wait_until_in_sync(["orders", "later"])
    time.sleep(1.0)
    etcd.kill()
    shutil.rmtree(etcd.data)
    shutil.copytree(copy, etcd.data)
    etcd.start()
    running = recover(cluster, "--execute")
    assert running.returncode == 1
    assert "another process" in running.stderr
    kill_all(cluster)
    assert "recover-metadata" in refused_start(cluster, leader)
    done = recover(cluster, "--execute")
    assert (done.returncode, done.stderr) == (0, "")
    assert "it was restored from a copy" in done.stdout
    assert "in the store, and in no directory" in done.stdout
    start_all(cluster)
    cluster.wait_until_in_sync(["orders", "later"])
    assert numbers(cluster, "orders", 2 * RECORDS) == list(range(2 * RECORDS))
    assert numbers(cluster, "later", RECORDS) == list(range(RECORDS))
    write(cluster, "orders", 2 * RECORDS)
    wait_until_equal(cluster, "orders", PARTITIONS)
    wait_until_equal(cluster, "later", PARTITIONS)
