"""`make cluster`: what its processes are given, and what it says when it cannot start."""

import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from bench import local_cluster
from bench.local_cluster import (
    LocalCluster,
    LocalClusterError,
    Places,
    again,
    banner,
    broker_command,
    etcd_command,
    main,
    run_broker,
    running_pid,
)
from bench.node import free_ports
from config.load import load


def places_in(directory: Path) -> Places:
    broker, admin, etcd = free_ports(3)
    return Places(directory, broker, admin, etcd)


def test_a_broker_is_given_settings_that_it_takes(tmp_path: Path) -> None:
    """Three replicas of everything, also of the internal topics; what is asked for wins."""
    command = broker_command(Places(tmp_path), 2, ["min.insync.replicas=1"])
    given = [word for flag, word in pairwise(command) if flag == "--set"]
    broker = load(assignments=given).broker
    assert (broker.node_id, str(broker.listeners[0])) == (2, "PLAINTEXT://127.0.0.1:9093")
    assert broker.log_dirs == (str(tmp_path / "broker-2"),)
    assert str(broker.metadata_store) == "etcd://127.0.0.1:2379"
    assert str(broker.admin_listener) == "127.0.0.1:9645"
    assert (broker.default_replication_factor, broker.min_insync_replicas) == (3, 1)
    assert broker.offsets_topic_replication_factor == 3
    assert broker.transaction_state_log_replication_factor == 3
    assert broker.share_coordinator_state_topic_replication_factor == 3


def test_remote_storage_is_in_a_directory_of_all_three(tmp_path: Path) -> None:
    """Asked for once, it stays on: topics may have their history there."""
    places = Places(tmp_path)
    assert "--remote" in banner(places)
    places.objects.mkdir()
    brokers = []
    for node_id in (1, 2):
        command = broker_command(places, node_id, [])
        given = [word for flag, word in pairwise(command) if flag == "--set"]
        brokers.append(load(assignments=given).broker)
    assert all(one.remote_log_storage_system_enable for one in brokers)
    assert {one.rsm_config_storage_root for one in brokers} == {str(tmp_path / "objects")}
    assert str(places.objects) in banner(places)


def test_members_of_etcd_name_each_other(tmp_path: Path) -> None:
    places = Places(tmp_path, etcd_members=3)
    commands = [etcd_command("etcd", places, number) for number in range(3)]
    clusters = {command[command.index("--initial-cluster") + 1] for command in commands}
    assert clusters == {
        "m1=http://127.0.0.1:2380,m2=http://127.0.0.1:2382,m3=http://127.0.0.1:2384"
    }
    assert places.etcd_endpoints == ["127.0.0.1:2379", "127.0.0.1:2381", "127.0.0.1:2383"]
    assert len(set(places.ports)) == len(places.ports) == 12


def test_the_banner_says_how_to_try_and_how_to_break_it(tmp_path: Path) -> None:
    text = banner(Places(tmp_path))
    for part in ("127.0.0.1:9094", "kill -9", "make cluster-broker ID=2", "Ctrl-C", "kcat -b"):
        assert part in text


def test_a_broker_is_started_again_where_its_cluster_is(tmp_path: Path) -> None:
    """The command is short for the cluster that `make cluster` starts, and whole for others."""
    usual = Places(local_cluster.DIRECTORY.absolute())
    assert again(usual, 2) == "make cluster-broker ID=2"
    other = Places(tmp_path, port=19092, etcd_members=3)
    assert again(other, 3) == (
        f'make cluster-broker ID=3 ARGS="--directory {tmp_path} --port 19092" ETCD_MEMBERS=3'
    )


def test_a_broker_is_started_again_with_the_settings_it_had(tmp_path: Path) -> None:
    usual = Places(local_cluster.DIRECTORY.absolute())
    given = ["num.partitions=3", "log.cleanup.policy=compact,delete"]
    command = f'make cluster-broker ID=2 ARGS="--set {given[0]} --set {given[1]}"'
    assert again(usual, 2, given) == command
    assert command in banner(usual, given)


def test_a_port_that_is_taken_is_named_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_cluster, "find_etcd", lambda: sys.executable)
    places = places_in(tmp_path)
    with socket.create_server(("127.0.0.1", places.port + 1)):
        cluster = LocalCluster(places, [], print)
        with pytest.raises(LocalClusterError, match=f":{places.port + 1} is in use"):
            cluster.start()
        cluster.stop()
    assert list(tmp_path.iterdir()) == []


def test_without_etcd_it_is_said_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(local_cluster, "find_etcd", lambda: None)
    assert main(["--directory", str(tmp_path)]) == 1
    assert "cluster: no etcd: " in capsys.readouterr().err


def test_a_process_that_does_not_start_is_quoted_and_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here etcd: a program that takes none of its options."""
    monkeypatch.setattr(local_cluster, "find_etcd", lambda: "/bin/false")
    waits = [sys.executable, "-c", "import time; time.sleep(600)"]
    monkeypatch.setattr(local_cluster, "broker_command", lambda *_: waits)
    cluster = LocalCluster(places_in(tmp_path), [], print)
    with pytest.raises(LocalClusterError, match="etcd-1 has ended"):
        cluster.start()
    cluster.stop()
    assert running_pid(Places(tmp_path), 1) is None


def test_a_broker_is_known_by_its_log_directory(tmp_path: Path) -> None:
    """A process id that was given away again is another program's."""
    places = Places(tmp_path)
    places.pid_file(1).write_text("1\n")
    assert running_pid(places, 1) is None
    argument = f"log.dirs={places.data(1)}"
    process = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()", "--set", argument],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        # While the kernel loads the program it has no arguments to show.
        assert process.stdout is not None
        process.stdout.readline()
        places.pid_file(1).write_text(f"{process.pid}\n")
        assert running_pid(places, 1) == process.pid
        with pytest.raises(LocalClusterError, match=f"runs already, as process {process.pid}"):
            run_broker(places, 1, [])
    finally:
        process.communicate(b"\n")
    assert running_pid(places, 1) is None


def test_one_broker_needs_the_cluster(tmp_path: Path) -> None:
    with pytest.raises(LocalClusterError, match="start the cluster first"):
        run_broker(places_in(tmp_path), 2, [])
