"""The history object of a partition: what the bucket holds of it, and from where it may be read.

Its name is `<topic>-<topic id>/<partition>/varve-history` (`ObjectKeys.history_key`), which sorts
behind all of the partition's segments. Big-endian:

    size  field
       4  magic                "vrvh"
       2  version              1; a reader refuses greater ones
       4  size                 of the content, before compression
       *  content              one zstd frame
       4  CRC-32C              of all before; it closes every version

The content:

    size  field
      16  topic id
       4  partition
       4  partition count      of the topic
       1  state                0 live, 1 deleting
       4  leader epoch         of the leadership that wrote it
       8  time                 ms since 1970
       8  log start offset     records below it are deleted, whatever segments still hold them
       8  end offset           where the segments end, exclusive; the log start if that is above
       8  stable end offset    where committed records end that need nothing from beyond the end
       2  length of the cluster's id
       *  cluster id           UTF-8
       2  length of the topic's name
       *  topic                UTF-8
       4  number of leader epochs, then of each, ascending:
       4    epoch
       8    start offset
       4  number of segments, then of each, ascending by start offset:
       4    length
       *    RemoteLogSegmentMetadataSnapshotRecord, as in `protocol.internal.remote_log_metadata`

Segments are those that were copied whole, are not being deleted, and belong to the log by its
leader epochs (`tiered.metadata.lineage`). Two may overlap.

It is a hint for readers, which add what a listing finds behind its last segment, and list all when
its segments leave a gap to what they find: a copy may begin before the last one's start. One that
is missing says nothing, and one without segments means none or more than fit: all is listed.
What counts whatever a listing shows are the log start and the state. A segment's objects go only
after a history without it was written, so a history names what is there, or a leader that was
replaced and does not know has written it: then readers meet what is missing, and list.
"""

from collections.abc import Iterator
from enum import IntEnum
from itertools import pairwise
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple
from uuid import UUID

from fastcrc import crc32

from protocol.errors import DecodeError
from tiered.errors import CorruptRemoteDataError, RemoteStorageError
from tiered.metadata.records import decode_segment_snapshot, encode_segment_snapshot
from tiered.segment_metadata import RemoteLogSegmentMetadata, SegmentState, TopicIdPartition

MAGIC: Final = b"vrvh"
VERSION: Final = 1

HISTORY_BYTES_MAX: Final = 64 * 1024 * 1024
"""Of the object; 100,000 segments have 2.7 MB."""

CONTENT_BYTES_MAX: Final = 128 * 1024 * 1024
"""Before compression: 1,500,000 segments."""

LEVEL: Final = 3
"""Of zstd: 100,000 segments in 40 ms. Higher ones gain nothing, for identifiers are random."""

_PREFIX = Struct(">4sHI")
_CRC = Struct(">I")
_HEAD = Struct(">16siiBiqqqq")
_WRITTEN_AT: Final = Struct(">16siiBi").size
_INT64 = Struct(">q")
_UINT16 = Struct(">H")
_UINT32 = Struct(">I")
_EPOCH = Struct(">iq")


class NewerHistoryError(CorruptRemoteDataError):
    """The object is whole, and of a version that this program does not read."""


class HistoryTooLargeError(RemoteStorageError):
    """It has more segments than a reader takes."""


class HistoryState(IntEnum):
    """Whether the topic is there."""

    LIVE = 0
    DELETING = 1


class HistorySummary(NamedTuple):
    """All of a history but its segments; see the module.

    Attributes:
        partition: Whose.
        cluster_id: Of the cluster that wrote it.
        partition_count: Of the topic.
        state: Whether the topic is being deleted.
        leader_epoch: Of the leadership that wrote it; -1: it had none.
        written_ms: When, on that broker's clock.
        log_start_offset, end_offset, stable_end_offset: Ascending in the order start, stable end,
            end; the ends are exclusive.
        leader_epochs: (epoch, start offset) of the log between start and end, ascending.
    """

    partition: TopicIdPartition
    cluster_id: str
    partition_count: int
    state: HistoryState
    leader_epoch: int
    written_ms: int
    log_start_offset: int
    end_offset: int
    stable_end_offset: int
    leader_epochs: tuple[tuple[int, int], ...]


