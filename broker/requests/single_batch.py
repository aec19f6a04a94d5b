"""The records of a Produce from version 3 on: exactly one whole batch of format 2 (KIP-98)."""

from struct import Struct
from typing import Final

from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from protocol.records.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC, MAGIC_POSITION
from storage.errors import CorruptBatchError

ZSTD_FROM_VERSION: Final = 7
"""Of Produce (KIP-110)."""

LENGTH_MAX: Final = 2**31 - 1
BATCH_LENGTH_MIN: Final = 14
"""What a length field says at least: of the smallest message of format 0."""

MAGIC_AND_BEFORE: Final = MAGIC_POSITION + 1
"""Bytes of a batch up to its magic."""

MESSAGE_SIZE_MIN: Final = 26
"""Bytes of the smallest message of format 0: one message is shorter than a batch's header."""

_batch_length: Final = Struct(">I").unpack_from


def check_single_batch(records: memoryview | None, version: int) -> None:
    """Check that a Produce of version 3 or later has exactly one batch of format 2 (KIP-98).

    Raises:
        CorruptBatchError: Less than a batch's header, or damaged before its checksum: a client
            sends it again.
        ApiError: No whole batch, more than one, or one of format 0 or 1 (INVALID_RECORD); or zstd
            from a client that speaks a version in which zstd does not exist (KIP-110).
    """
    if (
        records is None
        or len(records) < LOG_OVERHEAD
        or _batch_length(records, 8)[0] + LOG_OVERHEAD != len(records)
    ):
        if records is not None and _is_damaged(records):
            raise CorruptBatchError(f"length field or magic of {len(records)} bytes are damaged")
        raise ApiError(
            ErrorCode.INVALID_RECORD, "Produce requests must have exactly one record batch"
        )
    if len(records) >= MESSAGE_SIZE_MIN and records[MAGIC_POSITION] < MAGIC:
        raise ApiError(
            ErrorCode.INVALID_RECORD,
            f"batch has magic {records[MAGIC_POSITION]}, only {MAGIC} is allowed here",
        )
    if len(records) < HEADER_SIZE:
        raise CorruptBatchError(f"a batch of {len(records)} bytes is smaller than its header")
    if version < ZSTD_FROM_VERSION and records[22] & 0x07 == 4:
        raise ApiError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            "Produce requests before version 7 cannot use zstd",
        )


def _is_damaged(records: memoryview) -> bool:
    """Whether records that are not one batch cannot be what a client meant to send.

    The checksum is not of the length and the magic: one that no batch has is damage, and so is a
    length behind which no other batch begins. One that goes beyond the end is no whole batch.

    Source: Kafka, ByteBufferLogInputStream.java.
    """
    size = len(records)
    if size < LOG_OVERHEAD:
        return False
    length: int = _batch_length(records, 8)[0]
    if length < BATCH_LENGTH_MIN or length > LENGTH_MAX:
        return True
    if size < MAGIC_AND_BEFORE:
        return False
    if records[MAGIC_POSITION] != MAGIC:
        return records[MAGIC_POSITION] > MAGIC
    end = LOG_OVERHEAD + length
    return end < size and not _begins_whole(records[end:])


def _begins_whole(records: memoryview) -> bool:
    """Whether records begin with a whole batch, by its length and magic."""
    if len(records) < MAGIC_AND_BEFORE or records[MAGIC_POSITION] > MAGIC:
        return False
    length: int = _batch_length(records, 8)[0]
    return BATCH_LENGTH_MIN <= length <= len(records) - LOG_OVERHEAD
