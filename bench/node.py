"""A broker as a process: started on free loopback ports, found ready, stopped or killed.

`VarveNode` and `KafkaNode` have one shape, so every test and every row runs on both. `RunningNode`
stands for a broker that runs already.
"""

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path

from typing_extensions import override

from bench import wire
from bench.kafka_release import KAFKA_HEAP, START_OPTIONS, KafkaRelease, KafkaReleaseError
from bench.process import LOOPBACK, Host, pause, pin

REPOSITORY = Path(__file__).resolve().parent.parent


class NodeError(RuntimeError):
    """A broker did not start, did not answer or did not stop; the text ends with its log."""


class NodeEndedError(NodeError):
    """A broker's process is gone; the text ends with its log."""


_EPHEMERAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST_PORT = 10_000

# Descriptors of sockets that have a name but no file: it goes with the process. The oldest are let
# go first; by then their ports are in use, or never will be.
_reservations: deque[int] = deque()
_RESERVATIONS_MAX = 16


def free_ports(count: int) -> list[int]:
    """Loopback ports for processes to come, all different, not given away a second time.

    The kernel would give them to another process before such a process listens, or between its
    death and its next start: so none that the kernel gives away by itself, and none that another
    process has from here.
    """
    try:
        highest = int(_EPHEMERAL_PORTS.read_text().split()[0]) - 1
    except (OSError, ValueError):
        highest = 0
    found: list[int] = []
    if highest - _LOWEST_PORT < 1_000:
        with contextlib.ExitStack() as stack:
            for _ in range(count):
                one = stack.enter_context(socket.socket())
                one.bind(("127.0.0.1", 0))
                found.append(one.getsockname()[1])
        return found
    while len(found) < count:
        # A seeded run wants the same inputs, not the same ports.
        port = _LOWEST_PORT + secrets.randbelow(highest - _LOWEST_PORT + 1)
        if _reserve(port):
            found.append(port)
    return found


def free_port_range(count: int) -> int:
    """The first of `count` consecutive ports, as `free_ports` gives single ones."""
    for _ in range(1_000):
        (first,) = free_ports(1)
        if all(map(_reserve, range(first + 1, first + count))):
            return first
    raise NodeError(f"no {count} consecutive ports are free")


