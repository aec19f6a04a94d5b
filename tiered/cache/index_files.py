"""Files of the index cache: their names, the scan at a start, and a loaded set.

As in Kafka's `remote-log-index-cache`, and the manifest beside them:

    <start offset>_<segment uuid, 22 characters>.index       offset index
                                                .timeindex   time index
                                                .txnindex    transaction index, if there is one
                                                .manifest    comes last: without it there is no set
    ....tmp        being written
    ....deleted    evicted, removed a little later

Nothing here is synced, so after a power cut a file may be empty or hold zeros; and an empty
transaction index would mean a segment in which nothing was aborted. So what is read
again is compared with the sums in the manifest.

Everything here may wait for the disk: call it in a thread.

Source: Kafka, RemoteIndexCache.java.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from operator import lt
from typing import Final, NamedTuple
from uuid import UUID

from protocol.records.batch import crc32c
from storage.environment.filesystem import Filesystem
from storage.errors import CorruptFileError, DiskError
from storage.index import offset_index, time_index, transaction_index
from storage.types.uuid_text import format_uuid, parse_uuid
from tiered.cache.remote_aborts import RemoteAborts
from tiered.format.manifest_layout import (
    MANIFEST_BYTES_MAX,
    FileSum,
    SegmentLayout,
    read_layout,
    read_sums,
)
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.tier import SideFile

OFFSET_SUFFIX: Final = ".index"
TIME_SUFFIX: Final = ".timeindex"
TRANSACTION_SUFFIX: Final = ".txnindex"
MANIFEST_SUFFIX: Final = ".manifest"
DELETED_SUFFIX: Final = ".deleted"
TEMPORARY_SUFFIX: Final = ".tmp"

SUFFIXES: Final = (MANIFEST_SUFFIX, OFFSET_SUFFIX, TIME_SUFFIX, TRANSACTION_SUFFIX)
"""The manifest first: a set that is half renamed is no set any more."""

_NAMES: Final = frozenset(
    suffix + ending for suffix in SUFFIXES for ending in ("", TEMPORARY_SUFFIX, DELETED_SUFFIX)
)

_ENTRY_SIZES: Final = {
    OFFSET_SUFFIX: offset_index.ENTRY_SIZE,
    TIME_SUFFIX: time_index.ENTRY_SIZE,
    TRANSACTION_SUFFIX: transaction_index.ENTRY_SIZE,
}
_REQUIRED: Final = frozenset((OFFSET_SUFFIX, TIME_SUFFIX, MANIFEST_SUFFIX))
_ENTRIES_PER_BLOCK: Final = 8192
"""Compared in one call of C, which holds the interpreter: some 0.3 ms."""


class FoundSet(NamedTuple):
    """A whole set in the directory; `stem` without the directory."""

    id: UUID
    stem: str
    size: int


class RemoteIndexes(NamedTuple):
    """A set in memory.

    Attributes:
        layout: How the log is cut into chunks.
        offsets: Of the offset index: last offset of the batch at `positions`, relative.
        positions: Parallel to it, ascending.
        aborts: The transaction index.
        disk_bytes: Of all files.
    """

    layout: SegmentLayout
    offsets: "array[int]"
    positions: "array[int]"
    aborts: RemoteAborts
    disk_bytes: int

    @property
    def memory_bytes(self) -> int:
        """About what it takes."""
        return 8 * len(self.offsets) + 120 * len(self.aborts) + 1024

    def lookup(self, relative_offset: int) -> int:
        """Position of the last batch that ends at or before the offset; 0 without one."""
        at = bisect_right(self.offsets, relative_offset)
        return self.positions[at - 1] if at else 0

    def last_position_up_to(self, position: int) -> int:
        """The last indexed batch boundary at or before a position; 0 without one."""
        at = bisect_right(self.positions, position)
        return self.positions[at - 1] if at else 0

    def upper_bound(self, position: int) -> int | None:
        """A relative offset above all records before `position`; None: the segment's end."""
        at = bisect_left(self.positions, position)
        return self.offsets[at] + 1 if at < len(self.offsets) else None


def stem_of(metadata: RemoteLogSegmentMetadata) -> str:
    """The common part of the names."""
    return f"{metadata.start_offset}_{format_uuid(metadata.id)}"


def scan(filesystem: Filesystem, directory: str) -> list[FoundSet]:
    """The whole sets in a directory, which is made if it is missing.

    Of sets that are not whole, and of what was evicted or not finished, the files are removed.
    Files with other names are not the cache's, and stay.
    """
    filesystem.mkdir(directory)
    files: dict[tuple[str, UUID], dict[str, int]] = {}
    for entry in filesystem.list_directory(directory):
        stem, dot, rest = entry.name.partition(".")
        id_ = None if entry.is_directory or dot + rest not in _NAMES else _id_of(stem)
        if id_ is not None:
            files.setdefault((stem, id_), {})[dot + rest] = entry.size
    found = []
    for (stem, id_), sizes in files.items():
        known = {suffix: size for suffix, size in sizes.items() if suffix in SUFFIXES}
        whole = _is_sane(filesystem, f"{directory}/{stem}", known)
        for suffix in sizes:
            if not whole or suffix not in known:
                _unlink(filesystem, f"{directory}/{stem}{suffix}")
        if whole:
            found.append(FoundSet(id_, stem, sum(known.values())))
    return found


