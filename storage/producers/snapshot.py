"""Producer snapshot: producer state up to an offset, so that a start need not read the whole log.

File `<offset, 20 digits>.snapshot`, state of everything below the offset, big-endian:

    byte  size  field
       0     2  version              1
       2     4  crc                  CRC-32C of bytes 6 .. end, unsigned
       6     4  count                of entries
      10    46  entries              in no particular order

Entry:

    byte  size  field
       0     8  producer id
       8     2  producer epoch
      10     4  last sequence        -1: only markers so far in this epoch
      14     8  last offset          of data; -1: as above
      22     4  offset delta         last - first offset of the last batch; 0: as above
      26     8  timestamp            ms, of the last batch or marker
      34     4  coordinator epoch    -1: no marker yet
      38     8  txn first offset     of the open transaction; -1: none

Only the last batch of a producer is kept, while memory keeps five: after a restart an older retry
is refused as out of order, as in Kafka. A damaged snapshot is dropped for the one before it.

Source: Kafka, ProducerSnapshot.json, ProducerStateManager.java.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final

from fastcrc import crc32

from storage.errors import CorruptFileError
from storage.producers.entry import NO_OFFSET, NO_SEQUENCE, BatchMetadata, ProducerEntry

SNAPSHOT_SUFFIX: Final = ".snapshot"
VERSION: Final = 1

_HEADER: Final = Struct(">hIi")
_ENTRY: Final = Struct(">qhiqiqiq")
_CRC_START: Final = 6


def snapshot_name(offset: int) -> str:
    """File name of the snapshot of everything below `offset`."""
    return f"{offset:020d}{SNAPSHOT_SUFFIX}"


def offset_of_snapshot(name: str) -> int | None:
    """Offset in a snapshot's file name; None when it is no such name."""
    stem = name.removesuffix(SNAPSHOT_SUFFIX)
    if stem == name or not stem.isascii() or not stem.isdigit():
        return None
    return int(stem)


SnapshotRow = tuple[int, int, int, int, int, int, int, int]
"""The fields of one entry, in the file's order."""


def row_of(entry: ProducerEntry) -> SnapshotRow:
    """What the file holds of one producer.

    Its batches may change meanwhile in another thread: the caller finds out afterwards
    (`storage.producers.capture`).
    """
    last = entry.batches[-1:]
    sequence, offset, delta = last[0][:3] if last else (NO_SEQUENCE, NO_OFFSET, 0)
    return (
        entry.producer_id,
        entry.epoch,
        sequence,
        offset,
        delta,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.txn_first_offset,
    )


def encode_rows(count: int, rows: Iterable[SnapshotRow]) -> bytes:
    """The file's bytes for `count` producers."""
    data = bytearray(_HEADER.size + _ENTRY.size * count)
    position = _HEADER.size
    for row in rows:
        _ENTRY.pack_into(data, position, *row)
        position += _ENTRY.size
    _HEADER.pack_into(data, 0, VERSION, 0, count)
    crc = crc32.iscsi(memoryview(data)[_CRC_START:])
    _HEADER.pack_into(data, 0, VERSION, crc, count)
    return bytes(data)


def first_open_offset(data: bytes, source: str) -> int | None:
    """Where the earliest transaction begins that is open in a snapshot; None: none is.

    As `decode_snapshot`, but makes nothing of the entries: 20 ms for 100,000 producers.

    Args:
        data: The whole file.
        source: Its path, for the error message.

    Raises:
        CorruptFileError: As of `decode_snapshot`.
    """
    _check(data, source)
    rows = _ENTRY.iter_unpack(memoryview(data)[_HEADER.size :])
    return min((row[-1] for row in rows if row[-1] >= 0), default=None)


def decode_snapshot(data: bytes, source: str) -> list[ProducerEntry]:
    """The producers in a snapshot.

    Args:
        data: The whole file.
        source: Its path, for the error message.

    Raises:
        CorruptFileError: Unknown version, wrong CRC, or a count that does not match the size.
    """
    _check(data, source)
    return list(_decode_entries(memoryview(data)[_HEADER.size :]))


def _check(data: bytes, source: str) -> None:
    if len(data) < _HEADER.size:
        raise CorruptFileError(f"producer snapshot {source} is cut off at {len(data)} bytes")
    version, crc, count = _HEADER.unpack_from(data)
    if version != VERSION:
        raise CorruptFileError(f"producer snapshot {source} has unknown version {version}")
    if crc32.iscsi(memoryview(data)[_CRC_START:]) != crc:
        raise CorruptFileError(f"producer snapshot {source} fails its CRC")
    if count < 0 or len(data) != _HEADER.size + count * _ENTRY.size:
        raise CorruptFileError(
            f"producer snapshot {source} claims {count} producers in {len(data)} bytes"
        )


def _decode_entries(data: memoryview) -> Iterable[ProducerEntry]:
    for (
        producer_id,
        epoch,
        last_sequence,
        last_offset,
        offset_delta,
        timestamp,
        coordinator_epoch,
        txn_first_offset,
    ) in _ENTRY.iter_unpack(data):
        entry = ProducerEntry(
            producer_id, epoch, coordinator_epoch, timestamp, max(txn_first_offset, -1)
        )
        if last_offset >= 0:
            entry.batches.append(BatchMetadata(last_sequence, last_offset, offset_delta, timestamp))
        yield entry
