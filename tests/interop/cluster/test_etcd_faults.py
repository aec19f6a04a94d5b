"""etcd slow, hanging, paused, without a member, away, full: clients of the cluster go on.

While it lasts records are produced with acks=all and read, offsets are committed, and transactions
run, each by a thread that counts what succeeds and the longest time between two successes (shown
with `-s`). For etcd away as long as an operator may take: `VARVE_ETCD_AWAY_S=600`.
"""

import base64
import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.cluster.kinds import VarveCluster
from bench.etcd_server import EtcdCluster, EtcdServer
from bench.node import VarveNode
from tests.harness.etcd import etcd_or_skip

PARTITIONS = 3
SPREAD = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
AWAY_S = float(os.environ.get("VARVE_ETCD_AWAY_S", "12"))
FAULT_S = 8.0
QUOTA_BYTES = 16 << 20
LONGEST_GAP_S = 6.0
"""Below every fault's length: clients went on during it. On an idle machine it is below 2.5 s."""

LEAST = 30
"""Successes of each kind, from the beginning of the fault on."""

PROPERTIES = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "broker.session.timeout.ms": "2000",
}


class Worker(threading.Thread):
    """Does one thing again and again; notes when it succeeded."""

    def __init__(self, name: str, do: Callable[[], int]) -> None:
        super().__init__(name=name, daemon=True)
        self._do = do
        self._stopping = threading.Event()
        self.times: list[float] = []
        self.failures: list[str] = []

    def run(self) -> None:
        while not self._stopping.is_set():
            try:
                done = self._do()
            except Exception as error:  # noqa: BLE001  whatever it is, it is no success
                self.failures.append(str(error))
                time.sleep(0.05)
                continue
            self.times += [time.monotonic()] * done
            time.sleep(0.005)

    def stop(self) -> None:
        self._stopping.set()
        self.join(60)
        assert not self.is_alive(), f"{self.name} hangs"

    def between(self, begin: float, end: float) -> tuple[int, float]:
        """How many successes there were, and the longest time without one."""
        inside = [one for one in self.times if begin <= one <= end]
        edges = [begin, *inside, end]
        return len(inside), max(b - a for a, b in pairwise(edges))


class Traffic:
    """Four kinds of clients at once."""

    def __init__(self, bootstrap: str, number: int) -> None:
        self._plain = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self._sender = Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": f"sender-{number}"}
        )
        self._sender.init_transactions(60)
        self._reader = Consumer({"bootstrap.servers": bootstrap, "group.id": f"reader-{number}"})
        self._reader.assign([TopicPartition("t", index, 0) for index in range(PARTITIONS)])
        self._committer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": f"committer-{number}"}
        )
        self._count = 0
        self.workers = [
            Worker("produce", self._produce),
            Worker("read", self._read),
            Worker("commit", self._commit),
            Worker("transaction", self._transaction),
        ]

    def _produce(self) -> int:
        self._count += 1
        self._plain.produce("t", b"%d" % self._count, partition=self._count % PARTITIONS)
        if self._plain.flush(20):
            raise TimeoutError("not delivered in 20 s")
        return 1

    def _read(self) -> int:
        return sum(message.error() is None for message in self._reader.consume(100, timeout=0.2))

    def _commit(self) -> int:
        self._committer.commit(offsets=[TopicPartition("t", 0, self._count)], asynchronous=False)
        return 1

    def _transaction(self) -> int:
        self._sender.begin_transaction()
        self._sender.produce("t", b"transaction", partition=0)
        self._sender.commit_transaction(30)
        return 1

    def stop(self) -> None:
        for worker in self.workers:
            worker.stop()
        self._reader.close()
        self._committer.close()


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VarveCluster]:
    yield from running(tmp_path_factory.mktemp("members"), etcd_members=3)


def running(directory: Path, *, etcd_members: int, quota_bytes: int = 0) -> Iterator[VarveCluster]:
    etcd_or_skip()
    cluster = VarveCluster(directory, PROPERTIES, etcd_members=etcd_members)
    if quota_bytes:
        assert isinstance(cluster.etcd, EtcdServer)
        cluster.etcd.arguments = (f"--quota-backend-bytes={quota_bytes}",)
    try:
        cluster.start()
        cluster.create_topic("t", SPREAD)
        yield cluster
    finally:
        cluster.close()


def etcd_cluster(cluster: VarveCluster) -> EtcdCluster:
    assert isinstance(cluster.etcd, EtcdCluster)
    return cluster.etcd


def leader(cluster: VarveCluster) -> EtcdServer:
    found = None
    deadline = time.monotonic() + 60
    while found is None and time.monotonic() < deadline:
        found = etcd_cluster(cluster).leader
    assert found is not None
    return found


_numbers = iter(range(1_000))


