"""How much of a file is in the page cache, without reading it.

One call for a whole range (`cachestat`, Linux 6.5); where the system has none nothing is known.

Source: Linux, mm/filemap.c, include/uapi/linux/mman.h.
"""

import ctypes
import os
import sys
from typing import Final

_CACHESTAT: Final = 451
"""The same on all architectures."""

PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class _Range(ctypes.Structure):
    _fields_ = (("position", ctypes.c_uint64), ("length", ctypes.c_uint64))


class _Counts(ctypes.Structure):
    _fields_ = (
        ("cached", ctypes.c_uint64),
        ("dirty", ctypes.c_uint64),
        ("in_writeback", ctypes.c_uint64),
        ("evicted", ctypes.c_uint64),
        ("recently_evicted", ctypes.c_uint64),
    )


_syscall = ctypes.CDLL(None, use_errno=True).syscall if sys.platform == "linux" else None
_range = _Range()
_counts = _Counts()
_arguments = (ctypes.c_long(_CACHESTAT), ctypes.byref(_range), ctypes.byref(_counts))


def has_holes(descriptor: int, position: int, length: int) -> bool:
    """Whether pages of the range are not in the page cache; False where it cannot be told.

    Pages that are being read in count as there. On the loop only: it uses memory of its own.
    """
    global _syscall
    if _syscall is None:
        return False
    _range.position = position
    _range.length = length
    number, of, into = _arguments
    if _syscall(number, descriptor, of, into, 0) != 0:
        # An older kernel, or a sandbox that does not know the call: it will not come to know it.
        _syscall = None
        return False
    pages = (position + length - 1) // PAGE - position // PAGE + 1
    cached: int = _counts.cached
    return cached < pages
