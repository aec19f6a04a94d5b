"""Dirty page room: bytes that may be written before the kernel throttles writers.

Linux accepts writes into the page cache until dirty pages and pages under writeback reach the
middle between two thresholds, of the machine and, with cgroup v2, of the container; beyond it
a writing process is put to sleep, some 10 to 200 ms a time (balance_dirty_pages: `freerun`).

    /proc/vmstat                  nr_dirty, nr_writeback, nr_dirty_threshold,
                                  nr_dirty_background_threshold, in pages
    /sys/fs/cgroup/memory.max     bytes, or `max`: there is no limit
    /sys/fs/cgroup/memory.stat    file_dirty, file_writeback, in bytes
    /sys/class/bdi/<major>:<minor>/strict_limit   1: the device has a limit of its own, as FUSE's,
                                                  which holds at once: nothing is known then

Of a container's share only the least is counted on: `vm.dirty_background_ratio`'s default, a tenth.
"""

import mmap
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final

_VMSTAT: Final = "/proc/vmstat"
_LIMIT: Final = "/sys/fs/cgroup/memory.max"
_STAT: Final = "/sys/fs/cgroup/memory.stat"
CONTAINER_SHARE: Final = 10

_STRICT: Final = "/sys/class/bdi/{}:{}/strict_limit"

ReadText = Callable[[str], str]
"""A small file of the system's; raises OSError."""


def read_text(path: str) -> str:
    """A small file of the system's."""
    with open(path, encoding="ascii") as file:
        return file.read()


def device_of(directory: str) -> int:
    """Number of the device a folder lies on, 0 if it cannot be determined."""
    try:
        return os.stat(directory).st_dev
    except OSError:
        return 0


def dirty_room(device: int, read: ReadText = read_text) -> int | None:
    """Bytes that may be written before a writer is throttled; None: the system does not report it.

    Takes some 0.1 ms: for threads.

    Args:
        device: Where they are written to (`device_of`).
        read: Of the system.
    """
    with suppress(OSError):
        if read(_STRICT.format(os.major(device), os.minor(device))).strip() != "0":
            return None
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
