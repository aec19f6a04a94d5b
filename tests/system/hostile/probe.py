"""A well-behaved client that notes how long it waits, in a process of its own.

    python -m tests.system.hostile.probe PORT KIND INTERVAL_MS BROKER_PID

It runs until its stdin is closed.

KIND is `api_versions` or `metadata` (one connection, one request at a time) or `connect` (a new
connection for every ApiVersions). The result is one JSON object on stdout.

On a machine with other work, a part of every wait is nobody's fault: somebody who could run did not
get a processor. Linux counts that time per thread (second field of `schedstat`), for the broker's
loop as for the probe; what is left of a wait without it is called `stall` here: the time the loop
did something else.
"""

import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from bench import wire

TIMEOUT_S = 30.0

GOAL_MS = 100.0
"""What a stall may last on a quiet machine. Tests print it beside what they saw and do not judge by
it: who shares the machine would decide whether they pass."""

HANG_MS = 3_000.0
"""What a stall may last anywhere: above it the loop waited for something."""

REPOSITORY = Path(__file__).resolve().parents[3]
NO_TOPICS = struct.pack(">i", 0)


class RunDelay:
    """Milliseconds a process' main thread has waited for a processor."""

    def __init__(self, pid: int | str) -> None:
        self._fd = os.open(f"/proc/{pid}/task/{pid}/schedstat", os.O_RDONLY)

    def ms(self) -> float:
        """So far."""
        return int(os.pread(self._fd, 100, 0).split()[1]) / 1e6

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._fd)


def ping(kind: str, connection: socket.socket) -> None:
    """One request and its answer."""
    if kind == "metadata":
        wire.call(connection, wire.METADATA, 1, NO_TOPICS)
    else:
        wire.call(connection, wire.API_VERSIONS, 0, b"")


def run(port: int, kind: str, interval_ms: float, broker_pid: int) -> None:
    """Ping until stdin ends, then print what was seen."""
    delays = RunDelay(broker_pid), RunDelay(os.getpid())
    waits: list[float] = []
    stalls: list[float] = []
    failures: list[str] = []
    connection = None if kind == "connect" else socket.create_connection(("127.0.0.1", port))
    sys.stdout.write("started\n")
    sys.stdout.flush()
    while not select.select([sys.stdin], [], [], interval_ms / 1000)[0]:
        starved = sum(delay.ms() for delay in delays)
        begin = time.perf_counter()
        try:
            if connection is None:
                with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as fresh:
                    ping(kind, fresh)
            else:
                connection.settimeout(TIMEOUT_S)
                ping(kind, connection)
        except (OSError, wire.WireError) as error:
            failures.append(repr(error))
            if len(failures) > 3:
                break
            continue
        wait = (time.perf_counter() - begin) * 1000
        waits.append(wait)
        stalls.append(max(wait - sum(delay.ms() for delay in delays) + starved, 0.0))
    sys.stdout.write(json.dumps({"waits": waits, "stalls": stalls, "failures": failures}))


class Seen:
    """What a probe saw; milliseconds."""

    def __init__(self, waits: Sequence[float], stalls: Sequence[float], failures: list[str]):
        self.count = len(waits)
        self.failures = failures
        self._waits = sorted(waits)
        self._stalls = sorted(stalls)

    @property
    def p99_ms(self) -> float:
        """99th percentile of the waits."""
        return self._waits[min(self.count - 1, self.count * 99 // 100)]

    @property
    def stall_p99_ms(self) -> float:
        """The same, without the time for which a processor was missing."""
        return self._stalls[min(self.count - 1, self.count * 99 // 100)]

    @property
    def max_ms(self) -> float:
        """Longest wait."""
        return self._waits[-1]

    @property
    def stall_ms(self) -> float:
        """Longest time the loop was busy with something else."""
        return self._stalls[-1]

    def __str__(self) -> str:
        return (
            f"{self.count} requests, p99 {self.p99_ms:.1f} ms (stall {self.stall_p99_ms:.1f}), "
            f"max {self.max_ms:.1f} ms (stall {self.stall_ms:.1f}, goal {GOAL_MS:.0f}), "
            f"failures {self.failures}"
        )


class Probe:
    """Runs the process; `seen` after the `with` block."""

    seen: Seen

    def __init__(
        self, port: int, broker_pid: int, kind: str = "api_versions", interval_ms: float = 3.0
    ) -> None:
        self._command = [
            *(sys.executable, "-m", "tests.system.hostile.probe"),
            *(str(port), kind, str(interval_ms), str(broker_pid)),
        ]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "started\n"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        output, _ = self._process.communicate(timeout=4 * TIMEOUT_S)
        if kind is None:
            result = json.loads(output)
            self.seen = Seen(result["waits"], result["stalls"], result["failures"])


if __name__ == "__main__":
    run(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))
