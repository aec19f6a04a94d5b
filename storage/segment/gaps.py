"""Gaps within segments: they show that a log was compacted, whatever is known of it now.

Its settings may have changed since, and it may have been compacted elsewhere and fetched from
there. A segment that was cut between two batches leaves a gap behind it, and none within.
"""

from collections.abc import Sequence
from contextlib import closing, suppress
from typing import Final, NamedTuple

from storage.environment.filesystem import Filesystem
from storage.errors import DiskError
from storage.index.batch_scan import read_batch_header, scan_headers

NEAR: Final = 1
"""Segments before and after the one in question that are read whole."""


class SegmentFile(NamedTuple):
    """The `.log` file of a segment, as it was when it was asked about."""

    path: str
    base_offset: int
    size: int


def has_gaps_within(filesystem: Filesystem, files: Sequence[SegmentFile], at: int) -> bool:
    """Whether a segment begins after its base offset, or one near to that at `at` has a gap.

    Reads one header of each segment, and all of a few: for a thread. A file that has gone
    meanwhile shows nothing.
    """
    near = files[max(at - NEAR, 0) : at + NEAR + 1]
    return any(_begins_late(filesystem, one) for one in files) or any(
        _has_gap(filesystem, one) for one in near
    )


def _begins_late(filesystem: Filesystem, segment: SegmentFile) -> bool:
    with suppress(DiskError), closing(filesystem.open(segment.path, readonly=True)) as file:
        header = read_batch_header(file, 0, segment.size)
        return header is not None and header.base_offset > segment.base_offset
    return False


def _has_gap(filesystem: Filesystem, segment: SegmentFile) -> bool:
    expected = segment.base_offset
    with suppress(DiskError), closing(filesystem.open(segment.path, readonly=True)) as file:
        for _, header in scan_headers(file, 0, segment.size):
            if header.base_offset > expected:
                return True
            expected = header.next_offset
    return False
