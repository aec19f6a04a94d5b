"""`make cluster`: what its processes are given, and what it says when it cannot start."""

import contextlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from bench import local_cluster
from bench.local_cluster import (
    STOPPED_S,
    LocalCluster,
    LocalClusterError,
    Places,
    StopRequests,
    again,
    banner,
    broker_command,
    etcd_command,
    main,
    run_broker,
    running_pid,
    running_processes,
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


@contextlib.contextmanager
def running_with(argument: str) -> Iterator[int]:
    """A process with such an argument; its id."""
    process = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()", "--set", argument],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        # While the kernel loads the program it has no arguments to show.
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
    finally:
        process.communicate(b"\n")


def test_a_cluster_that_runs_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also one on other ports: neither its process ids nor its remote storage change."""
    monkeypatch.setattr(local_cluster, "find_etcd", lambda: sys.executable)
    places = places_in(tmp_path)
    ports = ["--port", str(places.port), "--admin-port", str(places.admin_port)]
    words = ["--directory", str(tmp_path), *ports, "--etcd-port", str(places.etcd_port)]
    with (
        running_with(f"log.dirs={places.data(2)}") as broker,
        running_with(str(places.etcd_data(0))) as etcd,
    ):
        places.pid_file(2).write_text(f"{broker}\n")
        places.etcd_pid_file(0).write_text(f"{etcd}\n")
        before = sorted(tmp_path.iterdir())
        assert main([*words, "--remote"]) == 1
        said = capsys.readouterr().err
        assert f"runs already (broker 2 is process {broker}, etcd 1 is process {etcd})" in said
        assert f"kill {broker} {etcd}" in said
        assert sorted(tmp_path.iterdir()) == before
        assert running_pid(places, 2) == broker
    assert running_processes(places) == {}


@pytest.mark.parametrize(("there", "wanted"), [(1, 3), (3, 1)])
def test_data_of_another_number_of_etcds_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: int, wanted: int
) -> None:
    monkeypatch.setattr(local_cluster, "find_etcd", lambda: sys.executable)
    places = places_in(tmp_path)._replace(etcd_members=wanted)
    for number in range(there):
        places.etcd_data(number).mkdir()
    with pytest.raises(LocalClusterError, match=f"are of {there} servers of etcd.*={there},"):
        LocalCluster(places, [], print).start()


def test_one_broker_alone_gets_no_remote_storage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--directory", str(tmp_path), "--broker", "2", "--remote"])
    assert "--remote is of all brokers" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def deaf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[LocalCluster, StopRequests]:
    """A cluster whose processes never serve, and do not hear SIGTERM."""
    program = tmp_path / "deaf"
    program.write_text("#!/bin/sh\ntrap '' TERM\necho deaf\nexec sleep 600\n")
    program.chmod(0o700)
    monkeypatch.setattr(local_cluster, "find_etcd", lambda: str(program))
    monkeypatch.setattr(local_cluster, "broker_command", lambda *_: [str(program)])
    requests = StopRequests()
    return LocalCluster(places_in(tmp_path), [], print, requests), requests


def test_ctrl_c_ends_a_start_and_a_second_one_what_has_not_ended(
    deaf: tuple[LocalCluster, StopRequests], tmp_path: Path
) -> None:
    cluster, requests = deaf
    requests.add()
    began = time.monotonic()
    cluster.start()
    assert cluster.watch() == 0
    names = ("etcd-1", "broker-1", "broker-2", "broker-3")
    while any((tmp_path / f"{name}.log").read_text() != "deaf\n" for name in names):
        assert time.monotonic() < began + STOPPED_S
    requests.add()
    cluster.stop()
    assert time.monotonic() < began + STOPPED_S
    for name in names:
        pid = int((tmp_path / f"{name}.pid").read_text())
        assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_that_end_it(number: signal.Signals) -> None:
    """The end of the terminal too, whose processes would stay for good without it."""
    before = signal.getsignal(number)
    requests = StopRequests()
    with requests.by_signals():
        signal.raise_signal(number)
        assert (requests.stop.is_set(), requests.at_once.is_set()) == (True, False)
        signal.raise_signal(number)
        assert requests.at_once.is_set()
    assert signal.getsignal(number) == before


def test_under_nohup_the_end_of_the_terminal_ends_nothing() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    requests = StopRequests()
    try:
        with requests.by_signals():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert not requests.stop.is_set()


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
    with running_with(f"log.dirs={places.data(1)}") as pid:
        places.pid_file(1).write_text(f"{pid}\n")
        assert running_pid(places, 1) == pid
        with pytest.raises(LocalClusterError, match=f"runs already, as process {pid}"):
            run_broker(places, 1, [])
    assert running_pid(places, 1) is None


def test_one_broker_needs_the_cluster(tmp_path: Path) -> None:
    with pytest.raises(LocalClusterError, match="start the cluster first"):
        run_broker(places_in(tmp_path), 2, [])
