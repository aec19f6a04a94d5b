"""Records inside a batch: walk them, check them, find one by time.

After the 61-byte header, decompressed, `records count` times; integers are zigzag varints:

    field             type      meaning
    length            varint    bytes after this field
    attributes        int8      unused, 0
    timestamp delta   varlong   timestamp - the batch's base timestamp
    offset delta      varint    offset - the batch's base offset
    key length        varint    -1: null key
    key
    value length      varint    -1: null value, a tombstone in a compacted topic
    value
    headers           varint    count, then each:
        key length    varint    UTF-8 by the rules, any bytes in practice; never null
        key
        value length  varint    -1: null
        value

In a LogAppendTime batch every record's time is the batch's max timestamp, whatever the deltas say.

A walk decompresses the whole block at once, at most `max_size` bytes, and touches no record twice.
The CRC is not checked.

Source: Kafka, DefaultRecord.java, DefaultRecordBatch.java; KIP-32, KIP-82, KIP-98.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from protocol.errors import DecodeError
from protocol.records.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchHeader,
    checked_header,
)
from protocol.records.compression import decompress
from protocol.records.varint import read_varint, read_varlong

Headers = tuple[tuple[str, bytes | None], ...]

RECORD_SIZE_MIN: Final = 7
"""Bytes of the smallest record: null key, null value, no headers."""


class Record(NamedTuple):
    """One record; `timestamp` in ms since 1970 UTC, `key` and `value` None when null."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class RecordsCheck(NamedTuple):
    """What `check_records` found.

    Attributes:
        errors: (index in the batch, what is wrong) of records at fault, by rising index.
        max_timestamp: Greatest timestamp in ms, -1 without records.
        max_timestamp_offset: Offset of the first record that has it, -1 without records.
    """

    errors: list[tuple[int, str]]
    max_timestamp: int
    max_timestamp_offset: int


def records_block(batch: memoryview, header: BatchHeader, *, max_size: int) -> bytes:
    """The batch's records as one decompressed block.

    Raises:
        DecodeError: Unknown codec, damaged block, more than `max_size` bytes, or a record count
            that the block cannot hold.
    """
    # What compaction leaves of a batch may have no block at all.
    block = b""
    end = header.batch_length + LOG_OVERHEAD
    if end > HEADER_SIZE:
        block = decompress(header.codec, batch[HEADER_SIZE:end], max_size=max_size)
    count = header.records_count
    if count < 0 or count * RECORD_SIZE_MIN > len(block):
        raise DecodeError(f"batch claims {count} records in {len(block)} bytes")
    return block


def iterate_records(batch: memoryview, *, max_size: int) -> Iterator[Record]:
    """Yield the records of the batch that `batch` begins with.

    Args:
        batch: One record batch; what follows it is ignored.
        max_size: Most bytes the records may decompress to.

    Raises:
        DecodeError: The structure is damaged. Records before the damage were yielded.
    """
    header = checked_header(batch)
    block = records_block(batch, header, max_size=max_size)
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    append_time = header.max_timestamp
    is_append_time = header.is_log_append_time
    size = len(block)
    position = 0
    try:
        for _ in range(header.records_count):
            # Varints of one byte, and of two where usual, are read in place: a call costs more.
            byte = block[position]
            position += 1
            if byte > 127:
                second = block[position]
                if second < 128:
                    byte = byte & 0x7F | second << 7
                    length = (byte >> 1) ^ -(byte & 1)
                    position += 1
                else:
                    length, position = read_varint(block, position - 1)
            else:
                length = (byte >> 1) ^ -(byte & 1)
            end = position + length
            if length < 0 or end > size:
                raise DecodeError(f"record of {length} bytes, {size - position} are left")
            byte = block[position + 1]
            position += 2
            if byte > 127:
                delta, position = read_varlong(block, position - 1)
            else:
                delta = (byte >> 1) ^ -(byte & 1)
            timestamp = append_time if is_append_time else base_timestamp + delta
            byte = block[position]
            position += 1
            if byte > 127:
                second = block[position]
                if second < 128:
                    byte = byte & 0x7F | second << 7
                    delta = (byte >> 1) ^ -(byte & 1)
                    position += 1
                else:
                    delta, position = read_varint(block, position - 1)
            else:
                delta = (byte >> 1) ^ -(byte & 1)
            byte = block[position]
            position += 1
            if byte == 1:
                key = None
            else:
                if byte > 127:
                    length, position = read_varint(block, position - 1)
                else:
                    length = (byte >> 1) ^ -(byte & 1)
                if length < 0 or position + length > end:
                    key, position = _read_bytes(block, position, length, end)
                else:
                    key = block[position : position + length]
                    position += length
            byte = block[position]
            position += 1
            if byte == 1:
                value = None
            else:
                if byte > 127:
                    second = block[position]
                    if second < 128:
                        byte = byte & 0x7F | second << 7
                        length = (byte >> 1) ^ -(byte & 1)
                        position += 1
                    else:
                        length, position = read_varint(block, position - 1)
                else:
                    length = (byte >> 1) ^ -(byte & 1)
                if length < 0 or position + length > end:
                    value, position = _read_bytes(block, position, length, end)
                else:
                    value = block[position : position + length]
                    position += length
            if block[position]:
                headers, position = read_headers(block, position, end)
            else:
                headers = ()
                position += 1
            if position != end:
                raise DecodeError(f"record's length is off by {position - end} bytes")
            yield tuple.__new__(Record, (base_offset + delta, timestamp, key, value, headers))
    except IndexError:
        raise DecodeError("record is cut off") from None
    if position != size:
        raise DecodeError(f"{size - position} bytes after the last record")


