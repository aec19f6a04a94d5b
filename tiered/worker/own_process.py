"""Kernel settings of the tier process: name, priority, CPUs. It starts without them, too."""

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

NAME: Final = "varve-tier"
"""As `top` shows it; 15 bytes at most."""

NICE: Final = 5
"""A third of the broker's weight when both want the same CPU. Not a setting: to separate the two
altogether there is `tier.cpu.affinity`."""

OOM_SCORE: Final = 500
"""Out of 1000: when memory runs out the kernel should take this process, not the broker."""

_PR_SET_PDEATHSIG: Final = 1


def settle(affinity: Sequence[int]) -> list[str]:
    """Name, priority and CPUs of this process; returns what could not be had, in words."""
    missing = []
    for what, ask in (
        ("its name", lambda: _write("/proc/self/comm", NAME)),
        ("a lower priority", lambda: os.nice(NICE)),
        ("to be killed before the broker", lambda: _write("/proc/self/oom_score_adj", OOM_SCORE)),
        (f"CPUs {list(affinity)}", lambda: _pin(affinity)),
    ):
        try:
            ask()
        except OSError as error:
            missing.append(f"{what}: {error}")
    return missing


def _write(path: str, value: object) -> None:
    if sys.platform == "linux":
        Path(path).write_text(str(value), encoding="ascii")


def _pin(affinity: Sequence[int]) -> None:
    if not affinity:
        return
    if sys.platform != "linux":
        raise OSError("not on this platform")
    os.sched_setaffinity(0, affinity)


def die_with_parent() -> None:
    """Be killed when the thread that started this process ends, even while stopped.

    The end of the socket says the same, but only to a process that is able to read it.
    """
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


def leave(status: int) -> None:
    """End now: threads that still wait for a disk are not waited for."""
    sys.stderr.flush()
    os._exit(status)
