"""Snapshot of one metadata partition: what is alive, so that a start need not read all history.

Big-endian; `next offset` is the first one of `__remote_log_metadata` that is not in it.

    size  field
       4  magic                "vrms"
       2  version              1
       4  CRC-32C              of all that follows
       4  metadata partition
      16  topic id             of `__remote_log_metadata`
       8  next offset
       8  time                 ms since 1970
       4  number of partitions, then of each:
      16    topic id
       4    partition
       1    deletion state     -1: none; else as in RemotePartitionDeleteMetadataRecord
       4    deletion's broker id
       8    deletion's event timestamp
       2    length of the topic's name
       *    topic              UTF-8
       4    length of the block
       *    block

A block is decoded when its partition is wanted; until then, and into the next snapshot, it goes
as it is:

       4  number of segments, then of each:
       4    length
       *    RemoteLogSegmentMetadataSnapshotRecord, as in `protocol.internal.remote_log_metadata`
       4  number of leader epochs, then of each:
       4    epoch
       8    highest offset     ever copied of it, inclusive; -1: none
       4    number of segments that are found for reading, then of each:
       4      which            its place in the list above

Which segments are found depends on the order in which they were finished and on others that are
gone since, so it is written down rather than worked out again.
"""

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple
from uuid import UUID

from fastcrc import crc32

from protocol.errors import DecodeError
from tiered.errors import TieredError
from tiered.metadata.records import decode_segment_snapshot, encode_segment_snapshot
from tiered.metadata.segment_index import CacheCapture, EpochCapture, RemoteLogMetadataCache
from tiered.segment_metadata import (
    PartitionDeleteState,
    RemoteLogSegmentMetadata,
    RemotePartitionDelete,
    TopicIdPartition,
)

MAGIC: Final = b"vrms"
VERSION: Final = 1
NO_DELETION: Final = -1

EMPTY_BLOCK: Final = bytes(8)
"""No segments, no epochs."""

_PREFIX = Struct(">4sHI")
_HEADER = Struct(">i16sqqI")
_PARTITION = Struct(">16sibiqH")
_UINT32 = Struct(">I")
_EPOCH = Struct(">iqI")
_CRC_START = _PREFIX.size


class SnapshotError(TieredError):
    """The bytes are no snapshot, or a damaged one."""


class PartitionSnapshot(NamedTuple):
    """One user partition in a snapshot; `block` is still to be read."""

    partition: TopicIdPartition
    deletion: RemotePartitionDelete | None
    block: bytes


class MetadataSnapshot(NamedTuple):
    """A snapshot whose blocks are still to be read."""

    metadata_partition: int
    topic_id: UUID
    next_offset: int
    taken_at_ms: int
    partitions: Sequence[PartitionSnapshot]


class CapturedPartition(NamedTuple):
    """A user partition to be written into a snapshot: a block as it was read, or a cache's all."""

    partition: TopicIdPartition
    deletion: RemotePartitionDelete | None
    content: bytes | CacheCapture


class CapturedState(NamedTuple):
    """A metadata partition at one moment."""

    metadata_partition: int
    topic_id: UUID
    next_offset: int
    taken_at_ms: int
    partitions: Sequence[CapturedPartition]


# -- writing ---------------------------------------------------------------------------------------


def encoding(state: CapturedState, into: bytearray) -> Iterator[None]:
    """Append a snapshot to `into`, which is empty; yields after every segment and partition."""
    into += bytes(_PREFIX.size)
    into += _HEADER.pack(
        state.metadata_partition,
        state.topic_id.bytes,
        state.next_offset,
        state.taken_at_ms,
        len(state.partitions),
    )
    for (topic_id, topic, index), deletion, content in state.partitions:
        name = topic.encode()
        into += _PARTITION.pack(
            topic_id.bytes,
            index,
            NO_DELETION if deletion is None else deletion.state,
            0 if deletion is None else deletion.broker_id,
            0 if deletion is None else deletion.event_timestamp_ms,
            len(name),
        )
        into += name
        length_at = len(into)
        into += bytes(_UINT32.size)
        if isinstance(content, bytes):
            into += content
        else:
            yield from _encoding_block(content, into)
        _UINT32.pack_into(into, length_at, len(into) - length_at - _UINT32.size)
        yield
    # The checksum of a large snapshot takes milliseconds: its caller does it, in a thread.


def seal(data: bytearray) -> None:
    """Write magic, version and checksum of what `encoding` has made."""
    checksum = crc32.iscsi(memoryview(data)[_CRC_START:])
    _PREFIX.pack_into(data, 0, MAGIC, VERSION, checksum)


