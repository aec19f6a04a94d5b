"""The offset index of a segment in the bucket: positions in its log at which batches begin.

Each entry has the position of a batch and the batch's last offset; positions ascend, as offsets do.
It may have no entries: one is made only after so many bytes, and a damaged one has none.
"""

import logging
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from pipeline.plan.bucket import Bucket
from pipeline.plan.errors import DamagedBucketError
from pipeline.plan.segment_files import read_segment_files
from storage.index.offset_index import ENTRY_SIZE
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.tier import SideFile

_log = logging.getLogger(__name__)


class SegmentIndex(NamedTuple):
    """See the module.

    Attributes:
        log_bytes: Of the segment's log.
        last_offsets, positions: Of the batches that have an entry; parallel, ascending.
    """

    log_bytes: int
    last_offsets: Sequence[int]
    positions: Sequence[int]

    def position_of(self, offset: int) -> int:
        """Position at which to read for rows from `offset` on: 0, or the start of a batch."""
        at = bisect_right(self.last_offsets, offset)
        return self.positions[at - 1] if at else 0

    def position_behind(self, offset: int) -> int:
        """Position by which all rows below `offset` have come: the log's end or a batch's start."""
        at = bisect_left(self.last_offsets, offset - 1) + 1
        return self.positions[at] if at < len(self.positions) else self.log_bytes

    def offset_near(self, position: int) -> int | None:
        """The offset behind the last indexed batch at or before a position; None without one."""
        at = bisect_right(self.positions, position)
        return self.last_offsets[at - 1] + 1 if at else None


async def read_segment_index(bucket: Bucket, metadata: RemoteLogSegmentMetadata) -> SegmentIndex:
    """A segment's index; one without entries where it is damaged.

    Rows do not depend on it: then all of the segment is read for any part of it.

    Raises:
        ObjectNotFoundError: The segment was removed.
        RemoteStorageError: The store cannot give it, or a key pair is missing.
    """
    size = metadata.segment_size_bytes
    try:
        keys, _, files = await read_segment_files(bucket, metadata, (SideFile.OFFSET,))
    except DamagedBucketError as error:
        _log.warning("%s: the segment is read without its offset index", error)
        return SegmentIndex(size, (), ())
    try:
        return parse_offset_index(
            files[SideFile.OFFSET], metadata.start_offset, metadata.end_offset, size
        )
    except ValueError as error:
        _log.warning("%s: %s: the segment is read without it", keys.indexes, error)
        return SegmentIndex(size, (), ())


def parse_offset_index(
    data: bytes, start_offset: int, last_offset: int, log_bytes: int
) -> SegmentIndex:
    """The content of a `.index` file.

    Raises:
        ValueError: It does not ascend within such a segment.
    """
    if len(data) % ENTRY_SIZE:
        raise ValueError("the offset index ends within an entry")
    if data.endswith(bytes(ENTRY_SIZE)):
        # Zeros that the broker which copied it had preallocated.
        data = data[: -(-len(data.rstrip(b"\0")) // ENTRY_SIZE) * ENTRY_SIZE]
    both = array("i", data)
    if sys.byteorder == "little":
        both.byteswap()
    offsets, positions = both[0::2], both[1::2]
    if offsets and not (
        offsets[0] >= 0
        and positions[0] > 0
        and offsets[-1] <= last_offset - start_offset
        and positions[-1] < log_bytes
        and all(map(int.__lt__, offsets, offsets[1:]))
        and all(map(int.__lt__, positions, positions[1:]))
    ):
        raise ValueError("the offset index does not ascend within its segment")
    return SegmentIndex(log_bytes, array("q", (start_offset + one for one in offsets)), positions)
