"""What reading a piece cannot do, in sentences for whoever runs the query.

    ReadError
    ├── DamagedDataError      bytes that are not those that were written: object and position
    └── LostOffsetsError      offsets that are nowhere any more: topic, partition, offsets

They cross from workers to drivers, so each can be pickled. None has a secret.
"""

from typing import Final

from typing_extensions import override

from pipeline.plan.piece import PartitionName

FAIL_ON_DATA_LOSS_HINT: Final = "failOnDataLoss=false goes on without it"


class ReadError(Exception):
    """Any expected failure of reading."""


class DamagedDataError(ReadError):
    """Bytes are not those that were written.

    Attributes:
        key: The object, or the broker's partition.
        position: First byte known to be wrong, in the object; -1 if that cannot be told.
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

    @override
    def __reduce__(self) -> tuple[type["DamagedDataError"], tuple[str, int, str, int, int]]:
        """Errors cross from process to process."""
        arguments = (self.key, self.position, self.problem, self.log_position, self.log_end)
        return type(self), arguments


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

    @override
    def __reduce__(self) -> tuple[type["LostOffsetsError"], tuple[PartitionName, int, int, str]]:
        """Errors cross from process to process."""
        return type(self), (self.partition, self.start_offset, self.end_offset, self.reason)
