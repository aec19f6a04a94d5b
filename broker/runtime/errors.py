"""The one table from internal exceptions to the error codes that clients get."""

from protocol.error_codes import ErrorCode
from storage import errors as storage_errors
from tiered import errors as tiered_errors

MESSAGE_LENGTH_MAX = 2_000
"""Characters of a message. It quotes what the client sent, and an old response has room for 32 KiB:
a name or value that filled its request would not fit with the words around it."""


class ApiError(Exception):
    """An error for a whole request: `code`, and `message` if the response has a field for it."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        if message is not None and len(message) > MESSAGE_LENGTH_MAX:
            message = message[: MESSAGE_LENGTH_MAX - 1] + "…"
        super().__init__(message or code.name)
        self.code = code
        self.message = message


_CODES: dict[type[Exception], ErrorCode] = {
    storage_errors.OffsetOutOfRangeError: ErrorCode.OFFSET_OUT_OF_RANGE,
    storage_errors.CorruptBatchError: ErrorCode.CORRUPT_MESSAGE,
    storage_errors.UnsupportedFormatError: ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    storage_errors.InvalidRecordError: ErrorCode.INVALID_RECORD,
    storage_errors.InvalidTimestampError: ErrorCode.INVALID_TIMESTAMP,
    storage_errors.BatchTooLargeError: ErrorCode.MESSAGE_TOO_LARGE,
    storage_errors.BatchListTooLargeError: ErrorCode.RECORD_LIST_TOO_LARGE,
    storage_errors.UnsupportedCodecError: ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    storage_errors.OutOfOrderSequenceError: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    storage_errors.DuplicateSequenceError: ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    storage_errors.InvalidProducerEpochError: ErrorCode.INVALID_PRODUCER_EPOCH,
    storage_errors.UnknownProducerIdError: ErrorCode.UNKNOWN_PRODUCER_ID,
    storage_errors.InvalidTransactionStateError: ErrorCode.INVALID_TXN_STATE,
    storage_errors.TransactionCoordinatorFencedError: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    storage_errors.InconsistentTopicIdError: ErrorCode.INCONSISTENT_TOPIC_ID,
    storage_errors.PartitionLoadingError: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    storage_errors.LogDirectoryOfflineError: ErrorCode.KAFKA_STORAGE_ERROR,
    storage_errors.CutSegmentError: ErrorCode.KAFKA_STORAGE_ERROR,
    storage_errors.DiskError: ErrorCode.KAFKA_STORAGE_ERROR,
    storage_errors.DirectoryBusyError: ErrorCode.REQUEST_TIMED_OUT,
    tiered_errors.RemoteOffsetNotFoundError: ErrorCode.OFFSET_OUT_OF_RANGE,
    # Never wrong data: consumers stop and report the offset.
    tiered_errors.CorruptRemoteDataError: ErrorCode.CORRUPT_MESSAGE,
    # Kafka returns UNKNOWN_SERVER_ERROR, which librdkafka hands to the application; on this one all
    # clients refresh their metadata and retry.
    tiered_errors.TieredError: ErrorCode.KAFKA_STORAGE_ERROR,
}


def code_of(error: Exception) -> ErrorCode:
    """The error code a client gets for `error`; UNKNOWN_SERVER_ERROR if it is in no table."""
    if isinstance(error, ApiError):
        return error.code
    for kind in type(error).__mro__:
        code = _CODES.get(kind)
        if code is not None:
            return code
    return ErrorCode.UNKNOWN_SERVER_ERROR
