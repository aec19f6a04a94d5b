"""The cost of a Spark session: its JVM, Python, and the servers behind it, apart.

    this process ── java ── daemon ── worker, worker ...      planner ...
       │              │       └── Python: everything below java, and this process
       │              └── JVM: java's own threads
       └── a broker, a store: trees of their own

Spark ends workers and whole daemons that had nothing to do for a minute, and a daemon does not wait
for its workers, so what living processes say of themselves, and of children they waited for, leaves
out a part and puts another in the wrong column. The counters here (`bench.perf_counters`) are
inherited and keep what ended. Each is opened once, while its process is stopped: none is counted
twice, and none begins between two readings.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.perf_counters import Event, open_counter, read_counter
from bench.process import tree

_STOP_S: Final = 5.0
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one run.

    Attributes:
        jvm, python, other: In units of the event; `other` is the broker or the store.
        seconds: Of wall clock.
        worker_bytes: Most memory that one Python process of Spark had resident.
    """

    jvm: float
    python: float
    other: float
    seconds: float
    worker_bytes: int

    @property
    def reading(self) -> float:
        """What Spark, or the loop, has used by itself."""
        return self.jvm + self.python

    @property
    def everything(self) -> float:
        """Of all processes."""
        return self.reading + self.other


class ProcessCost:
    """What the processes of a tree, and all that they start, have used since this was made."""

    def __init__(self, pid: int, event: Event, *, own: bool = False) -> None:
        """Open the counters.

        Args:
            pid: Root of the tree.
            event: What is counted.
            own: The one process alone, without those that it starts.

        Raises:
            OSError: It cannot be counted here, or the process has ended.
        """
        self._scale = event.scale
        self._counters: list[int] = []
        members = [pid] if own else _living(pid)
        for member in members:
            with _stopped(member):
                for task in os.listdir(f"/proc/{member}/task"):
                    self._counters.append(open_counter(int(task), event, threads_only=own))

    def used(self) -> float:
        """In units of the event."""
        return sum(map(read_counter, self._counters)) / self._scale

    def close(self) -> None:
        """Count no more."""
        while self._counters:
            os.close(self._counters.pop())


@contextlib.contextmanager
def _stopped(pid: int) -> Iterator[None]:
    """A process that starts no thread meanwhile; this one does not by itself."""
    if pid == os.getpid():
        yield
        return
    os.kill(pid, signal.SIGSTOP)
    try:
        give_up = time.monotonic() + _STOP_S
        while _state(pid) != "T":
            if time.monotonic() > give_up:
                raise OSError(f"process {pid} does not stop")
            time.sleep(0.001)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


class SessionCost:
    """Tells what runs of a session have cost. Make it before the session has started any Python."""

    def __init__(self, event: Event, others: Sequence[int] = ()) -> None:
        """Open counters of this process, of the java it has started, and of `others`."""
        self.event = event
        (self._java,) = (
            pid for pid in tree(os.getpid()) if _name(pid) == "java" and _is_spark(pid)
        )
        if self._python():
            raise OSError("the session has processes already: they would be left out")
        self._whole = ProcessCost(self._java, event)
        self._jvm = ProcessCost(self._java, event, own=True)
        self._own = ProcessCost(os.getpid(), event, own=True)
        self._others = {pid: ProcessCost(pid, event) for pid in others}

    @contextlib.contextmanager
    def measured(self, other: int = 0, *, is_spark: bool = True) -> Iterator[list[Cost]]:
        """Appends what the body has cost.

        Args:
            other: Which of the others serves it; 0: none.
            is_spark: Else the JVM only stands by, and is left out.
        """
        found: list[Cost] = []
        for pid in self._python():
            _forget_peak(pid)
        before, began = self._used(other), time.perf_counter()
        yield found
        seconds = time.perf_counter() - began
        jvm, whole, own, served = (
            after - first for after, first in zip(self._used(other), before, strict=True)
        )
        if not is_spark:
            found.append(Cost(0.0, own, served, seconds, 0))
            return
        peak = max((_peak_bytes(pid) for pid in self._python()), default=0)
        found.append(Cost(jvm, whole - jvm + own, served, seconds, peak))

    def _used(self, other: int) -> tuple[float, float, float, float]:
        served = self._others[other].used() if other else 0.0
        return self._jvm.used(), self._whole.used(), self._own.used(), served

    def _python(self) -> list[int]:
        return _living(self._java)[1:]

    def close(self) -> None:
        """Count no more."""
        for one in (self._whole, self._jvm, self._own, *self._others.values()):
            one.close()


def _living(root: int) -> list[int]:
    """A tree without zombies: spark-submit's script leaves one."""
    found = []
    for pid in tree(root):
        with contextlib.suppress(OSError):
            if _state(pid) != "Z":
                found.append(pid)
    return found


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def _is_spark(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"org.apache.spark" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _forget_peak(pid: int) -> None:
    """From now on `VmHWM` is the most since now: proc(5), clear_refs."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def _peak_bytes(pid: int) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def mebibytes(size: int) -> str:
    """For tables; a dash where there is nothing."""
    return f"{size / _MIB:.0f}" if size else "-"
