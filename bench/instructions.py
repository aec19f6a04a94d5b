"""Instructions a broker has executed: a cost that a busy machine does not change.

One counter of the processor for each thread of the process tree, opened at the first look and
inherited by threads that begin later, so that only differences between two looks mean something. As
an instruction is no second, a ratio says what the code became, not how long anybody waits. What it
needs of the machine: `bench.perf_counters`.
"""

import os

from bench.perf_counters import INSTRUCTIONS, open_counter, read_counter
from bench.process import tree

_counters: dict[tuple[int, int], int] = {}


def billions(pid: int) -> float:
    """Instructions of the process tree so far, user and kernel, in units of 1e9.

    Raises:
        OSError: They cannot be counted here.
    """
    return sum(map(_billions_of, tree(pid)))


def _billions_of(pid: int) -> float:
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        key = (pid, int(task))
        if key not in _counters:
            _counters[key] = open_counter(int(task), INSTRUCTIONS)
        total += read_counter(_counters[key])
    return total / INSTRUCTIONS.scale
