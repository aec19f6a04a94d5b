"""Reads that do not wait for the disk, each by one call.

Before a slice is sent its pages are probed, and batch headers are read on the loop: some six reads
of a few bytes for each Fetch. So this module is there twice: here, and in C
(`native/quick_reads.c`), which a build puts in its place (`native.modules.IN_C`). Its functions may
be called only where the system has `RWF_NOWAIT` (`has_nowait`); `page_cache` and `local_filesystem`
do.
"""

import os
from typing import Final

has_nowait: Final = hasattr(os, "RWF_NOWAIT")
"""False on macOS."""

_NOWAIT: Final[int] = getattr(os, "RWF_NOWAIT", 0)
_probed = [bytearray(1)]


def probe(descriptor: int, position: int, length: int, stride: int) -> bool:
    """Whether pages of a range are in the page cache: one every `stride` bytes, and the last one.

    True also where the file cannot say: EOPNOTSUPP of tmpfs and of some network file systems.
    """
    last = position + length - 1
    try:
        for at in range(position, last, stride):
            os.preadv(descriptor, _probed, at, _NOWAIT)
        os.preadv(descriptor, _probed, last, _NOWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def read_cached(descriptor: int, size: int, position: int) -> bytes | None:
    """Up to `size` bytes, fewer only at the end of the file; None if the disk has to be waited for.

    Raises:
        OSError: EOPNOTSUPP: this file cannot be read so; another: the disk refused.
    """
    data = bytearray(size)
    view = memoryview(data)
    done = 0
    try:
        while done < size:
            count = os.preadv(descriptor, (view[done:],), position + done, _NOWAIT)
            if not count:
                break
            done += count
    except BlockingIOError:
        return None
    return bytes(view[:done])


__all__ = ["has_nowait", "probe", "read_cached"]
