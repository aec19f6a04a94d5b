"""What the kernel knows of a broker's process: CPU time, memory, descriptors, cores.

Everything counts the whole process tree, so a broker that hands work to children pays for it.

Source: proc(5).
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")


class Host(NamedTuple):
    """Where a server listens, and what its command line begins with to run there."""

    address: str
    prefix: tuple[str, ...]


LOOPBACK: Final = Host("127.0.0.1", ())


def end_on_sigterm() -> None:
    """Have SIGTERM end this program as Ctrl-C does: the servers it has started are ended first."""

    def end(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, end)


def tree(pid: int) -> list[int]:
    """`pid` and all its living descendants."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found.extend(int(child) for child in task.read_text().split())
            except OSError:  # the thread ended between listing and reading
                continue
    return found


def cpu_seconds(pid: int) -> float:
    """CPU seconds used so far by the tree, user and system, with children already reaped.

    Or what `measure_cost_by` has put in their place.
    """
    return _cost(pid)


def measure_cost_by(cost: Callable[[int], float]) -> None:
    """Have every row measure its cost by `cost` instead of CPU seconds."""
    global _cost
    _cost = cost


def cpu_seconds_of(pid: int) -> float:
    """CPU seconds used so far by one process, user and system, with children already reaped.

    Raises:
        OSError: There is no such process any more.
    """
    # The command, field 2, may hold spaces: count the fields from its closing bracket.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / _TICKS_PER_SECOND


def _cpu_seconds(pid: int) -> float:
    used = 0.0
    for member in tree(pid):
        with contextlib.suppress(OSError):
            used += cpu_seconds_of(member)
    return used


_cost = _cpu_seconds


def rss_bytes(pid: int) -> int:
    """Resident bytes of the tree; pages shared by two members count twice."""
    pages = 0
    for member in tree(pid):
        try:
            pages += int(Path(f"/proc/{member}/statm").read_text().split()[1])
        except OSError:
            continue
    return pages * _PAGE_SIZE


def pin(pid: int, cores: Iterable[int]) -> None:
    """Bind every thread of the tree to `cores`."""
    wanted = set(cores)
    for member in tree(pid):
        for task in Path(f"/proc/{member}/task").iterdir():
            try:
                os.sched_setaffinity(int(task.name), wanted)
            except ProcessLookupError:  # the thread ended meanwhile
                continue


@dataclass(frozen=True, slots=True)
class MachineTimes:
    """Core seconds of the whole machine since it started."""

    busy: float
    stolen: float


def machine_times() -> MachineTimes:
    """How busy all cores were, and what the hypervisor took away."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    user, nice, system, _idle, _iowait, interrupt, soft_interrupt, stolen = fields
    busy = user + nice + system + interrupt + soft_interrupt
    return MachineTimes(busy / _TICKS_PER_SECOND, stolen / _TICKS_PER_SECOND)


def process_state(pid: int) -> str:
    """The letter that proc(5) has for a process or a thread: T when a signal has stopped it."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def pause(pid: int) -> None:
    """SIGSTOP, and wait until every thread stands still: one more answer may leave before."""
    os.kill(pid, signal.SIGSTOP)
    tasks = Path(f"/proc/{pid}/task")
    while any(process_state(int(task.name)) not in "Tt" for task in tasks.iterdir()):
        os.sched_yield()


def wait_for_exit(pid: int, timeout_s: float) -> bool:
    """True once no process has `pid` any more."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if not Path(f"/proc/{pid}").exists():
            return True
        time.sleep(0.01)
    return False
