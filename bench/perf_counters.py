"""Counters of the kernel for one thread and what it starts: instructions, or time on a processor.

    perf_event_attr     byte  size  field
                           0     4  type             0: hardware, 1: software
                           4     4  size             128
                           8     8  config           hardware 1: instructions
                                                     software 1: ns on a processor
                          40     8  flags            bit 1: inherited by what the thread starts
                                                     bit 35: by threads only, not by processes

A counter that is inherited is read together with its heirs, those that have ended included, so that
only differences between two reads mean something.

Linux, and the right to look: root, or `kernel.perf_event_paranoid` of 1 or less. Instructions also
need a processor (or a virtual machine) that counts; bit 35 Linux 5.13.

Source: perf_event_open(2), include/uapi/linux/perf_event.h.
"""

import ctypes
import os
import platform
from dataclasses import dataclass
from struct import Struct
from typing import Final

_NUMBERS: Final = {"x86_64": 298, "aarch64": 241}
_SIZE: Final = 128
_HEAD: Final = Struct("=IIQ")
_FLAGS: Final = Struct("=Q")
_FLAGS_AT: Final = 40
_INHERIT: Final = 1 << 1
_THREADS_ONLY: Final = 1 << 35
_ANY_PROCESSOR: Final = -1
_NO_GROUP: Final = -1


@dataclass(frozen=True, slots=True)
class Event:
    """What is counted.

    Attributes:
        type, config: As above.
        scale: How many of it are one `unit`.
        unit: For tables.
    """

    type: int
    config: int
    scale: float
    unit: str


INSTRUCTIONS: Final = Event(0, 1, 1e9, "1e9 instructions")
CPU_SECONDS: Final = Event(1, 1, 1e9, "CPU s")


def open_counter(thread: int, event: Event, *, threads_only: bool = False) -> int:
    """A descriptor that counts one thread and its heirs from now on.

    Args:
        thread: Its id.
        event: What is counted.
        threads_only: Threads that it starts count, processes do not.

    Raises:
        ProcessLookupError: There is no such thread.
        OSError: It cannot be counted here.
    """
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise OSError(f"no counters on {platform.machine()} known here")
    attributes = bytearray(_SIZE)
    _HEAD.pack_into(attributes, 0, event.type, _SIZE, event.config)
    _FLAGS.pack_into(attributes, _FLAGS_AT, _INHERIT | (_THREADS_ONLY if threads_only else 0))
    memory = (ctypes.c_char * _SIZE).from_buffer(attributes)
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(number, memory, thread, _ANY_PROCESSOR, _NO_GROUP, 0)
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{event.unit} cannot be counted: {os.strerror(code)}")
    return int(descriptor)


def read_counter(descriptor: int) -> int:
    """What it has counted, heirs included."""
    return int.from_bytes(os.read(descriptor, 8), "little")
