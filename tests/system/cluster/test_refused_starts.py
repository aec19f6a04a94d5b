"""What `varve serve` says, in one line, when it must not be a broker of the cluster it names."""

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.etcd_server import EtcdServer
from bench.node import VarveNode, free_ports
from bench.wire import cluster_brokers, init_producer_id
from broker.controller.images.metadata_records import PRODUCER_IDS_KEY
from storage.checkpoints.meta_properties import META_PROPERTIES
from tests.harness.etcd import enable_authentication, etcd_or_skip

SETTINGS = {"broker.session.timeout.ms": "2000"}


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdServer]:
    server = EtcdServer(etcd_or_skip(), tmp_path)
    server.start()
    yield server
    server.kill()


@pytest.fixture
def first(etcd: EtcdServer, tmp_path: Path) -> Iterator[VarveNode]:
    """Broker 1 of the cluster, serving."""
    node = node_of(etcd, tmp_path / "first")
    node.start()
    yield node
    node.stop()


def node_of(etcd: EtcdServer, directory: Path, **properties: str) -> VarveNode:
    given = {key.replace("_", "."): value for key, value in properties.items()}
    store = {"metadata.store": f"etcd://{etcd.endpoint}"}
    return VarveNode(directory, {**SETTINGS, **store, **given})


def refusal_of(node: VarveNode) -> str:
    """The one line that a start which is refused prints."""
    result = subprocess.run(node.command(), capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1, result
    said = [
        line
        for line in (result.stdout + result.stderr).splitlines()
        if not line.startswith("time=")
    ]
    assert len(said) == 1, said
    assert "Traceback" not in result.stderr
    return said[0]


def wait_for_block(etcd: EtcdServer) -> None:
    """Until a block of producer ids was taken: a broker serves a moment earlier."""
    key = base64.b64encode(f"/varve/{PRODUCER_IDS_KEY}".encode()).decode()
    body = json.dumps({"key": key}).encode()
    deadline = time.monotonic() + 60
    while True:
        # By etcd's JSON gateway, which only tests use.
        url = f"http://{etcd.endpoint}/v3/kv/range"
        with urllib.request.urlopen(url, body, timeout=20) as answer:
            if json.loads(answer.read()).get("kvs"):
                return
        assert time.monotonic() < deadline, "no producer ids are taken"
        time.sleep(0.05)


def test_a_second_broker_of_one_id(etcd: EtcdServer, first: VarveNode, tmp_path: Path) -> None:
    second = node_of(etcd, tmp_path / "second")
    said = refusal_of(second)
    assert said.startswith("varve: DUPLICATE_BROKER_REGISTRATION: a broker 1 is registered")
    assert first.address in said
    assert not (second.data_directory / META_PROPERTIES).exists()
    first.check_alive()
    with first.connect():
        pass


def test_a_copy_of_a_log_directory_that_is_in_use(
    etcd: EtcdServer, first: VarveNode, tmp_path: Path
) -> None:
    """It names the same broker and the same directory: the one that runs goes on."""
    copy = node_of(etcd, tmp_path / "copy")
    shutil.copytree(first.data_directory, copy.data_directory)
    assert refusal_of(copy).startswith("varve: DUPLICATE_BROKER_REGISTRATION: a broker 1 is")
    first.check_alive()
    with first.connect() as connection:
        assert cluster_brokers(connection) == {1: ("127.0.0.1", int(first.address.split(":")[1]))}


def test_a_first_producer_id_while_etcd_is_away(etcd: EtcdServer, first: VarveNode) -> None:
    """The broker took a block of them when it joined."""
    wait_for_block(etcd)
    with first.connect() as connection:
        # What came from etcd before this request has been taken in when it is answered.
        cluster_brokers(connection)
        etcd.kill()
        ids = [init_producer_id(connection)[0] for _ in range(3)]
    assert len(set(ids)) == 3
    assert min(ids) >= 0
    etcd.start()


def test_a_broker_of_another_cluster(etcd: EtcdServer, first: VarveNode, tmp_path: Path) -> None:
    """Its directories name another store: here, another prefix of the same etcd."""
    other = node_of(etcd, tmp_path / "other", metadata_store_prefix="/other/")
    other.start()
    assert other.stop() == 0
    before = (other.data_directory / META_PROPERTIES).read_bytes()
    del other.properties["metadata.store.prefix"]
    other.properties["node.id"] = "2"
    assert "belongs to another metadata store" in refusal_of(other)
    assert (other.data_directory / META_PROPERTIES).read_bytes() == before


def test_a_cluster_id_that_contradicts(etcd: EtcdServer, first: VarveNode, tmp_path: Path) -> None:
    wanted = "4L6g3nShT-eMCtK--X86sw"
    second = node_of(etcd, tmp_path / "second", cluster_id=wanted, node_id="2")
    said = refusal_of(second)
    assert said.startswith("varve: the metadata store belongs to cluster ")
    assert said.endswith(f", not to {wanted}")


def test_directories_of_a_node_that_was_alone(etcd: EtcdServer, tmp_path: Path) -> None:
    alone = VarveNode(tmp_path / "alone")
    alone.start()
    assert alone.stop() == 0
    alone.properties |= {"metadata.store": f"etcd://{etcd.endpoint}"}
    assert "is the metadata store of a node that was alone" in refusal_of(alone)
    del alone.properties["metadata.store"]
    alone.start()
    assert alone.stop() == 0


def test_a_store_that_lets_nobody_in_is_no_store_that_is_away(
    etcd: EtcdServer, tmp_path: Path
) -> None:
    """A user whom etcd does not know is refused; nothing to wait for."""
    enable_authentication(etcd.endpoint)
    password = tmp_path / "password"
    password.write_text("secret\n")
    node = node_of(
        etcd,
        tmp_path / "node",
        metadata_store_username="varve",
        metadata_store_password_file=str(password),
    )
    said = refusal_of(node)
    assert "authentication failed, invalid user ID or password" in said
    assert "secret" not in said


def test_sigterm_ends_a_start_that_waits_for_etcd(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    node = VarveNode(tmp_path / "node", {"metadata.store": f"etcd://127.0.0.1:{port}"})
    node.launch()
    host, _, admin = node.admin_address.rpartition(":")
    while True:
        node.check_alive()
        try:
            socket.create_connection((host, int(admin)), 1).close()
            break
        except OSError:
            continue
    assert node.stop() == 0
    assert "ERROR" not in node.log_path.read_text()