def _read_bytes(block: bytes, position: int, length: int, end: int) -> tuple[bytes | None, int]:
    """Nullable bytes whose length was read: the unusual cases."""
    if length == -1:  # -1 in more bytes than it needs
        return None, position
    if length < 0 or position + length > end:
        raise DecodeError(f"record has a field of {length} bytes, {end - position} are left")
    return block[position : position + length], position + length


def read_headers(block: bytes, position: int, end: int) -> tuple[Headers, int]:
    """(headers, position after) where they begin at `position` of a record that ends at `end`.

    Bytes of a key that are not UTF-8 are surrogate escapes: `encode_headers` writes them back.

    Raises:
        DecodeError: They are damaged.
        IndexError: The block ends within.
    """
    count, position = read_varint(block, position)
    if count < 0 or count * 2 > end - position:
        raise DecodeError(f"record claims {count} headers in {end - position} bytes")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        length = block[position]
        if length > 127:
            length, position = read_varint(block, position)
        else:
            length = (length >> 1) ^ -(length & 1)
            position += 1
        stop = position + length
        if length < 0 or stop > end:
            raise DecodeError(f"record header has a key of {length} bytes")
        key = str(block[position:stop], "utf-8", "surrogateescape")
        length = block[stop]
        if length > 127:
            length, position = read_varint(block, stop)
        else:
            length = (length >> 1) ^ -(length & 1)
            position = stop + 1
        value, position = _read_bytes(block, position, length, end)
        headers.append((key, value))
    return tuple(headers), position


def iterate_stamps(batch: memoryview, *, max_size: int) -> Iterator[tuple[int, int]]:
    """Yield (offset, timestamp) of every record: `iterate_records` without the content.

    Raises:
        DecodeError: A length is wrong; what lies within a record is not read.
    """
    header = checked_header(batch)
    block = records_block(batch, header, max_size=max_size)
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    append_time = header.max_timestamp
    is_append_time = header.is_log_append_time
    size = len(block)
    position = 0
    try:
        for _ in range(header.records_count):
            length, position = read_varint(block, position)
            end = position + length
            if length < 0 or end > size:
                raise DecodeError(f"record of {length} bytes, {size - position} are left")
            delta, position = read_varlong(block, position + 1)
            timestamp = append_time if is_append_time else base_timestamp + delta
            delta, position = read_varint(block, position)
            if position > end:
                raise DecodeError("record's length is too small")
            yield base_offset + delta, timestamp
            position = end
    except IndexError:
        raise DecodeError("record is cut off") from None
    if position != size:
        raise DecodeError(f"{size - position} bytes after the last record")


def find_timestamp(
    batch: memoryview, timestamp: int, *, max_size: int, start_offset: int = 0
) -> tuple[int, int] | None:
    """First record at or above `start_offset` whose time is at least `timestamp`.

    Args:
        batch: One record batch.
        timestamp: Milliseconds since 1970 UTC.
        max_size: Most bytes the records may decompress to.
        start_offset: The log start offset, where that lies within the batch.

    Returns:
        (timestamp, offset), or None. Without decompressing where the header tells.

    Raises:
        DecodeError: The structure is damaged.
    """
    header = checked_header(batch)
    if header.max_timestamp < timestamp or header.last_offset < start_offset:
        return None
    for offset, stamp in iterate_stamps(batch, max_size=max_size):
        if stamp >= timestamp and offset >= start_offset:
            return stamp, offset
    return None


def find_max_timestamp(batch: memoryview, *, max_size: int) -> tuple[int, int] | None:
    """(timestamp, offset) of the first record that has the batch's max timestamp.

    None when no record has it: without timestamps, or after compaction removed the record.
    """
    header = checked_header(batch)
    if header.max_timestamp < 0:
        return None
    for offset, stamp in iterate_stamps(batch, max_size=max_size):
        if stamp == header.max_timestamp:
            return stamp, offset
    return None


def check_records(
    batch: memoryview,
    *,
    max_size: int,
    require_key: bool = False,
    timestamp_min: int | None = None,
    timestamp_max: int | None = None,
) -> RecordsCheck:
    """Walk a produced batch record by record, for `record.validation=full` and compacted topics.

    Offsets must be base offset + 0, 1, ... without gaps, as many as the last offset delta says:
    only a compacted batch may have gaps, and no client sends those.

    Args:
        batch: One record batch.
        max_size: Most bytes the records may decompress to.
        require_key: The topic is compacted: a record without a key is at fault.
        timestamp_min: Earliest time allowed in ms (`message.timestamp.before.max.ms`).
        timestamp_max: Latest time allowed in ms (`message.timestamp.after.max.ms`). Neither bound
            concerns LogAppendTime: pass None; nor a record that has no time (-1).

    Raises:
        DecodeError: The batch as a whole is damaged: block, lengths, count, header keys.
    """
    header = checked_header(batch)
    errors: list[tuple[int, str]] = []
    if header.records_count != header.last_offset_delta + 1:
        raise DecodeError(
            f"batch claims {header.records_count} records and last offset delta "
            f"{header.last_offset_delta}"
        )
    highest = -1
    highest_offset = -1
    records = iterate_records(batch, max_size=max_size)
    for index, (offset, timestamp, key, _value, _headers) in enumerate(records):
        if offset != header.base_offset + index:
            errors.append(
                (index, f"offset delta is {offset - header.base_offset} instead of {index}")
            )
        elif key is None and require_key:
            errors.append((index, "record without a key in a compacted topic"))
        elif timestamp != NO_TIMESTAMP and (
            (timestamp_min is not None and timestamp < timestamp_min)
            or (timestamp_max is not None and timestamp > timestamp_max)
        ):
            errors.append((index, f"timestamp {timestamp} is out of range"))
        if timestamp > highest:
            highest = timestamp
            highest_offset = offset
    return RecordsCheck(errors, highest, highest_offset)
