"""DeleteRecords that wait until no live replica has the records any more."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from typing_extensions import override

from broker.replicas.purgatory import DelayedOperation
from protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from broker.replicas.partition import Partition
    from protocol.messages.delete_records import DeleteRecordsPartitionResult

INVALID_LOW_WATERMARK = -1


class DelayedDeleteRecords(DelayedOperation):
    """A DeleteRecords some partitions of which have live followers whose log start is lower.

        log start raised ──wait_for──> low watermark there ──────> settled with it
                                   └──> led here no longer ──────> settled with the error
        all settled ──> answered        not in time: REQUEST_TIMED_OUT, and it goes on all the same

    Source: Kafka, DelayedDeleteRecords.scala.
    """

    __slots__ = ("_answer", "_unsettled")

    is_internal = False

    def __init__(self, answer: Callable[[], None]) -> None:
        super().__init__()
        self._answer = answer
        self._unsettled: dict[int, tuple[Partition, DeleteRecordsPartitionResult]] = {}

    @property
    def is_settled(self) -> bool:
        """Whether nothing is waited for."""
        return not self._unsettled

    def wait_for(
        self, partition: "Partition", offset: int, result: "DeleteRecordsPartitionResult"
    ) -> None:
        """Wait until the partition's low watermark is `offset`; `result` is its part."""
        part = len(self._unsettled)
        self._unsettled[part] = partition, result
        partition.wait_for_low_watermark(offset, self, part)

    def settle(self, part: int, code: ErrorCode) -> None:
        """See `Waits`."""
        partition, result = self._unsettled.pop(part)
        result.error_code = int(code)
        result.low_watermark = INVALID_LOW_WATERMARK if code else partition.low_watermark
        if not self._unsettled:
            self.complete()

    @override
    def on_complete(self, *, expired: bool) -> None:
        """Answer; parts that are not settled have timed out."""
        for _, result in self._unsettled.values():
            result.error_code = int(ErrorCode.REQUEST_TIMED_OUT)
            result.low_watermark = INVALID_LOW_WATERMARK
        self._answer()
