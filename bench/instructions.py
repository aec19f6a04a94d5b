"""Instructions a broker has executed: a cost that a busy machine does not change.

One counter of the processor for each thread of the process tree, opened at the first look and
inherited by threads that begin later, so that only differences between two looks mean something. As
an instruction is no second, a ratio says what the code became, not how long anybody waits.

Linux on a processor (or a virtual machine) that counts, and the right to look: root, or
`kernel.perf_event_paranoid` of 1 or less.

    perf_event_attr     byte  size  field
                           0     4  type             0: hardware
                           4     4  size             128
                           8     8  config           1: instructions
                          40     8  flags            2: inherited by new threads

Source: perf_event_open(2).
"""

import ctypes
import os
import platform
from struct import Struct
from typing import Final

from bench.process import tree

_NUMBERS: Final = {"x86_64": 298, "aarch64": 241}
_SIZE: Final = 128
_HEAD: Final = Struct("=IIQ")
_FLAGS: Final = Struct("=Q")
_FLAGS_AT: Final = 40
_INSTRUCTIONS: Final = 1
_INHERIT: Final = 2
_ANY_PROCESSOR: Final = -1
_NO_GROUP: Final = -1

_counters: dict[tuple[int, int], int] = {}


def billions(pid: int) -> float:
    """Instructions of the process tree so far, user and kernel, in units of 1e9.

    Raises:
        OSError: They cannot be counted here.
    """
    return sum(map(billions_of, tree(pid)))


def billions_of(pid: int) -> float:
    """As `billions`, of one process."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        key = (pid, int(task))
        if key not in _counters:
            _counters[key] = _open(int(task))
        total += int.from_bytes(os.read(_counters[key], 8), "little")
    return total / 1e9


def _open(thread: int) -> int:
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise OSError(f"no counters on {platform.machine()} known here")
    attributes = bytearray(_SIZE)
    _HEAD.pack_into(attributes, 0, 0, _SIZE, _INSTRUCTIONS)
    _FLAGS.pack_into(attributes, _FLAGS_AT, _INHERIT)
    memory = (ctypes.c_char * _SIZE).from_buffer(attributes)
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(number, memory, thread, _ANY_PROCESSOR, _NO_GROUP, 0)
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"instructions cannot be counted: {os.strerror(code)}")
    return int(descriptor)
