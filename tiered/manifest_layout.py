"""What a reader must know of a manifest: into which chunks a segment's log is cut.

Only this is looked at here, so that looking up an offset needs no more than two numbers in memory;
the manifest as a whole is the business of whoever downloads (`tiered.manifest`).

    "chunkIndex": {"originalChunkSize": 4194304, "originalFileSize": 1073741824, ...}

Source: Aiven's tiered storage, chunk manifest (ChunkIndex.java).
"""

import json
from typing import Final, NamedTuple

from storage.errors import CorruptFileError

MANIFEST_BYTES_MAX: Final = 64 * 1024 * 1024
"""Far above any: a segment of 2 GiB in chunks of 4 KiB has 16 MiB."""


class SegmentLayout(NamedTuple):
    """How a segment's log is cut.

    Attributes:
        chunk_bytes: Of every chunk but the last.
        log_bytes: Of the log.
    """

    chunk_bytes: int
    log_bytes: int

    @property
    def chunks(self) -> int:
        """How many there are."""
        return -(-self.log_bytes // self.chunk_bytes)

    def chunk_length(self, chunk: int) -> int:
        """Bytes of one chunk."""
        return min(self.chunk_bytes, self.log_bytes - chunk * self.chunk_bytes)


def read_layout(manifest: bytes) -> SegmentLayout:
    """The layout that a manifest tells.

    Raises:
        CorruptFileError: It does not.
    """
    try:
        index = json.loads(manifest)["chunkIndex"]
        chunk_bytes, log_bytes = index["originalChunkSize"], index["originalFileSize"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptFileError(f"manifest has no chunk index: {error!r}") from None
    if not (type(chunk_bytes) is type(log_bytes) is int and chunk_bytes > 0 and log_bytes > 0):
        raise CorruptFileError(f"manifest has chunks of {chunk_bytes!r} of {log_bytes!r} bytes")
    return SegmentLayout(chunk_bytes, log_bytes)
