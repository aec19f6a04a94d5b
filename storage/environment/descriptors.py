"""File descriptors: how many files and sockets this process may have open, by purpose.

    limit ──┬── reserved      what is not counted: listeners, locks, the metadata store, the tier
            │                 process, the admin port, files that a thread opens for a moment
            ├── files         log and cache files; those in the pool, and those that were pushed out
            │   └── pooled    of it while a slice of them was on its way to a socket
            └── connections   whatever `max.connections` says

A connection or a fetch too many is refused, and comes again; a file that the broker itself needs
is opened out of the reserve. So running into the limit is for programs beside ours, and then the
pool lets go of what it holds (`LocalFilesystem.open`).
"""

import resource
from typing import Final, NamedTuple

from typing_extensions import override

RESERVED_MIN: Final = 64
RESERVED_MAX: Final = 1_024
RESERVED_SHARE: Final = 16
"""One part in so many is kept for what is not counted, between the bounds above."""

POOLED_MAX: Final = 16_384
"""Files held open for later, at most: each keeps its inode in the kernel's memory."""

UNLIMITED: Final = 1 << 20
"""What counts for the limit where the system sets none."""

LOW: Final = 10_000
"""Below, the operator is warned. Kafka's documentation asks for 100,000."""


class DescriptorShares(NamedTuple):
    """How the descriptors are shared out; see the module."""

    limit: int
    files: int
    pooled: int
    connections: int

    @property
    def is_low(self) -> bool:
        """Whether a usual load would run into it."""
        return self.limit < LOW

    @override
    def __str__(self) -> str:
        return (
            f"{self.limit} open files (ulimit -n): at most {self.connections} connections and "
            f"{self.files} log files at once"
        )


def share_out(limit: int) -> DescriptorShares:
    """Share out `limit` descriptors: what is not reserved goes to files and connections, halved."""
    reserved = min(max(limit // RESERVED_SHARE, RESERVED_MIN), RESERVED_MAX)
    left = max(limit - reserved, 4)
    files = left // 2
    return DescriptorShares(limit, files, max(min(files // 2, POOLED_MAX), 1), left - files)


def descriptor_limit() -> int:
    """The soft limit that holds now."""
    return _counted(resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def raise_descriptor_limit() -> int:
    """Raise the soft limit to the hard one, as every process may; returns what holds then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _counted(soft) < _counted(hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            # macOS names a hard limit that its kernel then does not grant: the soft one stays.
            return _counted(soft)
    return _counted(hard)


def _counted(limit: int) -> int:
    return UNLIMITED if limit == resource.RLIM_INFINITY else min(limit, UNLIMITED)