@contextmanager
def traffic(cluster: VarveCluster) -> Iterator[Callable[[], None]]:
    """Clients at work; call what it gives when the fault begins. At its end they are judged."""
    clients = Traffic(cluster.bootstrap, next(_numbers))
    for worker in clients.workers:
        worker.start()
    deadline = time.monotonic() + 60
    while not all(worker.times for worker in clients.workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    begun: list[float] = []
    try:
        yield lambda: begun.append(time.monotonic())
        end = time.monotonic()
    finally:
        clients.stop()
    for worker in clients.workers:
        count, gap = worker.between(begun[0], end)
        took = end - begun[0]
        sys.stderr.write(f"{worker.name}: {count} in {took:.1f} s, gap {gap * 1000:.0f} ms\n")
    for worker in clients.workers:
        count, gap = worker.between(begun[0], end)
        assert count >= LEAST, f"{worker.name}: {count}, {worker.failures[-3:]}"
        assert gap < LONGEST_GAP_S, f"{worker.name}: {gap:.1f} s, {worker.failures[-3:]}"


def test_the_leading_member_hangs_and_wakes(members: VarveCluster) -> None:
    """Awake again it may end leases that are kept elsewhere: no leader moves for it."""
    with traffic(members) as begins:
        hanging = leader(members)
        begins()
        hanging.pause()
        time.sleep(FAULT_S)
        hanging.resume()
        time.sleep(FAULT_S)
    members.wait_until_in_sync(["t"])


def test_the_leading_member_is_killed(members: VarveCluster) -> None:
    with traffic(members) as begins:
        dead = leader(members)
        begins()
        dead.kill()
        time.sleep(FAULT_S)
        dead.start()
        time.sleep(FAULT_S)
    members.wait_until_in_sync(["t"])


def test_all_members_are_slow(members: VarveCluster) -> None:
    """Each stands still for 0.3 of every 0.4 seconds."""
    with traffic(members) as begins:
        begins()
        end = time.monotonic() + FAULT_S
        while time.monotonic() < end:
            for member in etcd_cluster(members).members:
                member.pause()
            time.sleep(0.3)
            for member in etcd_cluster(members).members:
                member.resume()
            time.sleep(0.1)
        time.sleep(2.0)
    members.wait_until_in_sync(["t"])


def test_all_members_are_paused_beyond_the_leases(members: VarveCluster) -> None:
    """As when a machine is frozen: when they wake, all leases may be gone at once."""
    with traffic(members) as begins:
        begins()
        for member in etcd_cluster(members).members:
            member.pause()
        time.sleep(FAULT_S)
        for member in etcd_cluster(members).members:
            member.resume()
        time.sleep(FAULT_S)
    members.wait_until_in_sync(["t"])


def test_all_of_it_is_away(members: VarveCluster) -> None:
    """No lease can end, as nobody is there to end it; back again, no broker is fenced."""
    with traffic(members) as begins:
        begins()
        for member in etcd_cluster(members).members:
            member.kill()
        time.sleep(AWAY_S)
        for member in etcd_cluster(members).members:
            member.start()
        time.sleep(FAULT_S)
    members.wait_until_in_sync(["t"])


@pytest.fixture
def small(tmp_path: Path) -> Iterator[VarveCluster]:
    yield from running(tmp_path, etcd_members=1, quota_bytes=QUOTA_BYTES)


def test_its_disk_is_full(small: VarveCluster) -> None:
    """Writes are refused, leases go on; with room again, topics can be created."""
    admin = AdminClient({"bootstrap.servers": small.bootstrap})
    with traffic(small) as begins:
        begins()
        fill(small)
        refused = admin.create_topics([NewTopic("late", 1, 3)], request_timeout=5)["late"]
        with pytest.raises(KafkaException):
            refused.result(20)
        assert alerts(small) == ["metadata-store-full"], "of the controller alone"
        time.sleep(FAULT_S)
    make_room(small)
    small.wait_until("a topic can be created", lambda: created(admin), timeout_s=60)
    assert alerts(small) == []
    small.wait_until_in_sync(["t", "late"])


def alerts(cluster: VarveCluster) -> list[str]:
    """Kinds of all that `/readyz` lists, of all brokers."""
    found: list[str] = []
    for node in cluster.nodes.values():
        assert isinstance(node, VarveNode)
        with urllib.request.urlopen(f"http://{node.admin_address}/readyz", timeout=20) as answer:
            lines = answer.read().decode().splitlines()
        found += [line.partition(":")[0] for line in lines[1:]]
    return found


def created(admin: AdminClient) -> bool:
    try:
        admin.create_topics([NewTopic("late", 1, 3)], request_timeout=5)["late"].result(20)
    except KafkaException as error:
        return "TOPIC_ALREADY_EXISTS" in str(error)
    return True


def ask(cluster: VarveCluster, call: str, body: Mapping[str, object]) -> bytes:
    """Etcd's JSON gateway, which only tests use."""
    assert isinstance(cluster.etcd, EtcdServer)
    url = f"http://{cluster.etcd.endpoint}/v3/{call}"
    with urllib.request.urlopen(url, json.dumps(body).encode(), timeout=20) as answer:
        found: bytes = answer.read()
    return found


def fill(cluster: VarveCluster) -> None:
    """Write beside the cluster's keys until etcd raises its alarm."""
    value = base64.b64encode(os.urandom(1 << 20)).decode()
    for number in range(2 * QUOTA_BYTES >> 20):
        key = base64.b64encode(b"/junk/%d" % number).decode()
        try:
            ask(cluster, "kv/put", {"key": key, "value": value})
        except urllib.error.HTTPError as error:
            text = error.read()
            if b"space exceeded" not in text:
                raise
            return
    raise AssertionError("etcd took more than its quota")


def make_room(cluster: VarveCluster) -> None:
    """As etcd's documentation has it: delete, compact, defragment, disarm."""
    end = base64.b64encode(b"/junk0").decode()
    first = base64.b64encode(b"/junk/").decode()
    found = json.loads(ask(cluster, "kv/deleterange", {"key": first, "range_end": end}))
    ask(cluster, "kv/compaction", {"revision": found["header"]["revision"], "physical": True})
    ask(cluster, "maintenance/defragment", {})
    for alarm in json.loads(ask(cluster, "maintenance/alarm", {"action": "GET"}))["alarms"]:
        ask(cluster, "maintenance/alarm", {**alarm, "action": "DEACTIVATE"})