def _id_of(stem: str) -> UUID | None:
    start, _, uuid = stem.partition("_")
    if not (start.isascii() and start.isdecimal() and len(start) <= 19):
        return None
    try:
        return parse_uuid(uuid)
    except ValueError:
        return None


def _is_sane(filesystem: Filesystem, path: str, sizes: dict[str, int]) -> bool:
    if not sizes.keys() >= _REQUIRED or sizes[MANIFEST_SUFFIX] > MANIFEST_BYTES_MAX:
        return False
    if any(sizes.get(suffix, 0) % size for suffix, size in _ENTRY_SIZES.items()):
        return False
    try:
        read_layout(filesystem.read_bytes(path + MANIFEST_SUFFIX))
    except (CorruptFileError, DiskError):
        return False
    return True


def load(filesystem: Filesystem, path: str, metadata: RemoteLogSegmentMetadata) -> RemoteIndexes:
    """A set, compared with its manifest's sums and checked for consistency.

    Args:
        filesystem: Where it is.
        path: Directory and stem.
        metadata: Of the segment.

    Raises:
        CorruptFileError: A file is missing, cut off, or not of such a segment.
        DiskError: It could not be read.
    """
    if not all(filesystem.exists(path + suffix) for suffix in _REQUIRED):
        raise CorruptFileError(f"indexes {path} are not complete")
    if filesystem.file_size(path + MANIFEST_SUFFIX) > MANIFEST_BYTES_MAX:
        raise CorruptFileError(f"manifest {path} is too large")
    manifest = filesystem.read_bytes(path + MANIFEST_SUFFIX)
    layout = read_layout(manifest)
    if layout.log_bytes != metadata.segment_size_bytes:
        raise CorruptFileError(
            f"manifest {path} is of a log of {layout.log_bytes} bytes, metadata say "
            f"{metadata.segment_size_bytes}"
        )
    sums = read_sums(manifest)
    data = _read(filesystem, path + OFFSET_SUFFIX, sums.get(SideFile.OFFSET))
    offsets, positions = _offset_index(data, path, metadata, layout)
    times = _read(filesystem, path + TIME_SUFFIX, sums.get(SideFile.TIMESTAMP))
    if len(times) % time_index.ENTRY_SIZE:
        raise CorruptFileError(f"time index {path} ends within an entry")
    transactions = _read(filesystem, path + TRANSACTION_SUFFIX, sums.get(SideFile.TRANSACTION))
    aborts = RemoteAborts.parse(transactions, metadata.start_offset, metadata.end_offset)
    size = len(manifest) + len(data) + len(times) + len(transactions)
    return RemoteIndexes(layout, offsets, positions, aborts, size)


def _read(filesystem: Filesystem, path: str, expected: FileSum | None) -> bytes:
    """A file as it was copied; a missing one is empty."""
    data = filesystem.read_bytes(path) if filesystem.exists(path) else b""
    if (len(data), crc32c(data)) != (expected or (0, 0)):
        raise CorruptFileError(f"index {path} is not the one that was copied")
    return data


def _offset_index(
    data: bytes, path: str, metadata: RemoteLogSegmentMetadata, layout: SegmentLayout
) -> "tuple[array[int], array[int]]":
    size = offset_index.ENTRY_SIZE
    if len(data) % size:
        raise CorruptFileError(f"offset index {path} ends within an entry")
    if data.endswith(bytes(size)):
        # Zeros that the broker which copied it had preallocated.
        data = data[: -(-len(data.rstrip(b"\0")) // size) * size]
    both = array("i", data)
    if sys.byteorder == "little":
        both.byteswap()
    offsets, positions = both[0::2], both[1::2]
    if offsets and not (
        offsets[0] >= 0
        and positions[0] > 0
        and offsets[-1] <= metadata.end_offset - metadata.start_offset
        and positions[-1] < layout.log_bytes
        and _ascends(offsets)
        and _ascends(positions)
    ):
        raise CorruptFileError(f"offset index {path} does not ascend within its segment")
    return offsets, positions


def _ascends(column: "array[int]") -> bool:
    for start in range(0, len(column), _ENTRIES_PER_BLOCK):
        block = column[start : start + _ENTRIES_PER_BLOCK + 1]
        if not all(map(lt, block, block[1:])):
            return False
    return True


def mark_deleted(filesystem: Filesystem, path: str) -> None:
    """Rename a set's files; missing ones are fine. The manifest goes first."""
    for suffix in SUFFIXES:
        try:
            if filesystem.exists(path + suffix):
                filesystem.rename(path + suffix, path + suffix + DELETED_SUFFIX)
        except DiskError:
            # It must not be found again as half a set.
            _unlink(filesystem, path + suffix)


def remove_deleted(filesystem: Filesystem, path: str) -> None:
    """Remove what `mark_deleted` renamed."""
    for suffix in SUFFIXES:
        _unlink(filesystem, path + suffix + DELETED_SUFFIX)


def _unlink(filesystem: Filesystem, path: str) -> bool:
    try:
        filesystem.unlink(path, missing_ok=True)
    except DiskError:
        return False
    return True
