"""Errors of the storage layer: the expected failures of a log.

    StorageError
    ├── OffsetOutOfRangeError        below the log start or above the end
    │   └── OffsetNotLocalError      from the log start on, but only remote storage has it
    ├── BatchError                   a produced batch is refused; nothing was written
    │   ├── CorruptBatchError        length, CRC-32C or structure is wrong
    │   ├── UnsupportedFormatError   magic 0 or 1
    │   ├── InvalidRecordError       well formed, but not allowed here (no key where one is needed)
    │   ├── InvalidTimestampError    outside message.timestamp.before/after.max.ms
    │   ├── BatchTooLargeError       above max.message.bytes
    │   ├── BatchListTooLargeError   above segment.bytes
    │   └── UnsupportedCodecError    unknown codec bits
    ├── ProducerError                idempotence: the producer's state does not allow the batch
    │   ├── OutOfOrderSequenceError
    │   ├── DuplicateSequenceError   older than the batches remembered
    │   ├── InvalidProducerEpochError
    │   ├── UnknownProducerIdError
    │   ├── InvalidTransactionStateError
    │   └── TransactionCoordinatorFencedError
    ├── DiskError                    the operating system refused; `.path`, `.errno`
    │   ├── SyncFailedError          what was to be made durable may be lost
    │   ├── LogDirectoryFullError    takes no records until there is room again
    │   └── LogDirectoryOfflineError
    ├── LockedDirectoryError         another broker uses the directory
    ├── InconsistentDirectoryError   the directory is another cluster's or node's
    ├── InconsistentTopicIdError     the partition on disk is of another topic of that name
    ├── PartitionLoadingError        the partition is still being recovered
    ├── CutSegmentError              records of a closed segment are gone from its file
    ├── InvalidFillError             what another replica has does not fit in their place
    └── CorruptFileError             a side file (index, snapshot, checkpoint) fails its check

`broker.runtime.errors` is the one place that turns these into Kafka's error codes.
"""

import errno as _errno
from typing import Final

from typing_extensions import override

from protocol.picklable_error import PicklableError

_FULL: Final = frozenset({_errno.ENOSPC, _errno.EDQUOT})
DESCRIPTOR_LIMIT: Final = frozenset({_errno.EMFILE, _errno.ENFILE})
"""Of the process, and of the machine."""


class StorageError(PicklableError):
    """Any expected failure of the storage layer."""


class OffsetOutOfRangeError(StorageError):
    """The offset is not in [log start offset, log end offset]."""

    def __init__(self, offset: int, log_start_offset: int, log_end_offset: int) -> None:
        super().__init__(f"offset {offset} is outside [{log_start_offset}, {log_end_offset}]")
        self.offset = offset
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset


class OffsetNotLocalError(OffsetOutOfRangeError):
    """The log has the offset, but not here: its segment lives in remote storage only (KIP-405)."""


class FollowerOffsetError(StorageError):
    """Batches of a leader do not follow on a follower's log end; nothing was written.

    Attributes:
        first_offset, last_offset: Of the first of the batches, inclusive.
        log_end_offset: Of the follower.
    """

    def __init__(self, first_offset: int, last_offset: int, log_end_offset: int) -> None:
        super().__init__(
            f"offsets {first_offset} to {last_offset} of the leader do not follow on the log end "
            f"offset {log_end_offset}"
        )
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.log_end_offset = log_end_offset


class BatchError(StorageError):
    """A produced batch is refused; nothing was written.

    `record_errors` names single records at fault as (index in batch, message), where known.
    """

    def __init__(self, message: str, record_errors: tuple[tuple[int, str], ...] = ()) -> None:
        super().__init__(message)
        self.record_errors = record_errors


class CorruptBatchError(BatchError):
    """Length, CRC-32C or structure is wrong. Client sees CORRUPT_MESSAGE and may retry."""


class UnsupportedFormatError(BatchError):
    """Magic below 2. Client sees UNSUPPORTED_FOR_MESSAGE_FORMAT."""


class InvalidRecordError(BatchError):
    """Well formed but not allowed here. Client sees INVALID_RECORD."""


class InvalidTimestampError(BatchError):
    """Too far from the broker's clock. Client sees INVALID_TIMESTAMP."""


class BatchTooLargeError(BatchError):
    """Above `max.message.bytes`. Client sees MESSAGE_TOO_LARGE."""


class BatchListTooLargeError(BatchError):
    """Above `segment.bytes`. Client sees RECORD_LIST_TOO_LARGE."""


class UnsupportedCodecError(BatchError):
    """Codec bits 5 to 7. Client sees UNSUPPORTED_COMPRESSION_TYPE."""