class PartitionHistory(NamedTuple):
    """A history; `segments` are ascending by start offset."""

    summary: HistorySummary
    segments: tuple[RemoteLogSegmentMetadata, ...]


# -- writing ---------------------------------------------------------------------------------------


def encoding(history: PartitionHistory, into: bytearray) -> Iterator[None]:
    """Append the content to `into`, which is empty; yields after every segment.

    Raises:
        HistoryTooLargeError: It is larger than is read.
    """
    summary = history.summary
    into += _HEAD.pack(
        summary.partition.topic_id.bytes,
        summary.partition.partition,
        summary.partition_count,
        summary.state,
        summary.leader_epoch,
        summary.written_ms,
        summary.log_start_offset,
        summary.end_offset,
        summary.stable_end_offset,
    )
    for text in (summary.cluster_id.encode(), summary.partition.topic.encode()):
        into += _UINT16.pack(len(text))
        into += text
    into += _UINT32.pack(len(summary.leader_epochs))
    for epoch, offset in summary.leader_epochs:
        into += _EPOCH.pack(epoch, offset)
    into += _UINT32.pack(len(history.segments))
    for metadata in history.segments:
        record = encode_segment_snapshot(metadata)
        into += _UINT32.pack(len(record))
        into += record
        if len(into) > CONTENT_BYTES_MAX:
            raise HistoryTooLargeError(
                f"the history of {summary.partition} has more than {CONTENT_BYTES_MAX} bytes"
            )
        yield


def set_written_ms(content: bytearray, written_ms: int) -> None:
    """Change the time in what `encoding` has made."""
    _INT64.pack_into(content, _WRITTEN_AT, written_ms)


def seal(content: bytearray) -> bytes:
    """The object of what `encoding` has made. Takes milliseconds for a large one: in a thread.

    Raises:
        RemoteStorageError: It is larger than is read.
    """
    import cramjam

    frame = bytes(cramjam.zstd.compress(content, LEVEL))
    data = _PREFIX.pack(MAGIC, VERSION, len(content)) + frame
    if len(data) + _CRC.size > HISTORY_BYTES_MAX:
        raise RemoteStorageError(f"a history of {len(data)} bytes is too large")
    return data + _CRC.pack(crc32.iscsi(data))


def encode_history(history: PartitionHistory) -> bytes:
    """The object, at once: a millisecond for every 300 segments.

    Raises:
        RemoteStorageError: It is larger than is read.
    """
    content = bytearray()
    for _ in encoding(history, content):
        pass
    return seal(content)


# -- reading ---------------------------------------------------------------------------------------


def decode_history(data: bytes, key: str) -> PartitionHistory:
    """What `encode_history` gave; 100,000 segments take about a second.

    Args:
        data: The whole object.
        key: Its name, for the error.

    Raises:
        NewerHistoryError: It is of a later version, and whole.
        CorruptRemoteDataError: It is damaged, or something else.
    """
    content = content_of(data, key)
    try:
        summary, position = _summary(content)
        segments, end = _segments(content, position, summary)
        if end != len(content):
            raise ValueError(f"{len(content) - end} bytes after the end")
    except (StructError, DecodeError, ValueError) as error:
        raise CorruptRemoteDataError(key, -1, f"the history is malformed: {error}") from error
    return PartitionHistory(summary, segments)


def decode_summary(data: bytes, key: str) -> HistorySummary:
    """As `decode_history` without the segments, which are not decoded: 10 ms for 100,000."""
    content = content_of(data, key)
    try:
        return _summary(content)[0]
    except (StructError, ValueError) as error:
        raise CorruptRemoteDataError(key, -1, f"the history is malformed: {error}") from error


