"""`make cluster` as a newcomer uses it: a broker is killed under load, and started again.

With an unmodified client: librdkafka creates the topic, produces with acks=all, and reads.
"""

import contextlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.cluster.state import PartitionState, cluster_state
from bench.local_cluster import BROKERS, Places, is_ready, running_pid
from bench.node import REPOSITORY, free_ports
from tests.harness.etcd import etcd_or_skip

TOPIC = "t"
PARTITIONS = 3
WAIT_S = 60.0


def places_in(directory: Path) -> Places:
    """Where all its ports are free: each kind has three in a row from one that was given."""
    while True:
        places = Places(directory, *free_ports(3))
        if len(set(places.ports)) == len(places.ports) and all(map(is_free, places.ports)):
            return places


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Local:
    """The command, its broker in another terminal, and what the cluster says."""

    def __init__(self, directory: Path) -> None:
        self.places = places_in(directory / "data")
        self.output = directory / "output"
        self._process: subprocess.Popen[bytes] | None = None
        self._again: list[subprocess.Popen[bytes]] = []

    def _command(self, *more: str) -> list[str]:
        places = self.places
        return [
            *(sys.executable, "-m", "bench.local_cluster", "--directory", str(places.directory)),
            *("--port", str(places.port), "--admin-port", str(places.admin_port)),
            *("--etcd-port", str(places.etcd_port), *more),
        ]

    def start(self) -> None:
        with self.output.open("wb") as output:
            self._process = subprocess.Popen(
                self._command(), stdout=output, stderr=subprocess.STDOUT, cwd=REPOSITORY
            )
        self.wait(lambda: "Ctrl-C" in self.text or self._process_ended())
        assert "Ctrl-C" in self.text, self.text

    def _process_ended(self) -> bool:
        assert self._process is not None
        return self._process.poll() is not None

    @property
    def text(self) -> str:
        return self.output.read_text()

    @property
    def bootstrap(self) -> str:
        return ",".join(self.places.address(node_id) for node_id in range(1, BROKERS + 1))

    def kill(self, node_id: int) -> None:
        """As the banner says."""
        command = f"kill -9 $(cat {self.places.pid_file(node_id)})"
        subprocess.run(["/bin/sh", "-c", command], check=True)

    def start_again(self, node_id: int) -> None:
        with (self.places.directory / f"again-{node_id}.log").open("wb") as log:
            self._again.append(
                subprocess.Popen(
                    self._command("--broker", str(node_id)),
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=REPOSITORY,
                )
            )
        self.wait(lambda: is_ready(self.places.admin(node_id)))

    def partitions(self) -> dict[int, PartitionState]:
        """As the first broker says that answers."""
        for node_id in range(1, BROKERS + 1):
            host, _, port = self.places.address(node_id).rpartition(":")
            with (
                contextlib.suppress(OSError),
                socket.create_connection((host, int(port)), 5) as one,
            ):
                return {p.index: p for p in cluster_state(one, [TOPIC]).partitions}
        raise AssertionError("no broker answers")

    def end(self) -> int:
        """Ctrl-C; the exit status."""
        assert self._process is not None
        process, self._process = self._process, None
        process.send_signal(signal.SIGINT)
        status = process.wait(WAIT_S)
        for one in self._again:
            assert one.wait(WAIT_S) == 0
        return status

    def close(self) -> None:
        for process in (self._process, *self._again):
            if process is not None and process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(WAIT_S)

    @staticmethod
    def wait(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, "it did not happen"
            time.sleep(0.05)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[Local]:
    etcd_or_skip()
    local = Local(tmp_path)
    yield local
    local.close()


class Load:
    """A producer that goes on all the time, and what was acknowledged to it."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all"}
        )
        self.sent = 0
        self.acked: set[tuple[int, int, bytes]] = set()
        self.errors: list[str] = []

    def run(self, duration_s: float) -> None:
        deadline = time.monotonic() + duration_s
        while time.monotonic() < deadline:
            value = b"%d" % self.sent
            self._producer.produce(
                TOPIC, value, partition=self.sent % PARTITIONS, callback=self._delivered
            )
            self.sent += 1
            self._producer.poll(0.005)

    def run_until(self, condition: Callable[[], bool]) -> None:
        """Go on until it is so."""
        deadline = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < deadline, "it did not happen"
            self.run(0.1)

    def finish(self) -> None:
        assert self._producer.flush(WAIT_S) == 0

    def _delivered(self, error: object, message: Message) -> None:
        if error is not None:
            self.errors.append(str(error))
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert value is not None
        self.acked.add((partition, offset, value))


def read_all(bootstrap: str, count: int) -> list[tuple[int, int, bytes]]:
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": "readers",
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(settings)
    consumer.subscribe([TOPIC])
    found: list[tuple[int, int, bytes]] = []
    deadline = time.monotonic() + WAIT_S
    try:
        while len(found) < count and time.monotonic() < deadline:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                partition, offset, value = message.partition(), message.offset(), message.value()
                assert partition is not None
                assert offset is not None
                assert value is not None
                found.append((partition, offset, value))
    finally:
        consumer.close()
    return found


def is_led_without(local: Local, victim: int) -> bool:
    """Whether others lead all."""
    return all(one.leader not in (victim, -1) for one in local.partitions().values())


def test_a_newcomer_kills_a_leader_and_nothing_is_lost(local: Local) -> None:
    local.start()
    # Neither replicas nor min.insync.replicas are said: the brokers' are 3 and 2.
    admin = AdminClient({"bootstrap.servers": local.bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(WAIT_S)
    local.wait(lambda: len(local.partitions()) == PARTITIONS)
    assert {len(one.replicas) for one in local.partitions().values()} == {3}
    load = Load(local.bootstrap)
    load.run(1.0)
    victim = local.partitions()[0].leader
    local.kill(victim)
    load.run_until(lambda: is_led_without(local, victim))
    # What was on its way when the leader died is acknowledged by the next, and more after it.
    sent_meanwhile = load.sent
    load.run_until(lambda: len(load.acked) > sent_meanwhile)
    local.wait(lambda: f"start it again: make cluster-broker ID={victim}" in local.text)
    local.start_again(victim)
    local.wait(lambda: all(one.is_in_sync for one in local.partitions().values()))
    load.finish()
    assert load.errors == []
    assert len(load.acked) == load.sent
    found = read_all(local.bootstrap, load.sent)
    assert len(found) == load.sent
    assert set(found) == load.acked
    assert local.end() == 0
    assert all(running_pid(local.places, node_id) is None for node_id in range(1, BROKERS + 1))
