"""The files of a data directory as rows, for `varve dump-log`.

Every reader takes a path and yields rows, name to value, in Kafka's vocabulary (that of
DumpLogSegments). A row with the key `damage` says what is wrong; nothing is raised for that, and
reading continues where it can.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final

from protocol.errors import DecodeError
from protocol.internal.consumer_offsets import (
    GroupMetadataKey,
    OffsetCommitKey,
    decode_group_metadata_value,
    decode_key,
    decode_offset_commit_value,
)
from protocol.records.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    BatchHeader,
    checked_header,
    compute_crc,
    crc_matches,
)
from protocol.records.compression import Codec
from protocol.records.control import ControlType, parse_control_type, parse_end_transaction_marker
from protocol.records.record import Record, iterate_records
from storage.checkpoints.checkpoint_files import (
    CLEANER_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REMOTE_OFFSET_CHECKPOINT,
    decode_epochs,
    decode_offsets,
)
from storage.checkpoints.clean_shutdown import CLEAN_SHUTDOWN_FILE, read_broker_epoch
from storage.checkpoints.meta_properties import META_PROPERTIES, decode_meta_properties
from storage.checkpoints.partition_metadata import PARTITION_METADATA, decode_partition_metadata
from storage.errors import StorageError
from storage.producers.snapshot import decode_snapshot
from storage.types.log_files import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    parse_log_file_name,
)
from storage.types.uuid_text import format_uuid

Row = dict[str, object]

DECOMPRESSED_SIZE_MAX: Final = 256 << 20
READ_BYTES: Final = 1 << 20

_OFFSET_ENTRY: Final = Struct(">ii")
_TIME_ENTRY: Final = Struct(">qi")
_TRANSACTION_ENTRY: Final = Struct(">hqqqq")


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """Options of the dump of a `.log` file.

    Attributes:
        records: A row for each record, without its content.
        content: With key, value and headers.
        decode_offsets: Keys and values are those of `__consumer_offsets`.
    """

    records: bool = False
    content: bool = False
    decode_offsets: bool = False


def reader_for(path: str, options: DumpOptions) -> Callable[[str], Iterator[Row]] | None:
    """The reader of a file of this name; None for an unknown kind of file."""
    name = os.path.basename(path)
    by_name: dict[str, Callable[[str], Iterator[Row]]] = {
        RECOVERY_POINT_CHECKPOINT: read_offset_checkpoint,
        LOG_START_OFFSET_CHECKPOINT: read_offset_checkpoint,
        HIGH_WATERMARK_CHECKPOINT: read_offset_checkpoint,
        CLEANER_CHECKPOINT: read_offset_checkpoint,
        REMOTE_OFFSET_CHECKPOINT: read_offset_checkpoint,
        LEADER_EPOCH_CHECKPOINT: read_epoch_checkpoint,
        PARTITION_METADATA: read_partition_metadata_file,
        META_PROPERTIES: read_meta_properties_file,
        CLEAN_SHUTDOWN_FILE: read_clean_shutdown_file,
    }
    parsed = parse_log_file_name(name)
    if parsed is None:
        return by_name.get(name)
    by_kind: dict[str, Callable[[str], Iterator[Row]]] = {
        LOG_SUFFIX: lambda at: read_log(at, options),
        OFFSET_INDEX_SUFFIX: read_offset_index,
        TIME_INDEX_SUFFIX: read_time_index,
        TRANSACTION_INDEX_SUFFIX: read_transaction_index,
        SNAPSHOT_SUFFIX: read_snapshot,
    }
    return by_kind[parsed.kind]


# -- log -------------------------------------------------------------------------------------


def read_log(path: str, options: DumpOptions) -> Iterator[Row]:
    """Batches of a `.log` file, with their records if asked for."""
    for position, batch, damage in _batches(path):
        if damage is not None:
            yield {"position": position, "damage": damage}
            return
        header = checked_header(batch)
        yield _batch_row(position, header, batch)
        if options.records or options.content:
            yield from _record_rows(header, batch, options)


def _batches(path: str) -> Iterator[tuple[int, memoryview, str | None]]:
    """(position, batch, what is wrong) up to the end, or to the first bytes that are no batch."""
    size = os.path.getsize(path)
    position = 0
    with open(path, "rb") as file:
        while position < size:
            file.seek(position)
            head = file.read(HEADER_SIZE)
            if not any(head) and not _rest_has_data(path, position):
                return  # preallocated
            try:
                length = int.from_bytes(head[8:12], "big", signed=True) + LOG_OVERHEAD
                if len(head) == HEADER_SIZE and HEADER_SIZE <= length <= size - position:
                    head += file.read(length - HEADER_SIZE)
                checked_header(memoryview(head))
            except DecodeError as error:
                yield position, memoryview(b""), f"{error}; {size - position} bytes not read"
                return
            yield position, memoryview(head), None
            position += length


def _rest_has_data(path: str, position: int) -> bool:
    with open(path, "rb") as file:
        file.seek(position)
        while data := file.read(READ_BYTES):
            if data.count(0) != len(data):
                return True
    return False


def _batch_row(position: int, header: BatchHeader, batch: memoryview) -> Row:
    is_valid = crc_matches(batch, 0, header)
    row: Row = {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "count": header.records_count,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "partitionLeaderEpoch": header.leader_epoch,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "deleteHorizonMs": header.delete_horizon_ms,
        "position": position,
        "LogAppendTime" if header.is_log_append_time else "CreateTime": header.max_timestamp,
        "size": header.size,
        "magic": header.magic,
        "compresscodec": _codec_name(header.codec),
        "crc": header.crc,
        "isvalid": is_valid,
    }
    if not is_valid:
        row["damage"] = f"CRC is {compute_crc(batch, 0, header.size)}"
    return row


def _codec_name(codec: int) -> str:
    try:
        return Codec(codec).name.lower()
    except ValueError:
        return str(codec)


def _record_rows(header: BatchHeader, batch: memoryview, options: DumpOptions) -> Iterator[Row]:
    time_name = "LogAppendTime" if header.is_log_append_time else "CreateTime"
    try:
        for record in iterate_records(batch, max_size=DECOMPRESSED_SIZE_MAX):
            sequence = -1
            if header.base_sequence >= 0:
                delta = record.offset - header.base_offset
                sequence = (header.base_sequence + delta) % (1 << 31)
            row: Row = {
                "offset": record.offset,
                time_name: record.timestamp,
                "keySize": -1 if record.key is None else len(record.key),
                "valueSize": -1 if record.value is None else len(record.value),
                "sequence": sequence,
            }
            if header.is_control:
                row |= _marker_fields(record, batch)
            elif options.content:
                row["headers"] = [
                    [_text(name.encode("utf-8", "surrogateescape")), _text(value)]
                    for name, value in record.headers
                ]
                if options.decode_offsets:
                    row |= _consumer_offsets_fields(record)
                else:
                    row["key"] = _text(record.key)
                    row["payload"] = _text(record.value)
            yield row
    except DecodeError as error:
        yield {"offset": header.base_offset, "damage": str(error)}


def _marker_fields(record: Record, batch: memoryview) -> Row:
    control_type = parse_control_type(record.key)
    fields: Row = {"endTxnMarker" if control_type in (0, 1) else "controlType": control_type.name}
    if control_type in (ControlType.ABORT, ControlType.COMMIT):
        marker = parse_end_transaction_marker(batch)
        if marker is not None:
            fields["coordinatorEpoch"] = marker.coordinator_epoch
    return fields


def _text(data: bytes | None) -> str | None:
    """Bytes for a reader: as UTF-8, other bytes escaped in hexadecimal."""
    return None if data is None else data.decode("utf-8", "backslashreplace")


def _consumer_offsets_fields(record: Record) -> Row:
    if record.key is None:
        return {"damage": "record of __consumer_offsets without a key"}
    key = decode_key(record.key)
    if isinstance(key, OffsetCommitKey):
        value = None if record.value is None else decode_offset_commit_value(record.value)
        return {"key": key._asdict(), "payload": None if value is None else value._asdict()}
    if isinstance(key, GroupMetadataKey):
        group = None if record.value is None else decode_group_metadata_value(record.value)
        return {"key": key._asdict(), "payload": None if group is None else _group(group)}
    return {"key": _text(record.key), "payload": _text(record.value)}


def _group(value: object) -> Row:
    fields: Row = {}
    for name, field in value._asdict().items():  # type: ignore[attr-defined]  # a NamedTuple
        if name == "members":
            fields[name] = [
                {key: _text(v) if isinstance(v, bytes) else v for key, v in m._asdict().items()}
                for m in field
            ]
        else:
            fields[name] = field
    return fields


# -- indexes ---------------------------------------------------------------------------------


def read_offset_index(path: str) -> Iterator[Row]:
    """Entries of a `.index` file, held against the log if that is beside it."""
    base_offset = _base_offset(path)
    last_offsets = _last_offsets(path)
    for index, (relative, position) in enumerate(_entries(path, _OFFSET_ENTRY)):
        if index and relative == 0 and position == 0:
            return  # preallocated
        offset = base_offset + relative
        row: Row = {"offset": offset, "position": position}
        if last_offsets is not None and last_offsets.get(position) != offset:
            found = last_offsets.get(position)
            row["damage"] = (
                "no batch begins there" if found is None else f"batch there ends with {found}"
            )
        yield row
    yield from _cut_off(path, _OFFSET_ENTRY.size)


def read_time_index(path: str) -> Iterator[Row]:
    """Entries of a `.timeindex` file, held against the log if that is beside it."""
    base_offset = _base_offset(path)
    stamps = _stamps(path)
    previous = -1
    for index, (timestamp, relative) in enumerate(_entries(path, _TIME_ENTRY)):
        if index and timestamp == 0 and relative == 0:
            return  # preallocated
        offset = base_offset + relative
        row: Row = {"timestamp": timestamp, "offset": offset}
        if timestamp <= previous and index:
            row["damage"] = f"timestamp is not above {previous}"
        elif stamps is not None and stamps.get(offset, timestamp) != timestamp:
            row["damage"] = f"batch that ends there has max timestamp {stamps[offset]}"
        elif stamps is not None and offset not in stamps:
            row["damage"] = "no batch ends there"
        previous = timestamp
        yield row
    yield from _cut_off(path, _TIME_ENTRY.size)


def read_transaction_index(path: str) -> Iterator[Row]:
    """Entries of a `.txnindex` file."""
    for version, producer_id, first, last, stable in _entries(path, _TRANSACTION_ENTRY):
        row: Row = {
            "version": version,
            "producerId": producer_id,
            "firstOffset": first,
            "lastOffset": last,
            "lastStableOffset": stable,
        }
        if version != 0 or first > last:
            row["damage"] = "unknown version" if version else "ends before it begins"
        yield row
    yield from _cut_off(path, _TRANSACTION_ENTRY.size)


def _entries(path: str, entry: Struct) -> Iterator[tuple[int, ...]]:
    with open(path, "rb") as file:
        while data := file.read(entry.size * 4096):
            yield from entry.iter_unpack(data[: len(data) // entry.size * entry.size])


def _cut_off(path: str, size: int) -> Iterator[Row]:
    left = os.path.getsize(path) % size
    if left:
        yield {"damage": f"{left} bytes after the last entry"}


def _base_offset(path: str) -> int:
    parsed = parse_log_file_name(os.path.basename(path))
    return 0 if parsed is None else parsed.base_offset


def _log_beside(path: str) -> str | None:
    parsed = parse_log_file_name(os.path.basename(path))
    if parsed is None:
        return None
    name = f"{parsed.base_offset:020d}{LOG_SUFFIX}{parsed.stage}"
    log = os.path.join(os.path.dirname(path), name)
    return log if os.path.exists(log) else None


def _last_offsets(path: str) -> dict[int, int] | None:
    """Position of each batch in the log to its last offset."""
    log = _log_beside(path)
    if log is None:
        return None
    return {
        position: checked_header(batch).last_offset
        for position, batch, damage in _batches(log)
        if damage is None
    }


def _stamps(path: str) -> dict[int, int] | None:
    """Last offset of each batch in the log to its max timestamp."""
    log = _log_beside(path)
    if log is None:
        return None
    headers = (checked_header(batch) for _, batch, damage in _batches(log) if damage is None)
    return {header.last_offset: header.max_timestamp for header in headers}


# -- small files -----------------------------------------------------------------------------


def _whole(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def read_snapshot(path: str) -> Iterator[Row]:
    """Producers of a `.snapshot` file."""
    try:
        entries = decode_snapshot(_whole(path), path)
    except StorageError as error:
        yield {"damage": str(error)}
        return
    for entry in entries:
        yield {
            "producerId": entry.producer_id,
            "producerEpoch": entry.epoch,
            "coordinatorEpoch": entry.coordinator_epoch,
            "currentTxnFirstOffset": entry.txn_first_offset,
            "lastTimestamp": entry.last_timestamp,
            "lastSequence": entry.last_sequence,
            "lastOffset": entry.last_data_offset,
            "offsetDelta": entry.last_offset_delta,
        }


def read_offset_checkpoint(path: str) -> Iterator[Row]:
    """Entries of one of the four offset checkpoints."""
    try:
        for tp, offset in decode_offsets(_whole(path), path).items():
            yield {"topic": tp.topic, "partition": tp.partition, "offset": offset}
    except StorageError as error:
        yield {"damage": str(error)}


def read_epoch_checkpoint(path: str) -> Iterator[Row]:
    """Entries of a `leader-epoch-checkpoint`."""
    try:
        for epoch, start_offset in decode_epochs(_whole(path), path):
            yield {"epoch": epoch, "startOffset": start_offset}
    except StorageError as error:
        yield {"damage": str(error)}


def read_partition_metadata_file(path: str) -> Iterator[Row]:
    """The topic id."""
    try:
        yield {"topicId": format_uuid(decode_partition_metadata(_whole(path), path))}
    except StorageError as error:
        yield {"damage": str(error)}


def read_meta_properties_file(path: str) -> Iterator[Row]:
    """The directory's owner."""
    try:
        meta = decode_meta_properties(_whole(path), path)
    except StorageError as error:
        yield {"damage": str(error)}
        return
    directory_id = None if meta.directory_id is None else format_uuid(meta.directory_id)
    yield {
        "clusterId": meta.cluster_id,
        "nodeId": meta.node_id,
        "directoryId": directory_id,
        **meta.other,
    }


def read_clean_shutdown_file(path: str) -> Iterator[Row]:
    """The broker epoch."""
    yield {"brokerEpoch": read_broker_epoch(_whole(path))}