def content_of(data: bytes, key: str) -> bytes:
    """What `encoding` made of the history in an object; it may still make no sense.

    Raises:
        NewerHistoryError, CorruptRemoteDataError: As of `decode_history`.
    """
    if not _PREFIX.size + _CRC.size <= len(data) <= HISTORY_BYTES_MAX:
        raise CorruptRemoteDataError(key, -1, f"no history has {len(data)} bytes")
    magic, version, size = _PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise CorruptRemoteDataError(key, 0, "it is no history")
    end = len(data) - _CRC.size
    if crc32.iscsi(memoryview(data)[:end]) != _CRC.unpack_from(data, end)[0]:
        raise CorruptRemoteDataError(key, -1, "the history fails its CRC")
    if version != VERSION:
        raise NewerHistoryError(
            key, len(MAGIC), f"the history has version {version}, this program reads {VERSION}"
        )
    if size > CONTENT_BYTES_MAX:
        raise CorruptRemoteDataError(key, -1, f"the history claims {size} bytes of content")
    import cramjam

    content = bytearray(size)
    try:
        got = cramjam.zstd.decompress_into(memoryview(data)[_PREFIX.size : end], content)
    except cramjam.DecompressionError as error:
        problem = f"the history is not a zstd frame of {size} bytes: {error}"
        raise CorruptRemoteDataError(key, _PREFIX.size, problem) from error
    if got != size:
        problem = f"the history has {got} bytes of content, not {size}"
        raise CorruptRemoteDataError(key, _PREFIX.size, problem)
    return bytes(content)


def _summary(content: bytes) -> tuple[HistorySummary, int]:
    (topic_id, index, count, state, leader_epoch, written_ms, start, end, stable_end) = (
        _HEAD.unpack_from(content)
    )
    position = _HEAD.size
    cluster_id, position = _text(content, position)
    topic, position = _text(content, position)
    epochs, position = _epochs(content, position)
    if not 0 <= start <= stable_end <= end:
        raise ValueError(f"a log from {start} to {stable_end} and {end}")
    if index < 0 or count < 0:
        raise ValueError(f"partition {index} of {count}")
    summary = HistorySummary(
        TopicIdPartition(UUID(bytes=topic_id), topic, index),
        cluster_id,
        count,
        HistoryState(state),
        leader_epoch,
        written_ms,
        start,
        end,
        stable_end,
        epochs,
    )
    return summary, position


def _text(content: bytes, position: int) -> tuple[str, int]:
    (length,) = _UINT16.unpack_from(content, position)
    position += _UINT16.size
    text = content[position : position + length]
    if len(text) < length:
        raise ValueError(f"a text of {length} bytes, {len(text)} are there")
    return text.decode(), position + length


def _epochs(content: bytes, position: int) -> tuple[tuple[tuple[int, int], ...], int]:
    (count,) = _UINT32.unpack_from(content, position)
    position += _UINT32.size
    end = position + count * _EPOCH.size
    if end > len(content):
        raise ValueError(f"{count} leader epochs in {len(content) - position} bytes")
    epochs = tuple(_EPOCH.iter_unpack(content[position:end]))
    for before, after in pairwise(epochs):
        if before[0] >= after[0] or before[1] > after[1]:
            raise ValueError(f"leader epoch {before} before {after}")
    return epochs, end


def _segments(
    content: bytes, position: int, summary: HistorySummary
) -> tuple[tuple[RemoteLogSegmentMetadata, ...], int]:
    (count,) = _UINT32.unpack_from(content, position)
    position += _UINT32.size
    if count * _UINT32.size > len(content) - position:
        raise ValueError(f"{count} segments in {len(content) - position} bytes")
    segments = []
    before = 0
    for _ in range(count):
        (size,) = _UINT32.unpack_from(content, position)
        position += _UINT32.size
        metadata = decode_segment_snapshot(summary.partition, content[position : position + size])
        position += size
        if metadata.state is not SegmentState.COPY_SEGMENT_FINISHED:
            raise ValueError(f"segment {metadata.id} is in state {metadata.state.name}")
        if metadata.start_offset < before:
            raise ValueError(f"segment {metadata.id} is not in the order of offsets")
        before = metadata.start_offset
        segments.append(metadata)
    return tuple(segments), position
