"""Write record batches: new ones, and what compaction leaves of old ones.

The layouts are those of `protocol.records.batch` and `protocol.records.record`.

Source: Kafka, MemoryRecordsBuilder.java, DefaultRecord.java, MemoryRecords.java (filterTo).
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final

from protocol.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    crc32c,
)
from protocol.records.compression import Codec, compress
from protocol.records.record import Record
from protocol.records.varint import VARINTS, VARINTS_END, encode_varint

Header = tuple[str, bytes | None]

_UP_TO_SUM: Final = Struct(">qiibI")
_SUMMED: Final = Struct(">hiqqqhii")
"""A batch's header in two parts: up to the CRC, and what the CRC covers."""


def build_batch(
    records: Sequence[tuple[bytes | None, bytes | None, Sequence[Header], int]],
    *,
    base_offset: int = 0,
    codec: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
    timestamp_type: int = 0,
    leader_epoch: int = -1,
    level: int | None = None,
) -> bytearray:
    """Build a batch with offsets `base_offset`, +1, ...

    Args:
        records: (key, value, headers, timestamp in ms), at least one.
        base_offset: Offset of the first record.
        codec: A `compression.Codec`.
        producer_id: -1 without idempotence; so with `producer_epoch` and `base_sequence`.
        producer_epoch: See there.
        base_sequence: Sequence of the first record.
        transactional: Part of a transaction.
        control: Holds a marker; see `protocol.records.control`.
        timestamp_type: 0 CreateTime, 1 LogAppendTime: then readers see the greatest timestamp.
        leader_epoch: Epoch of the leader that appends it.
        level: Compression level, None for the codec's default.

    Raises:
        ValueError: No records, or no such codec or level.
    """
    if not records:
        raise ValueError("a record batch has at least one record")
    base_timestamp = records[0][3]
    block = bytearray()
    max_timestamp = base_timestamp
    for delta, (key, value, headers, timestamp) in enumerate(records):
        append_record(block, delta, timestamp - base_timestamp, key, value, headers)
        if timestamp > max_timestamp:
            max_timestamp = timestamp
    attributes = int(codec)
    if timestamp_type:
        attributes |= TIMESTAMP_TYPE_BIT
    if transactional:
        attributes |= TRANSACTIONAL_BIT
    if control:
        attributes |= CONTROL_BIT
    return _assemble(
        base_offset,
        leader_epoch,
        (
            attributes,
            len(records) - 1,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            len(records),
        ),
        block,
        level,
    )


def build_plain_batch(
    records: Sequence[tuple[bytes, bytes | None]], timestamp_ms: int
) -> bytearray:
    """Build an uncompressed batch of keys and values with one time, as coordinators write them.

    What `build_batch` makes of the same, in two thirds of the time.
    """
    count = len(records)
    pieces = [_SUMMED.pack(0, count - 1, timestamp_ms, timestamp_ms, -1, -1, -1, count)]
    for delta, (key, value) in enumerate(records):
        if value is None:
            value_size, value = b"\x01", b""
        else:
            value_size = encode_varint(len(value))
        body = b"".join(
            (
                b"\x00\x00",
                encode_varint(delta),
                encode_varint(len(key)),
                key,
                value_size,
                value,
                b"\x00",
            )
        )
        pieces += (encode_varint(len(body)), body)
    tail = b"".join(pieces)
    length = HEADER_SIZE - LOG_OVERHEAD - _SUMMED.size + len(tail)
    out = bytearray(_UP_TO_SUM.pack(0, length, -1, MAGIC, crc32c(tail)))
    out += tail
    return out


