"""Memory that this process may have: the least of what the machine has and what it was given.

    machine     sysconf: physical pages
    container   cgroup v2: memory.max of the process's cgroup and of all above it, bytes or `max`
                cgroup v1: memory.limit_in_bytes, a huge number where there is no limit
    process     RLIMIT_AS (ulimit -v)

A share of the machine's memory in a container that has a sixteenth of it is no bound at all: the
kernel kills the process long before.
"""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import suppress
from posixpath import dirname, join
from typing import Final

from storage.environment.dirty_pages import ReadText, read_text

_CGROUPS: Final = "/sys/fs/cgroup"
_OWN: Final = "/proc/self/cgroup"
_V1: Final = f"{_CGROUPS}/memory/memory.limit_in_bytes"


def address_space() -> int | None:
    """RLIMIT_AS in bytes; None: there is no limit."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if limit == resource.RLIM_INFINITY else limit


def physical_memory() -> int:
    """The machine's, in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def memory_bytes(
    read: ReadText = read_text,
    physical: Callable[[], int] = physical_memory,
    limit: Callable[[], int | None] = address_space,
) -> int:
    """Bytes that this process may have at most.

    Args:
        read: Of the system.
        physical: The machine's memory.
        limit: The process's own limit.
    """
    found = [physical(), *_of_containers(read)]
    own = limit()
    if own is not None:
        found.append(own)
    return min(found)


def _of_containers(read: ReadText) -> Iterator[int]:
    """The limits that are set; a container sees its own cgroup as the root, or by its path."""
    path = ""
    with suppress(OSError):
        for line in read(_OWN).splitlines():
            number, _, rest = line.partition(":")
            if number == "0":
                path = rest.partition(":")[2].strip("/")
    while True:
        with suppress(OSError, ValueError):
            yield int(read(join(_CGROUPS, path, "memory.max")))
        if not path:
            break
        path = dirname(path)
    with suppress(OSError, ValueError):
        yield int(read(_V1))
