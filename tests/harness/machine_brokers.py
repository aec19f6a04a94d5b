"""`varve serve --brokers N` as an operator runs it."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from bench.node import REPOSITORY, free_port_range, free_ports

HOST = "127.0.0.1"
START_S = 120.0
END_S = 90.0


class Brokers:
    """The command, its brokers, and what they print."""

    def __init__(self, folder: Path, count: int = 2, *given: str) -> None:
        self.folder = folder
        self.count = count
        self.data = folder / "data"
        self.output = folder / "output"
        self.given = given
        self.port = free_port_range(count)
        (admin,) = free_ports(1)
        self.admin = f"{HOST}:{admin}"
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        given = (
            f"log.dirs={self.data}",
            f"listeners=PLAINTEXT://{HOST}:{self.port}",
            f"admin.listener={self.admin}",
            "offsets.topic.num.partitions=3",
            "group.initial.rebalance.delay.ms=0",
            *self.given,
        )
        words = [word for one in given for word in ("--set", one)]
        return [sys.executable, "-m", "cli.main", "serve", "--brokers", str(self.count), *words]

    def launch(self) -> None:
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                self.command(), stdout=output, stderr=subprocess.STDOUT, cwd=REPOSITORY
            )

    async def start(self) -> None:
        """Start them, and wait for the banner."""
        await asyncio.to_thread(self.start_and_wait)

    def start_and_wait(self) -> None:
        """Likewise, without an event loop."""
        self.launch()
        deadline = time.monotonic() + START_S
        while "  try  " not in self.text and self.status is None:
            assert time.monotonic() < deadline, self.text
            time.sleep(0.02)
        assert self.status is None, self.text

    def address(self, index: int) -> str:
        """Of a broker's listener, counted from 0."""
        return f"{HOST}:{self.port + index}"

    @property
    def text(self) -> str:
        return self.output.read_text(errors="replace")

    @property
    def status(self) -> int | None:
        assert self.process is not None
        return self.process.poll()

    def pids(self) -> dict[int, int]:
        """Processes of brokers by node id, while the supervisor lives."""
        assert self.process is not None
        found = {}
        for folder in Path("/proc").iterdir():
            if not folder.name.isdecimal():
                continue
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            if parent == self.process.pid and b"--lifeline" in words:
                (node_id,) = [
                    int(word.removeprefix(b"node.id="))
                    for word in words
                    if word.startswith(b"node.id=")
                ]
                found[node_id] = int(folder.name)
        return found

    def store_files(self) -> set[str]:
        """Names in the metadata store's folder."""
        return set(os.listdir(self.data / "varve-store"))

    def kill(self, node_id: int) -> int:
        """As kill -9; its process id."""
        pid = self.pids()[node_id]
        os.kill(pid, signal.SIGKILL)
        return pid

    async def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal to the supervisor; its exit status."""
        assert self.process is not None
        self.process.send_signal(number)
        return await asyncio.to_thread(self.process.wait, END_S)

    async def run(self) -> int:
        """Start what ends by itself; its exit status."""
        self.launch()
        assert self.process is not None
        return await asyncio.to_thread(self.process.wait, END_S)

    def close(self) -> None:
        """End what is left of it."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(END_S)


def is_running(pid: int) -> bool:
    """Whether the process has not ended; one that was not waited for has."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
