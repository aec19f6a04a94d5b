"""The offset for a time: of the first record whose timestamp is at least that, as Kafka has it.

    segments whose greatest timestamp reaches the time, ascending
      -> time index: the last entry below the time; no batch before it reaches it
      -> batch headers, until one's greatest timestamp reaches it
      -> the records of that batch

Records of aborted transactions and markers count like others, as in a broker. A segment whose
greatest timestamp reaches the time, but none of whose records that are read does, is passed over:
its end may be another copy's.

Source: Kafka, UnifiedLog.java (fetchOffsetByTimestamp), RemoteLogManager.java (lookupTimestamp).
"""

from bisect import bisect_left
from struct import Struct
from typing import Final

from pipeline.plan.bucket import Bucket
from pipeline.plan.errors import DamagedBucketError
from pipeline.plan.layout import LaidSegment
from pipeline.plan.listing import KEYS
from pipeline.plan.partition_log import PartitionLog
from pipeline.plan.segment_files import read_segment_files
from pipeline.plan.segment_index import parse_offset_index
from protocol.errors import DecodeError
from protocol.records.batch import HEADER_SIZE, BatchHeader, crc_matches
from protocol.records.record import find_timestamp
from storage.errors import CorruptFileError
from storage.index.batch_scan import read_batch_header
from storage.index.time_index import ENTRY_SIZE
from tiered.errors import CorruptRemoteDataError, ObjectNotFoundError
from tiered.storage_manager.manifest_cache import OpenManifest
from tiered.storage_manager.workspace import Workspace
from tiered.tier import SideFile

BATCH_BYTES_MAX: Final = 64 * 1024 * 1024
"""Largest batch that is searched, as it is and decompressed; of a larger one the header must
do."""

_ENTRY: Final = Struct(">qi")


async def offset_for_time(
    bucket: Bucket, log: PartitionLog, timestamp_ms: int, *, read_committed: bool
) -> int | None:
    """The first offset of the log at or after a time; None: what is read has no such record.

    Args:
        bucket: Where.
        log: The partition's.
        timestamp_ms: Milliseconds since 1970 UTC.
        read_committed: What lies beyond the stable end does not count.

    Raises:
        DamagedBucketError: An index or the log is not what it should be; names the object.
        ObjectNotFoundError: A segment was removed meanwhile: read the partition's log again.
        RemoteStorageError: The store cannot give it, or a key pair is missing.
    """
    end = log.end(read_committed=read_committed)
    for laid in log.segments:
        if laid.start_offset >= end:
            break
        if laid.metadata.max_timestamp_ms >= timestamp_ms:
            found = await _search(bucket, laid, timestamp_ms)
            if found is not None:
                return found if found < end else None
    return None


async def _search(bucket: Bucket, laid: LaidSegment, timestamp_ms: int) -> int | None:
    metadata = laid.metadata
    kinds = (SideFile.OFFSET, SideFile.TIMESTAMP)
    keys, opened, files = await read_segment_files(bucket, metadata, kinds)
    try:
        offsets = parse_offset_index(
            files[SideFile.OFFSET],
            metadata.start_offset,
            metadata.end_offset,
            metadata.segment_size_bytes,
        )
        earliest = offset_before(files[SideFile.TIMESTAMP], timestamp_ms)
        position = offsets.position_of(max(metadata.start_offset + earliest, laid.start_offset))
    except (CorruptFileError, ValueError) as error:
        raise DamagedBucketError(keys.indexes, -1, str(error)) from error
    try:
        return await _LogWalk(bucket, opened, laid, position).find(timestamp_ms)
    except ObjectNotFoundError:
        bucket.forget(metadata.id)
        raise
    except CorruptRemoteDataError as error:
        raise DamagedBucketError(error.key, error.position, error.problem) from error