def _encoding_block(content: CacheCapture, into: bytearray) -> Iterator[None]:
    into += _UINT32.pack(len(content.segments))
    places: dict[bytes, int] = {}
    for metadata in content.segments:
        record = encode_segment_snapshot(metadata)
        into += _UINT32.pack(len(record))
        into += record
        places[metadata.id.bytes] = len(places)
        yield
    into += _UINT32.pack(len(content.epochs))
    for epoch, highest, referenced in content.epochs:
        into += _EPOCH.pack(epoch, highest, len(referenced))
        into += b"".join([_UINT32.pack(places[segment_id]) for segment_id in referenced])
        yield


# -- reading ---------------------------------------------------------------------------------------


def read_snapshot(data: bytes) -> MetadataSnapshot:
    """Check a snapshot and find its blocks. Takes milliseconds for a large one: call in a thread.

    Raises:
        SnapshotError: It is damaged, or of a version that is not known.
    """
    try:
        magic, version, checksum = _PREFIX.unpack_from(data)
        if magic != MAGIC:
            raise SnapshotError("no snapshot")
        if version != VERSION:
            raise SnapshotError(f"version {version} is not known")
        actual = crc32.iscsi(memoryview(data)[_CRC_START:])
        if actual != checksum:
            raise SnapshotError(f"checksum {actual:#010x}, not {checksum:#010x}")
        metadata_partition, topic_id, next_offset, taken_at_ms, count = _HEADER.unpack_from(
            data, _CRC_START
        )
        position = _CRC_START + _HEADER.size
        partitions = []
        for _ in range(count):
            found, position = _read_partition(data, position)
            partitions.append(found)
    except (StructError, UnicodeDecodeError, ValueError) as error:
        raise SnapshotError(f"malformed: {error}") from error
    if position != len(data):
        raise SnapshotError(f"{len(data) - position} bytes after the end")
    return MetadataSnapshot(
        metadata_partition, UUID(bytes=topic_id), next_offset, taken_at_ms, partitions
    )


def _read_partition(data: bytes, position: int) -> tuple[PartitionSnapshot, int]:
    topic_id, index, state, broker_id, event_timestamp_ms, size = _PARTITION.unpack_from(
        data, position
    )
    position += _PARTITION.size
    partition = TopicIdPartition(
        UUID(bytes=topic_id), data[position : position + size].decode(), index
    )
    position += size
    (length,) = _UINT32.unpack_from(data, position)
    position += _UINT32.size
    block = data[position : position + length]
    if len(block) < length:
        raise SnapshotError(f"a block of {length} bytes, {len(block)} are there")
    deletion = None
    if state != NO_DELETION:
        deletion = RemotePartitionDelete(
            partition, PartitionDeleteState(state), event_timestamp_ms, broker_id
        )
    return PartitionSnapshot(partition, deletion, block), position + length


def reading_block(
    partition: TopicIdPartition, block: bytes, into: RemoteLogMetadataCache
) -> Iterator[None]:
    """Fill an empty cache from a block; yields after every segment, so that other tasks run.

    Raises:
        SnapshotError: The block is malformed, although its snapshot's checksum was right.
    """
    try:
        (count,) = _UINT32.unpack_from(block)
        ids: list[bytes] = []
        end = _UINT32.size

        def segments() -> Iterator[RemoteLogSegmentMetadata]:
            nonlocal end
            for _ in range(count):
                (size,) = _UINT32.unpack_from(block, end)
                start = end + _UINT32.size
                end = start + size
                metadata = decode_segment_snapshot(partition, block[start:end])
                ids.append(metadata.id.bytes)
                yield metadata

        def epochs() -> Iterable[EpochCapture]:
            # Asked for when the segments have been read.
            nonlocal end
            (epoch_count,) = _UINT32.unpack_from(block, end)
            end += _UINT32.size
            for _ in range(epoch_count):
                epoch, highest, references = _EPOCH.unpack_from(block, end)
                end += _EPOCH.size
                if references > len(ids):
                    raise SnapshotError(f"{references} of {len(ids)} segments")
                places = Struct(f">{references}I").unpack_from(block, end)
                end += references * _UINT32.size
                yield EpochCapture(epoch, highest, [ids[place] for place in places])

        yield from into.restoring(segments(), epochs())
    except (StructError, DecodeError, IndexError, KeyError) as error:
        raise SnapshotError(f"block of {partition} is malformed: {error!r}") from error
    if end != len(block):
        raise SnapshotError(f"{len(block) - end} bytes after the block of {partition}")
