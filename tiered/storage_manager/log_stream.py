"""Stream of a local segment's stored chunks: read once, checked, summed and transformed.

    file --read--> original --check, CRC--> --zstd, AES--> stored --CRC--> the store

One chunk is made ready in a thread while the store takes the one before, except where the chunks
are compressed: those go to a spool first (see `segment_copy`). Memory is one workspace:

    room      plain            encrypted           compressed
       0      even chunks      original            original
       1      odd chunks       even stored         zstd frame
       2      -                odd stored          stored, if encrypted

The check ends before the last chunk is handed over, so a store that keeps its promise (an object
appears whole or not at all) never has an object of a corrupt segment.
"""

import asyncio
from array import array
from typing import TYPE_CHECKING, Final

from protocol.records.batch import crc32c
from storage.environment.filesystem import File
from tiered.errors import CorruptSegmentError
from tiered.format.chunk_index import (
    ChunkIndex,
    FixedChunkIndex,
    VariableChunkIndex,
    chunk_count,
)
from tiered.format.segment_check import SegmentCheck
from tiered.format.transform import ChunkTransform, compressed_room, encrypted_room
from tiered.object_store.moved_bytes import moved
from tiered.storage_manager.disk_threads import DiskThreads, settle
from tiered.storage_manager.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


READ_BYTES: Final = 128 * 1024
"""Most bytes of one read: a system call may keep its CPU from the broker until it ends."""


class LogStream:
    """The stored chunks of one log, as an asynchronous iterable that is walked once.

    A chunk's memory is used again when the next one is asked for.

    Attributes:
        chunk_crcs, stored_crcs: CRC-32C of each chunk that was made ready, original and stored.
        stored_sizes: Their sizes.
        error: Why it has stopped, should that be the segment's or the disk's fault.
    """

    def __init__(
        self,
        file: File,
        size: int,
        chunk_bytes: int,
        check: SegmentCheck,
        transform: ChunkTransform,
        workspace: Workspace,
        threads: DiskThreads,
    ) -> None:
        self.chunk_crcs = array("I")
        self.stored_crcs = array("I")
        self.stored_sizes: list[int] = []
        self.error: Exception | None = None
        self._file = file
        self._size = size
        self._chunk_bytes = chunk_bytes
        self._count = chunk_count(size, chunk_bytes)
        self._check = check
        self._transform = transform
        self._workspace = workspace
        self._threads = threads
        self._begun = 0
        self._ready: asyncio.Future[memoryview] | None = None

    @property
    def records(self) -> int:
        """In the chunks that were made ready, without transaction markers."""
        return self._check.records

    @property
    def stored_size(self) -> int | None:
        """Bytes of the object; None when they depend on compression."""
        whole, last = divmod(self._size, self._chunk_bytes)
        each = self._transform.fixed_size(self._chunk_bytes)
        rest = self._transform.fixed_size(last)
        if each is None or rest is None:
            return None
        return whole * each + (rest if last else 0)

    def chunk_index(self) -> ChunkIndex:
        """Of the object, when all chunks have gone through."""
        each = self._transform.fixed_size(self._chunk_bytes)
        if each is None:
            return VariableChunkIndex(self._chunk_bytes, self._size, self.stored_sizes)
        return FixedChunkIndex(self._chunk_bytes, self._size, each, self.stored_sizes[-1])

    def __aiter__(self) -> "AsyncIterator[memoryview]":
        return self

    async def __anext__(self) -> memoryview:
        """The next stored chunk.

        Raises:
            CorruptSegmentError: The log or an index is not fit to be copied.
            DiskError: The log cannot be read.
        """
        if self._ready is None:
            if self._begun == self._count:
                raise StopAsyncIteration
            self._begin()
        assert self._ready is not None
        ready, self._ready = self._ready, None
        try:
            stored = await self._threads.finish(ready)
        except Exception as error:
            self.error = error
            raise
        moved(len(stored))
        if self._begun < self._count and not self._transform.compression:
            self._begin()
        return stored

    async def settle(self) -> None:
        """Wait until no thread works on the workspace; nothing may be asked for afterwards."""
        ready, self._ready = self._ready, None
        self._begun = self._count
        if ready is not None:
            await settle(ready)

    def _begin(self) -> None:
        number = self._begun
        self._begun += 1
        self._ready = self._threads.start(self._prepare, number)

    def _prepare(self, number: int) -> memoryview:
        position = number * self._chunk_bytes
        size = min(self._chunk_bytes, self._size - position)
        workspace = self._workspace
        transform = self._transform
        original = workspace.room(number % 2 if transform.is_plain else 0, size)
        for begin in range(0, size, READ_BYTES):
            piece = original[begin : begin + READ_BYTES]
            if self._file.read_into(piece, position + begin) != len(piece):
                raise CorruptSegmentError(
                    self._file.path, position, "the log became shorter", rebuildable=False
                )
        self._check.feed(original)
        crc = crc32c(original)
        stored = original
        if not transform.is_plain:
            compressing = transform.compression
            compressed = workspace.room(1, compressed_room(size)) if compressing else original
            encrypted = original
            if transform.cipher is not None:
                room = 2 if compressing else 1 + number % 2
                encrypted = workspace.room(room, encrypted_room(size))
            stored = transform.store(original, compressed, encrypted)
        self.chunk_crcs.append(crc)
        self.stored_crcs.append(crc if stored is original else crc32c(stored))
        self.stored_sizes.append(len(stored))
        if number + 1 == self._count:
            self._check.finish()
        return stored
