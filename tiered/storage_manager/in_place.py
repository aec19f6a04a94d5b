"""Local chunks: compared in the store's own files and referred to, without a copy.

Where the store's objects are files here and a segment is stored plainly, nothing need be copied:
each chunk is compared with its sum in the manifest, and a reference is written into the chunk cache
(`chunk_reference`). Comparing a chunk takes a millisecond, a call for it as much again: messages,
tasks, changes of threads. So a run of chunks is compared in one call.

    [ object   ....|chunk 4|chunk 5|chunk 6|....  ]
                       └───────┴───────┴──── CRC-32C in blocks
    <folder>/<chunk 4>.ref  <chunk 5>.ref  <chunk 6>.ref

What does not fit its sum is left out: it is then read like any other chunk, which tries twice and
reports the error.
"""

from collections.abc import Sequence
from typing import Final

from fastcrc import crc32

from storage.environment.filesystem import File, Filesystem
from storage.errors import DiskError
from tiered.format.chunk_file import ChunkFile, ChunkKey, chunk_path, folder_of
from tiered.format.chunk_reference import Reference
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.storage_manager.manifest_cache import OpenManifest
from tiered.storage_manager.read import write_file
from tiered.tier import FoundChunk, FoundChunks

BLOCK_BYTES: Final = 1024 * 1024
"""Read and summed at a time. Less costs more changes of threads than it saves in memory traffic."""

NOTHING_FOUND: Final = FoundChunks("", 0, 0, ())


def refer_to_chunks(
    filesystem: Filesystem,
    opened: OpenManifest,
    metadata: RemoteLogSegmentMetadata,
    place: str,
    chunks: Sequence[int],
    directory: str,
) -> FoundChunks:
    """Compare chunks of an object and write references to them; runs in a thread.

    Args:
        filesystem: Of the object and of the cache.
        opened: The manifest of the segment, which is stored plainly.
        metadata: Of the segment.
        place: File of the object.
        chunks: Which, counted from 0.
        directory: Of the chunk cache.

    Returns:
        Those that are what they should be. None, but the object's path, if it cannot be read.
    """
    manifest = opened.manifest
    found: list[FoundChunk] = []
    size = modified_ns = 0
    block = memoryview(bytearray(BLOCK_BYTES))
    try:
        file = filesystem.open(place, readonly=True)
        # Before it is read: a later change then shows.
        size, modified_ns = file.stamp()
        filesystem.mkdir(folder_of(directory, ChunkKey(metadata.id, 0)))
        for number in chunks:
            if not 0 <= number < manifest.chunk_index.count:
                continue
            _, _, length, position, _ = manifest.chunk(number)
            if manifest.chunk_crcs is None:
                break
            crc = manifest.chunk_crcs[number]
            if _crc(file, position, length, block) != crc:
                continue
            name = ChunkFile(ChunkKey(metadata.id, number), length, crc, is_reference=True)
            reference = Reference(place, position, size, modified_ns)
            # Under its name at once: half of one is no reference, and is dropped when it is read.
            write_file(filesystem, chunk_path(directory, name), reference.encode())
            found.append(FoundChunk(number, length, crc, position))
    except DiskError:
        # A read of one of the others will report it.
        pass
    return FoundChunks(place, size, modified_ns, found)


def _crc(file: File, position: int, length: int, block: memoryview) -> int | None:
    """CRC-32C of a range of a file; None if the file ends before it does."""
    crc = 0
    done = 0
    while done < length:
        part = block[: length - done]
        count = file.read_into(part, position + done)
        if count != len(part):
            return None
        crc = crc32.iscsi(part, crc)
        done += count
    return crc
