"""Where a partition's log ends, read from its last segments without opening the log.

    last segment ──> from the last entry of its offset index on ──> batches, each with its CRC
    ──> the end of the last whole one, and its leader epoch; no batch: the segment before it

What follows a batch that is cut off or damaged does not count: a broker would truncate it, too.
"""

from posixpath import join
from struct import Struct
from typing import Final, NamedTuple

from protocol.errors import DecodeError
from protocol.records.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    BatchHeader,
    checked_header,
    crc_matches,
    read_header,
)
from storage.environment.filesystem import File, Filesystem
from storage.types.log_files import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    log_file_name,
    parse_log_file_name,
)

NO_EPOCH: Final = -1
_ENTRY: Final = Struct(">ii")


class LogEnd(NamedTuple):
    """How far a log goes. Of two replicas the greater one has all that is committed.

    Attributes:
        epoch: Of the last batch; -1: there is none.
        offset: Behind the last record.
    """

    epoch: int
    offset: int


def read_log_end(filesystem: Filesystem, path: str) -> LogEnd:
    """Where the log in a partition's directory ends.

    Raises:
        DiskError: It cannot be read.
    """
    names = [parse_log_file_name(entry.name) for entry in filesystem.list_directory(path)]
    bases = sorted(
        name.base_offset
        for name in names
        if name is not None and name.kind == LOG_SUFFIX and not name.stage
    )
    for base in reversed(bases):
        last = _last_batch(filesystem, path, base)
        if last is not None:
            return LogEnd(last.leader_epoch, last.next_offset)
    return LogEnd(NO_EPOCH, bases[0] if bases else 0)


def _last_batch(filesystem: Filesystem, path: str, base: int) -> BatchHeader | None:
    log = filesystem.open(join(path, log_file_name(base, LOG_SUFFIX)))
    try:
        size = log.size()
        start = _indexed(filesystem, join(path, log_file_name(base, OFFSET_INDEX_SUFFIX)), size)
        return _scan(log, start, size, base) or (_scan(log, 0, size, base) if start else None)
    finally:
        log.close()


def _scan(log: File, position: int, size: int, base: int) -> BatchHeader | None:
    """The last good batch at or behind `position`, which must begin one."""
    last = None
    while position + HEADER_SIZE <= size:
        header = read_header(log.read_at(HEADER_SIZE, position))
        whole = header.batch_length + LOG_OVERHEAD
        if whole < HEADER_SIZE or position + whole > size or header.base_offset < base:
            break
        batch = memoryview(log.read_at(whole, position))
        try:
            header = checked_header(batch)
        except DecodeError:
            break
        if not crc_matches(batch, 0, header):
            break
        last = header
        position += whole
    return last


def _indexed(filesystem: Filesystem, path: str, size: int) -> int:
    """Position of a batch near the end; 0: the index has none that can be."""
    if not filesystem.exists(path):
        return 0
    file = filesystem.open(path)
    try:
        data = file.read_at(file.size(), 0)
    finally:
        file.close()
    # An index of a log that was not closed has zeros behind its last entry.
    for at in range(len(data) // _ENTRY.size - 1, -1, -1):
        offset, position = _ENTRY.unpack_from(data, at * _ENTRY.size)
        if offset or position:
            return position if 0 < position < size else 0
    return 0
