"""Control batches: the markers that end a transaction.

A batch with the control and transactional bits, base sequence -1 and one record, big-endian:

    key    byte  size  field
              0     2  version             0
              2     2  type                0 ABORT, 1 COMMIT; others belong to the Raft log

    value  byte  size  field
              0     2  version             0
              2     4  coordinator epoch   fences markers of an old coordinator

Longer keys and values, and higher versions, come from newer brokers: what we know of them is read.

Source: Kafka, ControlRecordType.java, EndTransactionMarker.java; KIP-98.
"""

from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from protocol.errors import DecodeError
from protocol.records.batch import (
    CONTROL_BIT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL_BIT,
    crc32c,
    read_header,
)
from protocol.records.record import iterate_records

_KEY: Final = Struct(">hh")
_VALUE: Final = Struct(">hi")

_MARKER_SIZE_MAX: Final = 64 * 1024

_PLAIN: Final = Struct(">5shhchic")
_PLAIN_SIZE: Final = HEADER_SIZE + _PLAIN.size
_PLAIN_ATTRIBUTES: Final = TRANSACTIONAL_BIT | CONTROL_BIT
_PLAIN_HEAD: Final = b"\x20\0\0\0\x08"
_PLAIN_VALUE_SIZE: Final = b"\x0c"
_PLAIN_TAIL: Final = b"\0"
"""A marker's only record as brokers write it today, constants around key and value: see `record`.

Several are written, and read by the log at once, for every transaction.
"""

MARKER_SIZE: Final = _PLAIN_SIZE
"""Bytes of a marker's batch as brokers write it today."""

_UP_TO_SUM: Final = Struct(">qiibI")
_SUMMED: Final = Struct(">hiqqqhii5shhchic")
"""A marker's whole batch in two parts: up to the CRC, and what the CRC covers."""


class ControlType(IntEnum):
    """Type of a control record. UNKNOWN is never written."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTransactionMarker(NamedTuple):
    """How a transaction ended.

    Attributes:
        control_type: ABORT or COMMIT.
        coordinator_epoch: Epoch of the transaction coordinator that wrote it.
        offset: Offset of the marker.
        timestamp: Milliseconds since 1970 UTC.
    """

    control_type: ControlType
    coordinator_epoch: int
    offset: int
    timestamp: int


def build_end_transaction_marker(
    *,
    producer_id: int,
    producer_epoch: int,
    commit: bool,
    coordinator_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """Build the control batch that commits or aborts a producer's open transaction."""
    # All markers have one layout, so there is nothing to be built piece by piece.
    summed = _SUMMED.pack(
        _PLAIN_ATTRIBUTES,
        0,
        timestamp_ms,
        timestamp_ms,
        producer_id,
        producer_epoch,
        -1,
        1,
        _PLAIN_HEAD,
        0,
        commit,
        _PLAIN_VALUE_SIZE,
        0,
        coordinator_epoch,
        _PLAIN_TAIL,
    )
    return bytearray(
        _UP_TO_SUM.pack(
            base_offset, MARKER_SIZE - LOG_OVERHEAD, leader_epoch, MAGIC, crc32c(summed)
        )
        + summed
    )


def parse_control_type(key: bytes | None) -> ControlType:
    """Type of a control record by its key; UNKNOWN for types we have no name for.

    Raises:
        DecodeError: The key is missing or too short, or its version negative.
    """
    if key is None or len(key) < _KEY.size:
        raise DecodeError("control record has no complete key")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise DecodeError(f"control record key has version {version}")
    try:
        return ControlType(number)
    except ValueError:
        return ControlType.UNKNOWN


def parse_end_transaction_marker(batch: memoryview) -> EndTransactionMarker | None:
    """Read the marker in a control batch.

    Returns:
        None for control batches that end no transaction, also empty ones left by compaction.

    Raises:
        DecodeError: No control batch, or a damaged one.
    """
    header = read_header(batch)
    if header.attributes == _PLAIN_ATTRIBUTES and len(batch) == header.size == _PLAIN_SIZE:
        head, key_version, number, value_size, version, epoch, tail = _PLAIN.unpack_from(
            batch, HEADER_SIZE
        )
        if (
            head == _PLAIN_HEAD
            and value_size == _PLAIN_VALUE_SIZE
            and tail == _PLAIN_TAIL
            and header.records_count == 1
            and key_version >= 0
            and version >= 0
            and 0 <= number <= 1
        ):
            control_type = ControlType.COMMIT if number else ControlType.ABORT
            return EndTransactionMarker(
                control_type, epoch, header.base_offset, header.base_timestamp
            )
    elif not header.is_control:
        raise DecodeError("batch is not a control batch")
    for record in iterate_records(batch, max_size=_MARKER_SIZE_MAX):
        control_type = parse_control_type(record.key)
        if control_type not in (ControlType.ABORT, ControlType.COMMIT):
            return None
        if record.value is None or len(record.value) < _VALUE.size:
            raise DecodeError("end transaction marker has no complete value")
        version, coordinator_epoch = _VALUE.unpack_from(record.value)
        if version < 0:
            raise DecodeError(f"end transaction marker has version {version}")
        return EndTransactionMarker(
            control_type, coordinator_epoch, record.offset, record.timestamp
        )
    return None
