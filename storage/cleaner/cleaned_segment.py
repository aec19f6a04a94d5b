"""The segment that compaction writes: log and indexes under the suffix `.cleaned`.

Nothing reads it before it takes its place (`storage.log.replacement`), and a crash before leaves
files that the next start deletes. Index entries follow the same rules as those of a live segment:
one when more than `index.interval.bytes` were written since the last, never for position 0, and a
last time index entry at the end.
"""

from posixpath import join
from struct import Struct
from typing import Final

from protocol.records.batch import NO_TIMESTAMP, BatchHeader
from storage.environment.filesystem import Buffer, Filesystem
from storage.index.transaction_index import AbortedTxn, TransactionIndex
from storage.types.log_files import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    log_file_name,
)

WRITE_BUFFER_BYTES: Final = 512 * 1024
"""Batches gathered before a write; a larger batch is written alone."""

_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")


class CleanedSegment:
    """A segment being written by the cleaner.

    Attributes:
        base_offset: Of the first segment it replaces.
        size: Bytes of its log so far.
    """

    def __init__(
        self, directory: str, base_offset: int, filesystem: Filesystem, index_interval_bytes: int
    ) -> None:
        """Create the log file; remains of an earlier attempt are removed."""
        self.base_offset = base_offset
        self.size = 0
        self._directory = directory
        self._filesystem = filesystem
        self._index_interval_bytes = index_interval_bytes
        self._bytes_since_index_entry = 0
        self._offset_index = bytearray()
        self._time_index = bytearray()
        self._max_timestamp = NO_TIMESTAMP
        self._max_timestamp_offset = base_offset
        self._indexed_timestamp = NO_TIMESTAMP
        self._buffers: list[Buffer] = []
        self._buffered = 0
        for kind in SEGMENT_SUFFIXES:
            filesystem.unlink(self._path(kind), missing_ok=True)
        self._file = filesystem.open(self._path(LOG_SUFFIX), create=True)
        self._transaction_index = TransactionIndex(
            self._path(TRANSACTION_INDEX_SUFFIX), filesystem, exists=False
        )

    def append(self, header: BatchHeader, batch: Buffer) -> None:
        """Add a batch; `header` is the one it has now."""
        last_offset = header.last_offset
        if header.max_timestamp > self._max_timestamp:
            self._max_timestamp = header.max_timestamp
            self._max_timestamp_offset = last_offset
        if self._bytes_since_index_entry > self._index_interval_bytes:
            relative = last_offset - self.base_offset
            self._offset_index += _OFFSET_ENTRY.pack(relative, self.size)
            self._add_time_entry()
            self._bytes_since_index_entry = 0
        self._buffers.append(batch)
        self._buffered += len(batch)
        self.size += len(batch)
        self._bytes_since_index_entry += len(batch)
        if self._buffered >= WRITE_BUFFER_BYTES:
            self.write_out()

    def append_aborted(self, txn: AbortedTxn) -> None:
        """Keep an aborted transaction in the segment's index."""
        self._transaction_index.append(txn)

    def write_out(self) -> None:
        """Write what is gathered. Batches given to `append` may be reused afterwards."""
        if self._buffers:
            self._file.write_at(self._buffers, self.size - self._buffered)
            self._buffers.clear()
            self._buffered = 0

    def finish(self) -> None:
        """Write the indexes; all files and their names are on disk when this returns."""
        self.write_out()
        self._add_time_entry()
        self._file.sync()
        self._file.close()
        self._transaction_index.flush()
        for kind, data in (
            (OFFSET_INDEX_SUFFIX, self._offset_index),
            (TIME_INDEX_SUFFIX, self._time_index),
        ):
            file = self._filesystem.open(self._path(kind), create=True)
            file.write_at(data, 0)
            file.sync()
            file.close()
        self._filesystem.sync_directory(self._directory)

    def discard(self) -> None:
        """Abort the segment: delete its files."""
        self._buffers.clear()
        self._file.close()
        for kind in SEGMENT_SUFFIXES:
            self._filesystem.unlink(self._path(kind), missing_ok=True)

    def _add_time_entry(self) -> None:
        if self._max_timestamp > self._indexed_timestamp:
            relative = self._max_timestamp_offset - self.base_offset
            self._time_index += _TIME_ENTRY.pack(self._max_timestamp, relative)
            self._indexed_timestamp = self._max_timestamp

    def _path(self, kind: str) -> str:
        return join(self._directory, log_file_name(self.base_offset, kind, CLEANED_SUFFIX))
