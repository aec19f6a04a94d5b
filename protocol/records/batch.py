"""Record batch, magic 2: the 61-byte header as a view, its CRC, and the fields a broker rewrites.

Big-endian, the unit of a Produce request, of a `.log` file and of a Fetch response:

    byte  size  field
       0     8  base offset            the broker's to set; not under the CRC
       8     4  batch length           bytes after this field; whole batch = batch length + 12
      12     4  partition leader epoch the broker's to set; not under the CRC
      16     1  magic                  2
      17     4  crc                    CRC-32C (Castagnoli) of bytes 21 .. end, unsigned
      21     2  attributes             bits 0-2 codec (0 none 1 gzip 2 snappy 3 lz4 4 zstd)
                                       bit 3 timestamp type (0 CreateTime 1 LogAppendTime)
                                       bit 4 transactional, bit 5 control
                                       bit 6 base timestamp is the delete horizon (KIP-534)
      23     4  last offset delta      last offset - base offset (kept by compaction)
      27     8  base timestamp         ms since 1970 UTC, of the first record; or delete horizon
      35     8  max timestamp          ms since 1970 UTC; -1 where there is none
      43     8  producer id            -1 without idempotence
      51     2  producer epoch         -1 without idempotence
      53     4  base sequence          -1 without idempotence, and in control batches
      57     4  records count          a compacted batch may have 0
      61     .  records                see `protocol.records.record`; one block if compressed

Base offset and leader epoch lie before the CRC's range, so that a leader can set them without
summing the payload again (KIP-98). Nothing here reads or copies the records.

Source: Kafka, DefaultRecordBatch.java; KIP-98, KIP-101, KIP-534.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from fastcrc import crc32

from protocol.errors import DecodeError

HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12
"""Bytes of base offset and batch length: what the batch length does not count."""
MAGIC: Final = 2
MAGIC_POSITION: Final = 16
CRC_POSITION: Final = 17
CRC_START: Final = 21
"""First byte under the CRC; the range ends with the batch."""

CODEC_MASK: Final = 0x07
TIMESTAMP_TYPE_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1

SEQUENCE_COUNT: Final = 1 << 31
"""Sequence numbers run 0 .. 2**31 - 1 and wrap to 0."""

_PREFIX: Final = Struct(">qi")
_OFFSET: Final = Struct(">q")
_INT32: Final = Struct(">i")
_UINT32: Final = Struct(">I")
_ATTRIBUTES: Final = Struct(">h")

crc32c = crc32.iscsi
"""CRC-32C of any contiguous buffer, no copy; an optional second argument is the CRC so far."""


class UnsupportedMagicError(DecodeError):
    """The bytes are a message set of magic 0 or 1, or of one that does not exist.

    A produce client sees UNSUPPORTED_FOR_MESSAGE_FORMAT. `magic` is what the byte said.
    """

    def __init__(self, magic: int) -> None:
        super().__init__(f"record batch has magic {magic}, only 2 is supported")
        self.magic = magic


# Where a field lies in a `BatchHeader`, and in what `HEADER` unpacks. For code that runs for every
# batch and needs few fields: in CPython an item costs a fifth of a named tuple's attribute.
BATCH_LENGTH_FIELD: Final = 1
ATTRIBUTES_FIELD: Final = 5
LAST_OFFSET_DELTA_FIELD: Final = 6
BASE_TIMESTAMP_FIELD: Final = 7
MAX_TIMESTAMP_FIELD: Final = 8
PRODUCER_ID_FIELD: Final = 9
PRODUCER_EPOCH_FIELD: Final = 10
BASE_SEQUENCE_FIELD: Final = 11


class BatchHeader(NamedTuple):
    """The header's thirteen fields in wire order, and what follows from them. Has no bytes."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        """Offset of the last record, inclusive, also when compaction has removed that record."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """Offset after the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        """Compression codec number, 0 .. 7; `compression.Codec` knows 0 .. 4."""
        return self.attributes & CODEC_MASK

    @property
    def is_transactional(self) -> bool:
        """Part of a transaction, data or marker."""
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        """Holds a marker instead of data; clients never see its records."""
        return self.attributes & CONTROL_BIT != 0

    @property
    def is_log_append_time(self) -> bool:
        """All records carry the max timestamp, the broker's time of appending (KIP-32)."""
        return self.attributes & TIMESTAMP_TYPE_BIT != 0

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, wrapped; -1 when the batch has no sequence."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) % SEQUENCE_COUNT

    @property
    def delete_horizon_ms(self) -> int | None:
        """From when the cleaner may drop the batch's tombstones and markers; None: not set."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None


def read_header(view: memoryview | bytes | bytearray, position: int = 0) -> BatchHeader:
    """Read the header at `position`, without judging its content.

    For bytes already trusted or checked by the caller; else `checked_header`.

    Raises:
        DecodeError: Fewer than 61 bytes are left.
    """
    if position < 0 or len(view) - position < HEADER_SIZE:
        raise DecodeError(
            f"record batch header needs {HEADER_SIZE} bytes, {len(view) - position} are left"
        )
    return tuple.__new__(BatchHeader, HEADER.unpack_from(view, position))


def checked_header(view: memoryview | bytes | bytearray, position: int = 0) -> BatchHeader:
    """Read the header at `position`; magic is 2 and the whole batch lies within `view`.

    The CRC is not checked, see `crc_matches`; neither are counts and attributes.

    Raises:
        UnsupportedMagicError: Magic 0, 1 or unknown. Judged before the length: those are shorter.
        DecodeError: Header or batch is cut off, or the length is below that of a header.
    """
    left = len(view) - position
    if position >= 0 and left > MAGIC_POSITION and view[position + MAGIC_POSITION] != MAGIC:
        magic = view[position + MAGIC_POSITION]
        raise UnsupportedMagicError(magic if magic < 128 else magic - 256)
    header = read_header(view, position)
    size = header.batch_length + LOG_OVERHEAD
    if size < HEADER_SIZE:
        raise DecodeError(f"record batch claims {size} bytes, less than its header")
    if size > left:
        raise DecodeError(f"record batch claims {size} bytes, {left} are left")
    return header


def iterate_batches(
    view: memoryview, *, allow_partial: bool = False
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of every batch in `view`; the batch is `view[position:][:size]`.

    Each header passed `checked_header`. Bytes are neither copied nor summed.

    Args:
        view: Batches back to back.
        allow_partial: End quietly where the last batch is cut off, as consumers must: a broker
            may send an incomplete last batch (KIP-74).

    Raises:
        DecodeError: At the first bad batch; those before it were yielded.
    """
    position = 0
    end = len(view)
    while position < end:
        if allow_partial and not _is_whole(view, position):
            return
        header = checked_header(view, position)
        yield position, header
        position += header.batch_length + LOG_OVERHEAD


