"""Chunk file: the name, check and scan of cached chunks of remote segments.

    <chunk cache directory>/<2 hex>/<segment uuid, 32 hex>.<chunk>.<length>.<crc>[.ref]

    2 hex      first two characters of the uuid: the chunks of a segment lie together
    chunk      counted from 0, decimal
    length     bytes of the file, decimal
    crc        CRC-32C of the chunk, 8 hex
    .ref       the file only says where the chunk is: see `chunk_reference`

Without `.ref` the content is the bytes of the segment's log from chunk x chunk size on, as they
were before compression or encryption. A file is written once, under another name that ends in
`.part`, and renamed when it is whole: it is never changed. The name holds what a restart must know,
so reading the directory is enough; the checksum is compared when the file is used first after a
restart.

Everything here may wait for the disk: call it in a thread.
"""

import re
from typing import Final, NamedTuple
from uuid import UUID

from fastcrc import crc32

from storage.environment.filesystem import Filesystem
from storage.errors import DiskError
from tiered.format.chunk_reference import (
    REFERENCE_BYTES,
    ChunkBytes,
    ReferencedChunk,
    open_reference,
)

PART_SUFFIX: Final = ".part"

_NAME: Final = re.compile(r"([0-9a-f]{32})\.([0-9]{1,9})\.([0-9]{1,10})\.([0-9a-f]{8})(\.ref)?")
_UNFINISHED: Final = re.compile(
    rf"{_NAME.pattern}\.tmp|[0-9a-f]{{32}}\.[0-9]{{1,9}}\.[0-9a-z-]{{1,40}}\.part(\.tmp)?"
)
_FOLDER: Final = re.compile(r"[0-9a-f]{2}")
_READ_BYTES: Final = 1024 * 1024


class ChunkKey(NamedTuple):
    """Which chunk of which copy."""

    segment: UUID
    chunk: int


class ChunkFile(NamedTuple):
    """What a name says."""

    key: ChunkKey
    length: int
    crc: int
    is_reference: bool = False

    @property
    def disk_bytes(self) -> int:
        """What it takes in the cache."""
        return REFERENCE_BYTES if self.is_reference else self.length


def folder_of(directory: str, key: ChunkKey) -> str:
    """Where the files of the segment are."""
    return f"{directory}/{key.segment.hex[:2]}"


def chunk_path(directory: str, file: ChunkFile) -> str:
    """The name of a whole chunk."""
    segment = file.key.segment.hex
    name = f"{segment}.{file.key.chunk}.{file.length}.{file.crc:08x}"
    return f"{directory}/{segment[:2]}/{name}{'.ref' if file.is_reference else ''}"


def part_path(directory: str, key: ChunkKey, token: str) -> str:
    """The name of a chunk that is being written; `token` names this process and attempt."""
    segment = key.segment.hex
    return f"{directory}/{segment[:2]}/{segment}.{key.chunk}.{token}{PART_SUFFIX}"


def parse_name(name: str) -> ChunkFile | None:
    """What a name says; None for one that is none of ours."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    segment, chunk, length, crc, suffix = found.groups()
    key = ChunkKey(UUID(hex=segment), int(chunk))
    return ChunkFile(key, int(length), int(crc, 16), suffix is not None)


def list_folders(filesystem: Filesystem, directory: str) -> list[str]:
    """Names of the folders with chunks; makes the directory if it is missing."""
    filesystem.mkdir(directory)
    entries = filesystem.list_directory(directory)
    return sorted(e.name for e in entries if e.is_directory and _FOLDER.fullmatch(e.name))


def scan_folder(filesystem: Filesystem, folder: str, token: str) -> list[ChunkFile]:
    """The whole chunks in a folder; removes what an earlier process did not finish.

    Files with names that this module does not give are not the cache's, and stay.

    Args:
        filesystem: Where it is.
        folder: One of `list_folders`, with its directory; may be missing.
        token: Of this process: its unfinished files are left alone.
    """
    if not filesystem.exists(folder):
        return []
    found = []
    for entry in filesystem.list_directory(folder):
        if entry.is_directory:
            continue
        file = parse_name(entry.name)
        if file is not None and (file.is_reference or file.length == entry.size):
            found.append(file)
        elif (file or _UNFINISHED.fullmatch(entry.name)) and token not in entry.name:
            filesystem.unlink(f"{folder}/{entry.name}", missing_ok=True)
    return found


def open_chunk(filesystem: Filesystem, path: str, file: ChunkFile) -> ChunkBytes:
    """Open a whole chunk.

    Raises:
        DiskError: It is gone; of a reference also: the object was changed.
    """
    if not file.is_reference:
        return filesystem.open(path, readonly=True, spare=True)
    try:
        return open_reference(filesystem, path, file.length)
    except ValueError as error:
        raise DiskError(str(error), path) from error


def settle(filesystem: Filesystem, part: str, path: str, file: ChunkFile) -> ChunkBytes:
    """Give a downloaded chunk its name, and open it.

    Not synced: after a power cut the checksum shows whether the file is whole.
    """
    filesystem.rename(part, path)
    return open_chunk(filesystem, path, file)


def open_checked(filesystem: Filesystem, path: str, named: ChunkFile) -> ChunkBytes | None:
    """The chunk, if it is what its name says; else the file is removed."""
    length, crc = named.length, named.crc
    try:
        if named.is_reference:
            chunk = open_chunk(filesystem, path, named)
            if isinstance(chunk, ReferencedChunk) and chunk.crc() == crc:
                return chunk
            remove(filesystem, path)
            return None
        file = filesystem.open(path, readonly=True)
        sum_ = 0
        done = 0
        buffer = memoryview(bytearray(min(length, _READ_BYTES)))
        while done < length:
            count = file.read_into(buffer[: length - done], done)
            if count == 0:
                break
            sum_ = crc32.iscsi(buffer[:count], sum_)
            done += count
        if done == length == file.size() and sum_ == crc:
            return file
    except DiskError:
        # Whatever it is, the chunk can be had again; a disk that is broken says so then.
        remove(filesystem, path)
        return None
    remove(filesystem, path)
    return None


def remove(filesystem: Filesystem, path: str) -> bool:
    """Remove a file of the cache; whether that worked (a missing one is fine)."""
    try:
        filesystem.unlink(path, missing_ok=True)
    except DiskError:
        return False
    return True
