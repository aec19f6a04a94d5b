"""Memory and CPU of another process, where the system shows it (Linux's /proc)."""

import os
from pathlib import Path
from typing import NamedTuple

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    """Resident memory now, CPU (user and system) since its start."""

    resident_bytes: int
    cpu_seconds: float


def read_usage(pid: int, proc: str = "/proc") -> Usage | None:
    """Of process `pid`; None when it has gone, or nothing shows it."""
    try:
        statm = Path(f"{proc}/{pid}/statm").read_text(encoding="ascii").split()
        # The second field is the program's name, in parentheses, and may hold anything.
        stat = Path(f"{proc}/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return Usage(
            int(statm[1]) * _PAGE_BYTES, (int(stat[11]) + int(stat[12])) / _TICKS_PER_SECOND
        )
    except (OSError, ValueError, IndexError):
        return None
