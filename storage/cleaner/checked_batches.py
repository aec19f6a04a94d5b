"""Read the batches of a closed segment and check their sums: what compaction writes again.

A damaged batch must not get a fresh checksum from us.
"""

from collections.abc import Iterator
from contextlib import closing

from protocol.errors import DecodeError
from protocol.records.batch import LOG_OVERHEAD, BatchHeader, checked_header, crc_matches
from storage.environment.filesystem import Filesystem
from storage.errors import CorruptFileError


def read_checked_batches(
    filesystem: Filesystem, path: str, size: int, read_bytes: int
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """(header, bytes) of the batches of a `.log` file. Bytes are kept alive.

    Args:
        filesystem: Where the file is.
        path: Of the file.
        size: Where its batches end, in bytes.
        read_bytes: Read at a time; a larger batch is read alone.

    Raises:
        CorruptFileError: A batch is damaged, or the file ends within one.
        DiskError: The disk refused.
    """
    with closing(filesystem.open(path, readonly=True)) as file:
        position = 0
        wanted = read_bytes
        while position < size:
            wanted = min(wanted, size - position)
            data = file.read_at(wanted, position)
            if len(data) < wanted:
                raise CorruptFileError(f"{path} ends before {position + wanted}")
            view = memoryview(data)
            at = 0
            needed = read_bytes
            while len(data) - at > LOG_OVERHEAD:
                batch_size = int.from_bytes(data[at + 8 : at + 12], "big") + LOG_OVERHEAD
                if at + batch_size > len(data):
                    needed = max(batch_size, needed)
                    break
                yield _checked(view, at, path, position), view[at : at + batch_size]
                at += batch_size
            if at == 0 and wanted >= min(needed, size - position):
                raise CorruptFileError(f"{path} ends within a batch at {position}")
            position += at
            wanted = needed


def _checked(view: memoryview, at: int, path: str, position: int) -> BatchHeader:
    try:
        header = checked_header(view, at)
    except DecodeError as error:
        raise CorruptFileError(f"{path} at {position + at}: {error}") from error
    if not crc_matches(view, at, header):
        raise CorruptFileError(f"{path} at {position + at}: record batch fails its CRC")
    return header