def rebuild_batch(
    header: BatchHeader,
    records: Sequence[Record],
    *,
    codec: int | None = None,
    delete_horizon_ms: int | None = None,
    level: int | None = None,
) -> bytearray:
    """Build what is left of a batch: `records`, with their own offsets, gaps included.

    Base and last offset, leader epoch, producer, sequence, timestamp type, transactional and
    control bits stay as in `header`, so that producer state rebuilt from the log is the same. With
    no records left this is the empty batch that compaction keeps for a producer's last sequence.

    Args:
        header: Header of the batch as it was.
        records: Those that stay, ascending.
        codec: None: as it was.
        delete_horizon_ms: From when tombstones and markers may go (KIP-534). None: as it was.
        level: Compression level, None for the codec's default.
    """
    if delete_horizon_ms is None:
        delete_horizon_ms = header.delete_horizon_ms
    base_timestamp = NO_TIMESTAMP
    max_timestamp = header.max_timestamp
    if records:
        base_timestamp = records[0].timestamp if delete_horizon_ms is None else delete_horizon_ms
        if not header.is_log_append_time:
            max_timestamp = max(record.timestamp for record in records)
    block = bytearray()
    for offset, timestamp, key, value, headers in records:
        append_record(
            block, offset - header.base_offset, timestamp - base_timestamp, key, value, headers
        )
    return reassemble(
        header,
        block,
        len(records),
        codec=header.codec if codec is None else codec,
        has_horizon=delete_horizon_ms is not None,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        level=level,
    )


def reassemble(
    header: BatchHeader,
    block: bytes | bytearray,
    count: int,
    *,
    codec: int,
    has_horizon: bool,
    base_timestamp: int,
    max_timestamp: int,
    level: int | None = None,
) -> bytearray:
    """Put a block of records into a batch in place of another: see `rebuild_batch`.

    Args:
        header: Header of the batch as it was.
        block: Uncompressed; time deltas are from `base_timestamp`.
        count: Records in it.
        codec: A `compression.Codec`.
        has_horizon: Whether `base_timestamp` is the delete horizon. An empty batch has none.
        base_timestamp: Milliseconds; -1 without records.
        max_timestamp: Milliseconds.
        level: Compression level, None for the codec's default.
    """
    attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT)
    if count:
        attributes |= int(codec)
        if has_horizon:
            attributes |= DELETE_HORIZON_BIT
    return _assemble(
        header.base_offset,
        header.leader_epoch,
        (
            attributes,
            header.last_offset_delta,
            base_timestamp,
            max_timestamp,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            count,
        ),
        block,
        level,
    )


def append_record(
    block: bytearray,
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[Header],
) -> None:
    """Append one record to an uncompressed block of records."""
    # Written for speed: coordinators build most of their batches of a single record.
    if key is None:
        key_size, key = b"\x01", b""
    else:
        size = len(key)
        key_size = VARINTS[size] if size < VARINTS_END else encode_varint(size)
    if value is None:
        value_size, value = b"\x01", b""
    else:
        size = len(value)
        value_size = VARINTS[size] if size < VARINTS_END else encode_varint(size)
    body = b"".join(
        (
            b"\x00",  # attributes
            encode_varint(timestamp_delta) if timestamp_delta else b"\x00",
            encode_varint(offset_delta) if offset_delta else b"\x00",
            key_size,
            key,
            value_size,
            value,
            encode_headers(headers) if headers else b"\x00",
        )
    )
    size = len(body)
    block += VARINTS[size] if size < VARINTS_END else encode_varint(size)
    block += body


def encode_headers(headers: Iterable[Header]) -> bytes:
    """A record's headers, their number first."""
    pairs = tuple(headers)
    pieces = [encode_varint(len(pairs))]
    for name, content in pairs:
        raw = name.encode("utf-8", "surrogateescape")
        pieces += (encode_varint(len(raw)), raw)
        pieces += (b"\x01",) if content is None else (encode_varint(len(content)), content)
    return b"".join(pieces)


def _assemble(
    base_offset: int,
    leader_epoch: int,
    summed: tuple[int, int, int, int, int, int, int, int],
    block: bytes | bytearray,
    level: int | None,
) -> bytearray:
    """Header and block, compressed as the attributes say; length and CRC are worked out.

    `summed` are the header's fields from the attributes on.
    """
    codec = summed[0] & CODEC_MASK
    payload = compress(codec, block, level) if codec != Codec.NONE else block
    tail = b"".join((_SUMMED.pack(*summed), payload))
    length = HEADER_SIZE - LOG_OVERHEAD + len(payload)
    out = bytearray(_UP_TO_SUM.pack(base_offset, length, leader_epoch, MAGIC, crc32c(tail)))
    out += tail
    return out
