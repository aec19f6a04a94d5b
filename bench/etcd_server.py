"""An etcd server as a process of its own, on loopback; killed, stopped and started at will."""

import os
import shutil
import subprocess
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.node import free_ports
from bench.process import LOOPBACK, Host
from bench.server_process import ServerProcess

BUILT: Final = Path(__file__).parents[1] / ".build" / "etcd" / "etcd"
"""Where `.ci/etcd` puts it."""

NO_ETCD: Final = "no etcd on this machine: make test-cluster builds it, ETCD names a program"


def find_etcd() -> str | None:
    """The server's program: `ETCD`, the one that was built here, or the path's."""
    for found in (os.environ.get("ETCD"), str(BUILT), shutil.which("etcd")):
        if found and os.access(found, os.X_OK):
            return found
    return None


class EtcdServer(ServerProcess):
    """One member, a cluster of its own if nothing else is said; its disk is never synced.

    Attributes:
        endpoint: `host:port` for clients; the same after a restart.
        peer: Its address for other members.
        arguments: More options of its command line, from its next start on.
    """

    def __init__(
        self,
        program: str,
        folder: Path,
        *arguments: str,
        name: str = "m0",
        scheme: str = "http",
        election_ms: int = 100,
        host: Host = LOOPBACK,
    ) -> None:
        super().__init__()
        self._prefix = host.prefix
        self._program = program
        self._folder = folder
        self.arguments = arguments
        self._name = name
        self._scheme = scheme
        self._election_ms = election_ms
        client_port, peer_port = free_ports(2)
        self.endpoint = f"{host.address}:{client_port}"
        self.peer = f"http://{host.address}:{peer_port}"
        self.members = f"{name}={self.peer}"

    @property
    def data(self) -> Path:
        """Its data directory."""
        return self._folder / f"{self._name}-data"

    def start(self) -> None:
        """Start it, again on what it left behind. It may answer a little later."""
        assert self._process is None, "it runs"
        client = f"{self._scheme}://{self.endpoint}"
        command = [
            *self._prefix,
            *(self._program, "--name", self._name, "--data-dir", str(self.data)),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", self.peer, "--initial-advertise-peer-urls", self.peer),
            *("--initial-cluster", self.members, "--log-level", "error"),
            *("--heartbeat-interval", str(self._election_ms // 10)),
            *("--election-timeout", str(self._election_ms), "--unsafe-no-fsync"),
            *self.arguments,
        ]
        with (self._folder / f"{self._name}.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    @property
    def is_leader(self) -> bool:
        """Whether it says that it leads its members; False when it does not answer."""
        try:
            with urllib.request.urlopen(f"http://{self.endpoint}/metrics", timeout=1.0) as answer:
                text: bytes = answer.read()
        except OSError:
            return False
        return b"\netcd_server_is_leader 1\n" in text


class EtcdCluster:
    """Members that elect a leader among them."""

    def __init__(self, program: str, folder: Path, hosts: Sequence[Host] = (LOOPBACK,) * 3) -> None:
        """`hosts`: of each member."""
        self.members = [
            EtcdServer(program, folder, name=f"m{number}", election_ms=500, host=host)
            for number, host in enumerate(hosts)
        ]
        names = ",".join(member.members for member in self.members)
        for member in self.members:
            member.members = names

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Of all members, in order."""
        return tuple(member.endpoint for member in self.members)

    @property
    def leader(self) -> EtcdServer | None:
        """The member that leads; None while none does."""
        return next((member for member in self.members if member.is_leader), None)

    def start(self) -> None:
        """Start all."""
        for member in self.members:
            member.start()

    def kill(self) -> None:
        """End all."""
        for member in self.members:
            member.kill()