def _reserve(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    reservation = socket.socket(socket.AF_UNIX)
    try:
        reservation.bind(f"\0varve-bench-port-{port}")
    except OSError:
        reservation.close()
        return False
    _reservations.append(reservation.detach())
    if len(_reservations) > _RESERVATIONS_MAX:
        os.close(_reservations.popleft())
    return True


class Node:
    """What rows and tests need of a broker: where it listens, which process it is."""

    name = "broker"
    host = "127.0.0.1"
    port: int
    pid: int

    @property
    def address(self) -> str:
        """`host:port` of the client listener."""
        return f"{self.host}:{self.port}"

    def connect(self, timeout_s: float = 30.0, *, port: int | None = None) -> socket.socket:
        """A blocking client socket with Nagle's algorithm off; `port`: another broker's here."""
        address = (self.host, self.port if port is None else port)
        connection = socket.create_connection(address, timeout=timeout_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def wait_until_ready(self, timeout_s: float = 120.0) -> float:
        """Wait for the first good Metadata answer; returns how many seconds that took."""
        begin = time.monotonic()
        while True:
            try:
                with self.connect(timeout_s=5.0) as connection:
                    if wire.cluster_brokers(connection):
                        return time.monotonic() - begin
            except (OSError, wire.WireError):
                pass
            self.check_alive()
            if time.monotonic() - begin > timeout_s:
                raise NodeError(f"{self.name} gave no Metadata answer in {timeout_s} s")
            time.sleep(0.005)

    def check_alive(self) -> None:
        """Raise when the process is gone."""
        if not Path(f"/proc/{self.pid}").exists():
            raise NodeEndedError(f"{self.name}: no process {self.pid}")


class RunningNode(Node):
    """A broker that is not ours to start or stop."""

    def __init__(self, name: str, address: str, pid: int) -> None:
        self.name = name
        host, _, port = address.rpartition(":")
        self.host, self.port, self.pid = host, int(port), pid


class OwnedNode(Node):
    """A broker process of ours; its standard output goes to `log_path`."""

    def __init__(
        self,
        directory: Path,
        properties: Mapping[str, str] | None = None,
        *,
        cores: frozenset[int] | None = None,
        host: Host = LOOPBACK,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.host, self._prefix = host
        self.directory = directory
        self.data_directory = directory / "data"
        self.log_path = directory / "broker.log"
        self.properties = dict(properties or {})
        self.cores = cores
        self.port, self.second_port = free_ports(2)
        self._process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        """The command line that starts the broker."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """The environment the broker runs in."""
        return dict(os.environ)

    def prepare(self) -> None:
        """What has to happen once before the first start."""

    def launch(self) -> None:
        """Start the process and return at once."""
        self.prepare()
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._prefix, *self.command()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment(),
                cwd=REPOSITORY,
            )
        self.pid = self._process.pid
        if self.cores is not None:
            pin(self.pid, self.cores)

    def start(self, timeout_s: float = 120.0) -> float:
        """Start and wait for the first Metadata answer; returns the seconds in between."""
        begin = time.monotonic()
        self.launch()
        self.wait_until_ready(timeout_s)
        return time.monotonic() - begin

    @override
    def check_alive(self) -> None:
        if self._process is None or self._process.poll() is not None:
            code = None if self._process is None else self._process.returncode
            raise NodeEndedError(f"{self.name} is not running (exit {code}):\n{self.log_tail()}")

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self._process is not None and self._process.poll() is None

    def log_tail(self, lines: int = 40) -> str:
        """The last lines the broker printed."""
        if not self.log_path.exists():
            return ""
        return "\n".join(self.log_path.read_text(errors="replace").splitlines()[-lines:])

    def terminate(self) -> None:
        """SIGTERM, without waiting for the end; harmless when it does not run."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def pause(self) -> None:
        """SIGSTOP: the kernel accepts connections for it, and nothing answers."""
        pause(self.pid)

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def stop(self, timeout_s: float = 60.0) -> int:
        """SIGTERM, then wait; returns the exit code."""
        return self._end(signal.SIGTERM, timeout_s)

    def kill(self) -> None:
        """SIGKILL: what a crash of the process looks like."""
        self._end(signal.SIGKILL, 30.0)

    def _end(self, number: signal.Signals, timeout_s: float) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(number)
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise NodeError(
                f"{self.name} did not stop within {timeout_s} s:\n{self.log_tail()}"
            ) from None


class VarveNode(OwnedNode):
    """`varve serve` with a data directory of its own."""

    name = "varve"

    @override
    def command(self) -> list[str]:
        settings = {
            "listeners": f"PLAINTEXT://{self.address}",
            "admin.listener": self.admin_address,
            "log.dirs": str(self.data_directory),
            **self.properties,
        }
        pairs = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        return [str(Path(sys.executable).parent / "varve"), "serve", *pairs]

    @override
    def environment(self) -> dict[str, str]:
        # An installed package has its bytecode; a developer's shell may forbid to keep it.
        return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    @property
    def admin_address(self) -> str:
        """`host:port` of the admin listener."""
        return f"{self.host}:{self.second_port}"


class VarveBrokersNode(VarveNode):
    """`varve serve --brokers 2`: brokers with consecutive ports, one supervisor over them.

    `port` is the first broker's; clients are shown the others. The process is the supervisor's, and
    cost and memory are those of its tree.
    """

    brokers = 2

    def __init__(
        self,
        directory: Path,
        properties: Mapping[str, str] | None = None,
        *,
        cores: frozenset[int] | None = None,
    ) -> None:
        super().__init__(directory, properties, cores=cores)
        # One admin port for each broker behind the supervisor's.
        self.port = free_port_range(self.brokers)
        self.second_port = free_port_range(self.brokers + 1)

    @override
    def command(self) -> list[str]:
        program, serve, *settings = super().command()
        return [program, serve, "--brokers", str(self.brokers), *settings]


class KafkaNode(OwnedNode):
    """One released Kafka process that is broker and controller (KRaft)."""

    name = "kafka"

    def __init__(
        self,
        directory: Path,
        properties: Mapping[str, str] | None = None,
        *,
        cores: frozenset[int] | None = None,
        host: Host = LOOPBACK,
        heap: tuple[str, ...] = KAFKA_HEAP,
        release: KafkaRelease | None = None,
    ) -> None:
        super().__init__(directory, properties, cores=cores, host=host)
        self.release = KafkaRelease.resolve() if release is None else release
        self.heap = heap

    @property
    def voter(self) -> str:
        """`host:port` of the controller in it."""
        return f"{self.host}:{self.second_port}"

    @property
    def _properties_path(self) -> Path:
        return self.directory / "server.properties"

    @override
    def prepare(self) -> None:
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://{self.voter}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{self.voter}",
            "log.dirs": str(self.data_directory),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **self.properties,
        }
        lines = "".join(f"{key}={value}\n" for key, value in settings.items())
        self._properties_path.write_text(lines)
        if not (self.data_directory / "meta.properties").exists():
            self.release.format_storage(self._properties_path)

    @override
    def command(self) -> list[str]:
        return [
            self.release.java,
            *self.heap,
            *START_OPTIONS,
            *self.release.logging_options,
            "-cp",
            self.release.classpath,
            "kafka.Kafka",
            str(self._properties_path),
        ]


__all__ = [
    "KafkaNode",
    "KafkaReleaseError",
    "Node",
    "NodeEndedError",
    "NodeError",
    "OwnedNode",
    "RunningNode",
    "VarveBrokersNode",
    "VarveNode",
    "free_port_range",
    "free_ports",
]
