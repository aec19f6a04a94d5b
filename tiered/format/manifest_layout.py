"""Layout of a segment, read out of its manifest: chunks of the log, sums of the indexes.

Only this is parsed here, so that an offset look-up needs no more than two numbers in memory;
downloads parse the manifest as a whole (`tiered.format.manifest`).

    "chunkIndex": {"originalChunkSize": 4194304, "originalFileSize": 1073741824, ...}
    "varve": {..., "sideFiles": {"offset": {"size": 8, "crc32c": 7}, ...}, "crc32c":"01234567"}}}

The last of it is the CRC-32C of the manifest without these eight digits.

Source: Aiven's tiered storage, chunk manifest (ChunkIndex.java).
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from protocol.records.batch import crc32c
from storage.errors import CorruptFileError

MANIFEST_BYTES_MAX: Final = 64 * 1024 * 1024
"""Far above any: a segment of 2 GiB in chunks of 4 KiB has 16 MiB."""


ELEMENTS_MAX: Final = 20_000
"""Commas and opening brackets of a manifest that is parsed here. Ours have some hundreds, however
many chunks there are; 8 MiB of nothing else would hold the interpreter for half a second."""

_TAIL: Final = re.compile(rb'"crc32c":"([0-9a-f]{8})"\}\}\}\Z')
_TAIL_TEXT: Final = '"crc32c":"%08x"}}}'
_TAIL_SIZE: Final = len(_TAIL_TEXT % 0)


class FileSum(NamedTuple):
    """Of a side file as it was copied: bytes and CRC-32C."""

    size: int
    crc: int


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
    """The layout in a manifest.

    Raises:
        CorruptFileError: It has none.
    """
    try:
        index = _parse(manifest)["chunkIndex"]
        chunk_bytes, log_bytes = index["originalChunkSize"], index["originalFileSize"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptFileError(f"manifest has no chunk index: {error!r}") from None
    if not (type(chunk_bytes) is type(log_bytes) is int and chunk_bytes > 0 and log_bytes > 0):
        raise CorruptFileError(f"manifest has chunks of {chunk_bytes!r} of {log_bytes!r} bytes")
    return SegmentLayout(chunk_bytes, log_bytes)


def read_sums(manifest: bytes) -> Mapping[str, FileSum]:
    """The sums of a segment's side files, by their names in the manifest.

    A file that is not named there was not copied.

    Raises:
        CorruptFileError: The manifest has none, or fails its own CRC.
    """
    recorded = recorded_crc(manifest)
    if recorded is None or recorded != crc_of(manifest):
        raise CorruptFileError("manifest fails its CRC")
    try:
        files = _parse(manifest)["remoteLogSegmentMetadata"]["varve"]["sideFiles"]
        return {
            str(name): FileSum(int(file["size"]), int(file["crc32c"]))
            for name, file in files.items()
            # Of another program's segment only those are known that were read.
            if file["crc32c"] is not None
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptFileError(f"manifest has no sums of side files: {error!r}") from None


def _parse(manifest: bytes) -> Any:
    if sum(map(manifest.count, (b",", b"[", b"{"))) > ELEMENTS_MAX:
        raise ValueError("too many elements")
    return json.loads(manifest)


def seal(head: bytes) -> bytes:
    """A manifest with its CRC; `head` is all of it before `"crc32c":`."""
    crc = crc_of(head + (_TAIL_TEXT % 0).encode())
    return head + (_TAIL_TEXT % crc).encode()


def recorded_crc(manifest: bytes) -> int | None:
    """The CRC in a manifest; None if it does not end with one."""
    tail = _TAIL.search(manifest, max(len(manifest) - _TAIL_SIZE, 0))
    return None if tail is None else int(tail[1], 16)


def crc_of(manifest: bytes) -> int:
    """CRC-32C of all but the eight digits of the CRC itself."""
    view = memoryview(manifest)
    at = len(view) - len('00000000"}}}')
    crc: Callable[..., int] = crc32c
    return crc(view[at + 8 :], crc(view[:at]))