def _is_whole(view: memoryview, position: int) -> bool:
    left = len(view) - position
    if left < LOG_OVERHEAD:
        return False
    length: int = _PREFIX.unpack_from(view, position)[1]
    return length + LOG_OVERHEAD <= left


def compute_crc(view: memoryview, position: int, size: int) -> int:
    """CRC-32C of the `size`-byte batch at `position`."""
    return crc32c(view[position + CRC_START : position + size])


def crc_matches(view: memoryview, position: int, header: BatchHeader) -> bool:
    """Whether the batch at `position`, which must lie within `view`, has the CRC it claims."""
    end = position + header.batch_length + LOG_OVERHEAD
    return crc32c(view[position + CRC_START : end]) == header.crc


def set_offset_and_epoch(
    view: memoryview | bytearray, position: int, base_offset: int, leader_epoch: int
) -> None:
    """Give the batch at `position` its place in the log. The CRC stays valid."""
    _OFFSET.pack_into(view, position, base_offset)
    _INT32.pack_into(view, position + 12, leader_epoch)


def set_max_timestamp(
    view: memoryview, position: int, header: BatchHeader, *, log_append_time: bool, timestamp: int
) -> None:
    """Set timestamp type and max timestamp (ms), then sum the batch again.

    With LogAppendTime this is all a broker does: readers take the max timestamp for every record
    and ignore the deltas (KIP-32).
    """
    attributes = header.attributes & ~TIMESTAMP_TYPE_BIT
    if log_append_time:
        attributes |= TIMESTAMP_TYPE_BIT
    if attributes == header.attributes and timestamp == header.max_timestamp:
        return
    _ATTRIBUTES.pack_into(view, position + 21, attributes)
    _OFFSET.pack_into(view, position + 35, timestamp)
    update_crc(view, position, header.batch_length + LOG_OVERHEAD)


def update_crc(view: memoryview, position: int, size: int) -> None:
    """Sum the `size`-byte batch at `position` and store the CRC: after any change under it."""
    _UINT32.pack_into(view, position + CRC_POSITION, compute_crc(view, position, size))


__all__ = [
    "ATTRIBUTES_FIELD",
    "BASE_SEQUENCE_FIELD",
    "BASE_TIMESTAMP_FIELD",
    "BATCH_LENGTH_FIELD",
    "CODEC_MASK",
    "CONTROL_BIT",
    "CRC_POSITION",
    "CRC_START",
    "DELETE_HORIZON_BIT",
    "HEADER",
    "HEADER_SIZE",
    "LAST_OFFSET_DELTA_FIELD",
    "LOG_OVERHEAD",
    "MAGIC",
    "MAGIC_POSITION",
    "MAX_TIMESTAMP_FIELD",
    "NO_LEADER_EPOCH",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "PRODUCER_EPOCH_FIELD",
    "PRODUCER_ID_FIELD",
    "SEQUENCE_COUNT",
    "TIMESTAMP_TYPE_BIT",
    "TRANSACTIONAL_BIT",
    "BatchHeader",
    "UnsupportedMagicError",
    "checked_header",
    "compute_crc",
    "crc32c",
    "crc_matches",
    "iterate_batches",
    "read_header",
    "set_max_timestamp",
    "set_offset_and_epoch",
    "update_crc",
]
