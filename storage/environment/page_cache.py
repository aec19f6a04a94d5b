"""The page cache: whether a range of a file is in it, and reading a range into it.

Pages are counted by one call for a whole range (`cachestat`, Linux 6.5), else some are probed by
reads that do not wait (`RWF_NOWAIT`); where the system has neither, all counts as cached.

Source: Linux, mm/filemap.c, include/uapi/linux/mman.h.
"""

import ctypes
import os
import sys
from struct import Struct
from typing import Final

from storage.environment import quick_reads

_CACHESTAT: Final = 451
"""The same on all architectures."""

PAGE: Final = os.sysconf("SC_PAGE_SIZE")

PROBE_STRIDE: Final = 256 * 1024
"""The page cache is filled and emptied in runs, so one page stands for its neighbours."""

COUNTED_STRIDE: Final = 1024 * 1024
"""Where the kernel counts the pages that are there, it remains whether they have been read in."""

COUNTED_AFTER_COLD: Final = 4096
"""So many ranges after a cold one have all their pages counted, which takes some 10 us a MiB: while
nothing is cold, no pages are evicted between those that are probed."""

READ_SIZE: Final = 1024 * 1024
"""Bytes of one call of `read_in`."""

_counted_left = COUNTED_AFTER_COLD

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


def describe_missing() -> tuple[str, ...]:
    """System calls that this platform lacks; one sentence each, for the log."""
    if not quick_reads.has_nowait:
        return ("no RWF_NOWAIT: a fetch of old records may hold the loop until the disk answers",)
    return ()


def count_pages() -> None:
    """Count all pages of the next ranges: one was cold, so pages are evicted."""
    global _counted_left
    _counted_left = COUNTED_AFTER_COLD


def is_cached(descriptor: int, position: int, length: int) -> bool:
    """Whether a read of the range would not wait for the disk (true if that is unknown)."""
    if not quick_reads.has_nowait:
        return True
    global _counted_left
    has_hole = None
    if _counted_left:
        _counted_left -= 1
        has_hole = has_holes(descriptor, position, length)
    if has_hole:
        # A look-up has brought the first page and the last, so that these two prove nothing.
        return False
    stride = PROBE_STRIDE if has_hole is None else COUNTED_STRIDE
    return quick_reads.probe(descriptor, position, length, stride)


def read_in(descriptor: int, position: int, length: int) -> None:
    """Bring a range into the page cache; waits for the disk.

    Raises:
        OSError: The disk refused.
    """
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, position, length, os.POSIX_FADV_WILLNEED)
    scratch = memoryview(bytearray(min(length, READ_SIZE)))
    done = 0
    while done < length:
        count = os.preadv(descriptor, [scratch[: length - done]], position + done)
        if count <= 0:
            return
        done += count
