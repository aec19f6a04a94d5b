"""Producer snapshot: producer state up to an offset, so that a start need not read the whole log.

File `<offset, 20 digits>.snapshot`, state of everything below the offset, big-endian:

    byte  size  field
       0     2  version              1
       2     4  crc                  CRC-32C of bytes 6 .. end, unsigned
       6     4  count                of entries
      10    46  entries              of one producer oldest batch first, else in no order

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

A producer has an entry for each of the batches that memory keeps, up to five, and the last of them
says what is true of it now. Kafka writes the last one only, so that a client whose second last
request was written, but not answered, is refused as out of order by a broker that was restarted,
and gives up. Kafka reads all entries and takes the last of a producer, as Varve did. Beyond
`PRODUCERS_IN_FULL` only last batches are written, for the size of the file.

A damaged snapshot is dropped for the one before it.

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

PRODUCERS_IN_FULL: Final = 20_000
"""Of more producers only the last batch is written: 5 MB, which a broker writes at each roll."""

_HEADER: Final = Struct(">hIi")
_VERSION_CRC: Final = Struct(">hI")
_COUNT: Final = Struct(">i")
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


def rows_of(entry: ProducerEntry) -> tuple[SnapshotRow, ...]:
    """What the file holds of one producer, at least one row.

    Its batches may change meanwhile in another thread: the caller finds out afterwards
    (`storage.producers.capture`).
    """
    producer_id, epoch, coordinator_epoch = (
        entry.producer_id,
        entry.epoch,
        entry.coordinator_epoch,
    )
    batches = tuple(entry.batches)
    earlier = tuple(
        (producer_id, epoch, *batch, coordinator_epoch, NO_OFFSET) for batch in batches[:-1]
    )
    sequence, offset, delta = batches[-1][:3] if batches else (NO_SEQUENCE, NO_OFFSET, 0)
    last = (
        *(producer_id, epoch, sequence, offset, delta, entry.last_timestamp),
        *(coordinator_epoch, entry.txn_first_offset),
    )
    return (*earlier, last)


def encode_rows(producers: Iterable[tuple[SnapshotRow, ...]], count: int) -> bytes:
    """The file's bytes.

    Args:
        producers: `rows_of` each.
        count: How many there are.
    """
    if count > PRODUCERS_IN_FULL:
        producers = (rows[-1:] for rows in producers)
    entries = b"".join(_ENTRY.pack(*row) for rows in producers for row in rows)
    counted = _COUNT.pack(len(entries) // _ENTRY.size)
    crc = crc32.iscsi(entries, crc32.iscsi(counted))
    return b"".join((_VERSION_CRC.pack(VERSION, crc), counted, entries))


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
    return list(_decode_entries(memoryview(data)[_HEADER.size :]).values())


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
            f"producer snapshot {source} claims {count} entries in {len(data)} bytes"
        )


def _decode_entries(data: memoryview) -> dict[int, ProducerEntry]:
    entries: dict[int, ProducerEntry] = {}
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
        before = entries.get(producer_id)
        if before is not None and before.epoch == epoch:
            entry.batches = before.batches
        if last_offset >= 0:
            entry.add_batch(BatchMetadata(last_sequence, last_offset, offset_delta, timestamp))
        entries[producer_id] = entry
    return entries
