"""Batches and records of a `.log` file as rows."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cli.records.dump_rows import Row
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

DECOMPRESSED_SIZE_MAX: Final = 256 << 20
"""Bytes of a batch's records; more is damage."""

READ_BYTES: Final = 1 << 20
"""Read at a time, to see whether anything but zeros follows."""


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


def read_log(path: str, options: DumpOptions) -> Iterator[Row]:
    """Batches of a `.log` file, with their records if asked for."""
    for position, batch, damage in read_batches(path):
        if damage is not None:
            yield {"position": position, "damage": damage}
            return
        header = checked_header(batch)
        yield _batch_row(position, header, batch)
        if options.records or options.content:
            yield from _record_rows(header, batch, options)


def read_batches(path: str) -> Iterator[tuple[int, memoryview, str | None]]:
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
