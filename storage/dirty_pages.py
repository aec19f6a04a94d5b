"""How much may still be written before the kernel makes writers wait for the disks.

Linux lets everybody write into the page cache until dirty pages and pages under writeback reach the
middle between two thresholds, of the machine and, with cgroup v2, of the container; beyond it
whoever writes is put to sleep, some 10 to 200 ms a time (balance_dirty_pages: `freerun`).

    /proc/vmstat                  nr_dirty, nr_writeback, nr_dirty_threshold,
                                  nr_dirty_background_threshold, in pages
    /sys/fs/cgroup/memory.max     bytes, or `max`: there is no limit
    /sys/fs/cgroup/memory.stat    file_dirty, file_writeback, in bytes

Of a container's share only the least is counted on: `vm.dirty_background_ratio`'s default, a tenth.
"""

import mmap
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_VMSTAT: Final = "/proc/vmstat"
_LIMIT: Final = "/sys/fs/cgroup/memory.max"
_STAT: Final = "/sys/fs/cgroup/memory.stat"
CONTAINER_SHARE: Final = 10

ReadText = Callable[[str], str]
"""A small file of the system's; raises OSError."""


def read_text(path: str) -> str:
    """A small file of the system's."""
    with open(path, encoding="ascii") as file:
        return file.read()


def dirty_room(read: ReadText = read_text) -> int | None:
    """Bytes that may be written before anybody is made to wait; None: the system does not tell.

    Takes some 0.1 ms: for threads.
    """
    try:
        pages = _numbers(read(_VMSTAT))
        free_run = (pages["nr_dirty_threshold"] + pages["nr_dirty_background_threshold"]) // 2
        room = (free_run - pages["nr_dirty"] - pages["nr_writeback"]) * mmap.PAGESIZE
    except (OSError, KeyError, ValueError):
        return None
    with suppress(OSError, KeyError, ValueError):
        limit = int(read(_LIMIT))
        kept = _numbers(read(_STAT))
        dirty = kept["file_dirty"] + kept["file_writeback"]
        room = min(room, limit // CONTAINER_SHARE - dirty)
    return max(room, 0)


def _numbers(text: str) -> dict[str, int]:
    """Lines of a name and a number."""
    return {name: int(value) for name, value in (line.split() for line in text.splitlines())}
