"""Errors of reading a piece, in sentences for the user of the query.

    ReadError
    ├── DamagedDataError      bytes that are not those that were written: object and position
    │   └── DamagedBatchError    no batch, or a broken one, where one should be
    └── LostOffsetsError      offsets that are nowhere any more: topic, partition, offsets

They cross from workers to drivers, so each can be pickled. None has a secret.
"""

from typing import Final

from pipeline.plan.piece import PartitionName
from protocol.picklable_error import PicklableError

FAIL_ON_DATA_LOSS_HINT: Final = "failOnDataLoss=false goes on without it"


class ReadError(PicklableError):
    """Any expected failure of reading."""


class DamagedDataError(ReadError):
    """Bytes are not those that were written.

    Attributes:
        key: The object, or the broker's partition.
        position: First byte known to be wrong, in the object; -1 if that is unknown.
        problem: What is wrong.
        log_position, log_end: What of the segment's log cannot be read because of it; exclusive
            end; -1: all of it.
    """

    def __init__(
        self, key: str, position: int, problem: str, log_position: int = -1, log_end: int = -1
    ) -> None:
        super().__init__(f"{key} at byte {position}: {problem} ({FAIL_ON_DATA_LOSS_HINT})")
        self.key = key
        self.position = position
        self.problem = problem
        self.log_position = log_position
        self.log_end = log_end


class DamagedBatchError(DamagedDataError):
    """No batch, or a broken one, where one should be; its `log_position` is where.

    Attributes:
        problem: What is wrong, without where.
        next_position: Where in the segment's log the next batch begins for certain, -1: unknown.
    """

    def __init__(
        self,
        key: str,
        position: int,
        problem: str,
        log_position: int,
        log_end: int,
        next_position: int = -1,
    ) -> None:
        text = f"{problem} (byte {log_position} of the segment's log)"
        super().__init__(key, position, text, log_position, log_end)
        self.problem = problem
        self.next_position = next_position


class LostOffsetsError(ReadError):
    """Offsets that were planned are nowhere any more.

    Attributes:
        partition: Whose.
        start_offset, end_offset: Which; exclusive end.
        reason: Why.
    """

    def __init__(
        self, partition: PartitionName, start_offset: int, end_offset: int, reason: str
    ) -> None:
        super().__init__(
            f"{partition.topic}-{partition.partition}: offsets {start_offset} to {end_offset - 1} "
            f"are lost: {reason} ({FAIL_ON_DATA_LOSS_HINT})"
        )
        self.partition = partition
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.reason = reason