class DirectoryBusyError(StorageError):
    """Too much waits for the directory's disk. Client sees REQUEST_TIMED_OUT, and tries again."""


class ProducerError(StorageError):
    """The idempotent producer's state does not allow the batch."""


class OutOfOrderSequenceError(ProducerError):
    """A batch before this one is missing. Client sees OUT_OF_ORDER_SEQUENCE_NUMBER."""


class DuplicateSequenceError(ProducerError):
    """Older than the five batches remembered. Client sees DUPLICATE_SEQUENCE_NUMBER."""


class InvalidProducerEpochError(ProducerError):
    """A newer producer has taken over. Client sees INVALID_PRODUCER_EPOCH."""


class UnknownProducerIdError(ProducerError):
    """Nothing is known of the producer. Client sees UNKNOWN_PRODUCER_ID."""


class InvalidTransactionStateError(ProducerError):
    """Transactional data or marker that does not fit. Client sees INVALID_TXN_STATE."""


class TransactionCoordinatorFencedError(ProducerError):
    """A replaced coordinator's marker. The sender sees TRANSACTION_COORDINATOR_FENCED."""


class DiskError(StorageError):
    """The operating system refused a disk call. Client sees KAFKA_STORAGE_ERROR.

    Exactly one of three properties is true and says what is wrong:

        is_full               no room left: what is there is sound, and can be read and deleted
        is_descriptor_limit   no descriptor left: nothing is said of the disk
        is_disk_failure       anything else: the disk is not to be relied on any more
    """

    def __init__(self, message: str, path: str, errno: int | None = None) -> None:
        super().__init__(f"{message}: {path}")
        self.path = path
        self.errno = errno

    def to_keep(self) -> "DiskError":
        """The same without its traceback, to be kept while it lasts.

        An error that was raised holds the frames it came through, and all that these have open: the
        files of a log that was being recovered would keep their blocks after they were deleted.
        """
        # Not by its constructor: the text has the path in it by now.
        kept = type(self).__new__(type(self), *self.args)
        kept.path = self.path
        kept.errno = self.errno
        return kept

    @property
    def is_full(self) -> bool:
        """The disk, or the quota on it, has no room left: nothing was damaged."""
        return self.errno in _FULL

    @property
    def is_descriptor_limit(self) -> bool:
        """The process, or the machine, may open no more files: says nothing of the disk."""
        return self.errno in DESCRIPTOR_LIMIT

    @property
    def is_disk_failure(self) -> bool:
        """The disk itself is at fault: its log directory has to go offline."""
        return not self.is_full and not self.is_descriptor_limit


class SyncFailedError(DiskError):
    """What was written may be lost: the kernel may have dropped the pages, whatever the reason.

    Final also when the disk is full. Where blocks are given late (delayed allocation) the write has
    been accepted, and the lack of room shows only now.
    """

    @property
    @override
    def is_full(self) -> bool:
        """Never: a disk that was full when it was to keep a promise has failed."""
        return False


class LogDirectoryFullError(DiskError):
    """The log directory takes no records until there is room. Client sees KAFKA_STORAGE_ERROR."""


class LogDirectoryOfflineError(DiskError):
    """The whole log directory is out of service. Client sees KAFKA_STORAGE_ERROR.

    It has the errno of what took the directory offline, and is a failure whatever that says.
    """

    @property
    @override
    def is_full(self) -> bool:
        """Never: it does not come back when there is room."""
        return False

    @property
    @override
    def is_descriptor_limit(self) -> bool:
        """Never: it does not come back when there are descriptors."""
        return False


class LockedDirectoryError(StorageError):
    """Another broker holds the directory's lock."""


class InconsistentDirectoryError(StorageError):
    """The log directory belongs to another cluster or node. The broker does not start."""


class InconsistentTopicIdError(StorageError):
    """The partition on disk is of another incarnation. Client sees INCONSISTENT_TOPIC_ID."""


class PartitionLoadingError(StorageError):
    """The partition is still being recovered. Client sees a retriable error."""


class CutSegmentError(StorageError):
    """A closed segment ends early: what followed is not there to be read."""

    def __init__(self, path: str, offset: int, next_offset: int) -> None:
        super().__init__(
            f"{path} has been cut: offset {offset} and what follows below {next_offset} is missing"
        )
        self.path = path
        self.offset = offset
        self.next_offset = next_offset


class InvalidFillError(StorageError):
    """Batches of another replica that are not those missing here; nothing was changed."""


class CorruptFileError(StorageError):
    """A side file fails its check; recovery rebuilds it from the log."""
