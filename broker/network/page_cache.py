"""How much of a file is in the page cache, without reading it.

One call for a whole range (`cachestat`, Linux 6.5); where the system has none nothing is known.

Source: Linux, mm/filemap.c, include/uapi/linux/mman.h.
"""

import ctypes
import os
import sys
from struct import Struct
from typing import Final

_CACHESTAT: Final = 451
"""The same on all architectures."""

PAGE: Final = os.sysconf("SC_PAGE_SIZE")


_RANGE: Final = Struct("=QQ")
"""Position, length: struct cachestat_range."""

_COUNTS: Final = Struct("=QQQQQ")
"""Pages cached, dirty, in writeback, evicted, recently evicted: struct cachestat."""


_syscall = ctypes.CDLL(None, use_errno=True).syscall if sys.platform == "linux" else None
_range = bytearray(_RANGE.size)
_counts = bytearray(_COUNTS.size)
# Made once: converting them takes most of the call.
_arguments = (
    ctypes.c_long(_CACHESTAT),
    ctypes.byref((ctypes.c_char * _RANGE.size).from_buffer(_range)),
    ctypes.byref((ctypes.c_char * _COUNTS.size).from_buffer(_counts)),
)
_flags = ctypes.c_uint(0)
_pack = _RANGE.pack_into
_unpack = _COUNTS.unpack_from


def has_holes(descriptor: int, position: int, length: int) -> bool | None:
    """Whether pages of the range are not in the page cache; None if that is unknown.

    Pages that are being read in count as there. On the loop only: it uses memory of its own.
    """
    global _syscall
    if _syscall is None:
        return None
    _pack(_range, 0, position, length)
    number, of, into = _arguments
    if _syscall(number, descriptor, of, into, _flags) != 0:
        # An older kernel, or a sandbox that does not know the call: it will not come to know it.
        _syscall = None
        return None
    pages = (position + length - 1) // PAGE - position // PAGE + 1
    cached: int = _unpack(_counts)[0]
    return cached < pages
