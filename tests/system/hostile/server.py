"""A broker process under attack: what it takes, what it says, and ways to be rude to it."""

import contextlib
import os
import re
import resource
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.node import VarveNode
from tests.system.hostile.probe import Probe

MIB = 1024 * 1024
DESCRIPTORS = 16_384
_SEGMENT = re.compile(r"/\d{20}\.\w+$")


class Target(VarveNode):
    """`varve serve`, and figures about its process."""

    def memory(self) -> int:
        """Resident bytes: its own pages and shared ones, without files that are only mapped."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.findall(r"Rss(?:Anon|Shmem):\s+(\d+) kB", status)
        return sum(int(size) * 1024 for size in found)

    def peak_memory(self) -> int:
        """Highest `VmHWM` since `forget_peak`, in bytes."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) * 1024

    def resident(self) -> int:
        """`VmRSS` in bytes."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) * 1024

    def forget_peak(self) -> None:
        """Let `peak_memory` begin anew."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def descriptors(self) -> int:
        """Open files and sockets; not segments, which topics have that a client has made."""
        count = 0
        for link in Path(f"/proc/{self.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                count += not _SEGMENT.search(os.readlink(link))
        return count

    def cpu_s(self) -> float:
        """Processor time used so far, of all threads."""
        total = 0.0
        for task in Path(f"/proc/{self.pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError):
                total += int((task / "schedstat").read_text().split()[0]) / 1e9
        return total

    def metric(self, name: str) -> float:
        """Sum of a metric's samples."""
        with urllib.request.urlopen(f"http://{self.admin_address}/metrics", timeout=30) as page:
            text = page.read().decode()
        values = re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", text, re.M)
        assert values, f"no metric {name}"
        return sum(map(float, values))

    def log(self) -> str:
        """Everything it has printed."""
        return self.log_path.read_text(errors="replace")

    def complaints(self) -> list[str]:
        """Lines that tell of a mistake of ours: tracebacks and errors."""
        return [
            line
            for line in self.log().splitlines()
            if "raceback" in line or "level=ERROR" in line or "level=CRITICAL" in line
        ]

    def probe(self, kind: str = "api_versions", interval_ms: float = 3.0) -> Probe:
        """A well-behaved client beside the attack."""
        return Probe(self.port, self.pid, kind, interval_ms)

    def eventually(self, holds: Callable[[], bool], timeout_s: float = 60.0) -> bool:
        """Wait until something holds."""
        deadline = time.monotonic() + timeout_s
        while not holds():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True


@contextlib.contextmanager
def many_descriptors() -> Iterator[None]:
    """Room for thousands of sockets here and in a broker started meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def running(directory: Path, properties: dict[str, str] | None = None) -> Iterator[Target]:
    """A broker that must still be well in the end: alive, without complaints, exit 0."""
    with many_descriptors():
        target = Target(directory, {"group.initial.rebalance.delay.ms": "0", **(properties or {})})
        target.start()
        try:
            yield target
            assert target.is_running, target.log_tail()
        finally:
            code = target.stop()
        assert code == 0, target.log_tail()
        assert not target.complaints(), "\n".join(target.complaints()[:5])


def rude_socket(port: int) -> socket.socket:
    """A client socket with the smallest receive buffer there is."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
    client.connect(("127.0.0.1", port))
    return client
