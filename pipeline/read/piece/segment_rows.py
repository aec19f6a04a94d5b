"""Rows of a part of a remote segment, verified; over what is damaged if that is wanted.

    chunks ahead ─> whole batches ─> rows
        │               │             └─ a batch is broken: on with the batch behind it
        │               └─ no batch where one should be ─┐
        └─ a sum does not fit, twice ────────────────────┴─> on with the next batch that the offset
                                                             index knows

Reading continues only with failOnDataLoss=false; else each of the three is an error.

Where another program has copied the segment there are no sums of chunks, and batches are compared
with their own. One that does not fit is fetched a second time, with its chunks.
"""

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final

from pipeline.plan.piece import RemotePiece
from pipeline.read.bytes.batch_runs import OffsetBounds, batch_runs
from pipeline.read.bytes.byte_source import ByteSource, FileBytes, StoreBytes
from pipeline.read.bytes.chunk_stream import WHOLE_CHUNK_BYTES_MAX, ChunkStream, LogBytes
from pipeline.read.bytes.large_chunks import LargeChunkStream
from pipeline.read.bytes.open_buckets import LentBucket
from pipeline.read.bytes.open_segment import OpenSegment, open_segment
from pipeline.read.decode.row_decoder import RowDecoder
from pipeline.read.errors import BrokenBatchError
from pipeline.read.loss import LossReport
from pipeline.read.read_errors import DamagedBatchError, DamagedDataError
from storage.environment.filesystem import Filesystem
from storage.index.offset_index import ENTRY_SIZE
from tiered.errors import CorruptRemoteDataError, ObjectNotFoundError
from tiered.tier import SideFile

NO_POSITION: Final = -1