def offset_before(time_index: bytes, timestamp_ms: int) -> int:
    """Relative offset from which on a time may be reached, by a time index; 0 without entries.

    Raises:
        CorruptFileError: It ends within an entry.
    """
    if len(time_index) % ENTRY_SIZE:
        raise CorruptFileError("the time index ends within an entry")
    if time_index.endswith(bytes(ENTRY_SIZE)):
        # Zeros that the broker which copied it had preallocated.
        time_index = time_index[: -(-len(time_index.rstrip(b"\0")) // ENTRY_SIZE) * ENTRY_SIZE]
    at = bisect_left(
        range(len(time_index) // ENTRY_SIZE),
        timestamp_ms,
        key=lambda at: _ENTRY.unpack_from(time_index, at * ENTRY_SIZE)[0],
    )
    return int(_ENTRY.unpack_from(time_index, (at - 1) * ENTRY_SIZE)[1]) if at else 0


class _LogWalk:
    """A segment's batches from a position on, chunk after chunk; those that are past are let go."""

    def __init__(
        self, bucket: Bucket, opened: OpenManifest, laid: LaidSegment, position: int
    ) -> None:
        self._bucket = bucket
        self._opened = opened
        self._laid = laid
        self._keys = KEYS.segment_keys(laid.metadata)
        self._log_bytes = laid.metadata.segment_size_bytes
        self._workspace = Workspace()
        self._position = position
        self._data = bytearray()
        self._data_at = position

    def read_at(self, size: int, position: int) -> bytes:
        """Of what is held, for `read_batch_header`."""
        at = position - self._data_at
        return bytes(self._data[at : at + size])

    async def find(self, timestamp_ms: int) -> int | None:
        """The first offset wanted at or after a time."""
        while self._position < self._log_bytes:
            await self._hold(min(HEADER_SIZE, self._log_bytes - self._position))
            header = read_batch_header(self, self._position, self._log_bytes)
            if header is None:
                raise DamagedBucketError(
                    self._keys.log, -1, f"no batch at {self._position} of the log"
                )
            if not self._opened.manifest.has_sums:
                await self._check(header)
            if header.base_offset >= self._laid.end_offset:
                return None
            if (
                header.max_timestamp >= timestamp_ms
                and header.last_offset >= self._laid.start_offset
            ):
                found = await self._find_in(header, timestamp_ms)
                if found is not None:
                    return found if found < self._laid.end_offset else None
            self._position += header.size
        return None

    async def _check(self, header: BatchHeader) -> None:
        """Where chunks have no sums, batches have."""
        if header.size > BATCH_BYTES_MAX:
            return
        await self._hold(header.size)
        batch = memoryview(self.read_at(header.size, self._position))
        if not crc_matches(batch, 0, header):
            problem = f"the batch at {self._position} of the log fails its CRC"
            raise DamagedBucketError(self._keys.log, -1, problem)

    async def _find_in(self, header: BatchHeader, timestamp_ms: int) -> int | None:
        start_offset = self._laid.start_offset
        if header.size > BATCH_BYTES_MAX:
            return max(header.base_offset, start_offset)
        await self._hold(header.size)
        batch = memoryview(self.read_at(header.size, self._position))
        try:
            found = await self._bucket.threads.run(
                find_timestamp,
                batch,
                timestamp_ms,
                max_size=BATCH_BYTES_MAX,
                start_offset=start_offset,
            )
        except DecodeError:
            # As a broker does it where a batch is larger than it unpacks.
            return max(header.base_offset, start_offset)
        return None if found is None else found[1]

    async def _hold(self, size: int) -> None:
        """Have so many bytes from the position on."""
        drop = min(self._position - self._data_at, len(self._data))
        del self._data[:drop]
        self._data_at += drop
        index = self._opened.manifest.chunk_index
        while self._data_at + len(self._data) < self._position + size:
            if not self._data:
                self._data_at = self._position
            wanted = self._data_at + len(self._data)
            number = index.number_at(wanted)
            chunk = await self._bucket.reader.read_chunk(
                self._opened, self._keys, number, self._workspace
            )
            self._data += chunk[wanted - index.chunk(number).original_position :]