class SegmentRows:
    """Rows of one piece.

    Attributes:
        next_offset: Of what comes next: all rows below it were given, or are reported as lost.
    """

    def __init__(
        self,
        piece: RemotePiece,
        lent: LentBucket,
        decoder: RowDecoder,
        filesystem: Filesystem,
        loss: LossReport | None,
        *,
        read_committed: bool,
    ) -> None:
        """Ask for nothing yet.

        Args:
            piece: Which rows.
            lent: The bucket.
            decoder: Of the piece's partition.
            filesystem: Where the bucket's files are, if it is a directory.
            loss: Collects what is skipped; None: nothing may be.
            read_committed: Leave out what the piece says was aborted.
        """
        self.next_offset = piece.start_offset
        self._piece = piece
        self._lent = lent
        self._decoder = decoder
        self._filesystem = filesystem
        self._loss = loss
        self._read_committed = read_committed
        self._lost_because = ""

    def rows(self) -> Iterator[Any]:
        """All rows, as Arrow record batches.

        Raises:
            DamagedDataError: Something is not what was written, and nothing may be left out.
            ObjectNotFoundError: The segment is gone; it was read up to `next_offset`.
            RemoteStorageError: The store cannot give it, or a key pair is missing.
        """
        piece = self._piece
        try:
            segment = self._open()
        except DamagedDataError as error:
            self._leave_out(error)
        else:
            if piece.position < piece.end_position:
                yield from self._all(segment)
        self._found_again(piece.end_offset)

    def _open(self) -> OpenSegment:
        bucket, thread = self._lent
        call = open_segment(bucket.store, bucket.key_ring, bucket.manifests, self._piece)
        return thread.run(call)

    def _all(self, segment: OpenSegment) -> Iterator[Any]:
        piece = self._piece
        source = self._source(segment)
        position = piece.position
        tried_again = NO_POSITION
        while position < piece.end_position:
            try:
                yield from self._from(segment, source, position)
            except DamagedBatchError as error:
                if not segment.manifest.has_sums and error.log_position != tried_again:
                    position = tried_again = error.log_position
                    continue
                self._leave_out(_placed(error, segment))
                position = error.next_position
                if position == NO_POSITION:
                    position = self._known_batch(segment, error.log_end)
            except DamagedDataError as error:
                self._leave_out(error)
                position = self._known_batch(segment, error.log_end)
            else:
                return

    def _source(self, segment: OpenSegment) -> ByteSource:
        bucket, thread = self._lent
        key, size = segment.keys.log, segment.manifest.log_size
        path = bucket.store.local_path(key)
        if path is None:
            return StoreBytes(thread, bucket.store, key, size)
        return FileBytes(self._filesystem, path, key, size)

    def _from(self, segment: OpenSegment, source: ByteSource, position: int) -> Iterator[Any]:
        """Rows from a position on, where a batch begins."""
        piece, manifest = self._piece, segment.manifest
        metadata = manifest.metadata
        bounds = None
        if not manifest.has_sums:
            bounds = OffsetBounds(metadata.start_offset, metadata.end_offset + 1)
        end = piece.end_position
        with closing(_log_bytes(segment, source, position, end)) as stream:
            for run in batch_runs(stream, segment.keys.log, position, end, bounds):
                self._found_again(run.first_offset)
                try:
                    yield from self._decoder.decode(
                        run.data,
                        piece.start_offset,
                        piece.end_offset,
                        piece.aborted,
                        read_committed=self._read_committed,
                    )
                except BrokenBatchError as error:
                    self._reach(error.base_offset)
                    raise _broken(error, segment.keys.log, run.position, len(run.data)) from error
                self._reach(run.next_offset)
                if run.next_offset >= piece.end_offset:
                    return
                # A large batch's memory goes before the next one takes its own.
                del run

    def _reach(self, offset: int | None) -> None:
        if offset is not None and offset > self.next_offset:
            self.next_offset = min(offset, self._piece.end_offset)

    # -- what is left out --------------------------------------------------------------------

    def _leave_out(self, error: DamagedDataError) -> None:
        if self._loss is None:
            raise error
        self._lost_because = f"{error.key} at byte {error.position}: {error.problem}"

    def _found_again(self, offset: int) -> None:
        """Rows from here on are there: what is between was left out."""
        if self._lost_because and self._loss is not None:
            end = min(max(offset, self.next_offset), self._piece.end_offset)
            self._loss.add(self.next_offset, end, self._lost_because)
            self._lost_because = ""
        self._reach(offset)

    def _known_batch(self, segment: OpenSegment, position: int) -> int:
        """Where the next batch begins for certain; the piece's end if the index knows none."""
        end = self._piece.end_position
        if position == NO_POSITION:
            return end
        bucket, thread = self._lent
        call = bucket.reader.read_side_files(segment.opened, segment.keys, (SideFile.OFFSET,))
        try:
            entries = thread.run(call).get(SideFile.OFFSET, b"")
        except (CorruptRemoteDataError, ObjectNotFoundError):
            return end
        both = array("i", entries[: len(entries) // ENTRY_SIZE * ENTRY_SIZE])
        if sys.byteorder == "little":
            both.byteswap()
        positions = both[1::2]
        at = bisect_left(positions, position)
        return min(positions[at], end) if at < len(positions) else end


def _log_bytes(segment: OpenSegment, source: ByteSource, position: int, end: int) -> LogBytes:
    """What reads the chunks of this segment within the memory there is."""
    is_range = segment.opened.transform.is_plain and not segment.manifest.has_sums
    index = segment.manifest.chunk_index
    largest = min(index.original_chunk_size, index.original_file_size)
    if is_range or largest <= WHOLE_CHUNK_BYTES_MAX:
        return ChunkStream(segment, source, position, end)
    return LargeChunkStream(segment, source, position, end)


def _broken(error: BrokenBatchError, key: str, position: int, size: int) -> DamagedBatchError:
    """A decoder's error, with its place in the log."""
    begin = position + error.position
    behind = NO_POSITION
    if error.next_position is not None:
        behind = position + error.next_position
    return DamagedBatchError(key, begin, str(error.problem), begin, position + size, behind)


def _placed(error: DamagedBatchError, segment: OpenSegment) -> DamagedBatchError:
    """With its place in the object, as near as a chunk where that is stored in another form."""
    if segment.opened.transform.is_plain:
        return error
    chunk = segment.manifest.chunk(segment.manifest.chunk_index.number_at(error.log_position))
    return DamagedBatchError(
        error.key,
        chunk.stored_position,
        error.problem,
        error.log_position,
        error.log_end,
        error.next_position,
    )
