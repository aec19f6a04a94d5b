"""Appends that wait until they are committed: acks=all, and `flush.messages` for every acks."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from typing_extensions import override

from broker.replicas.purgatory import DelayedOperation
from protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from broker.replicas.partition import Partition
    from protocol.hot.produce import ProducePartitionResponse

Waiting: TypeAlias = "list[tuple[Partition, int, ProducePartitionResponse]]"
"""(partition, offset that the high watermark must reach, its part of the response)."""


class DelayedProduce(DelayedOperation):
    """A Produce whose partitions are not all committed yet.

    A partition that is not committed in time answers REQUEST_TIMED_OUT: the records are in the log
    and may still be committed, so an idempotent producer retries and finds a duplicate.
    """

    __slots__ = ("_answer", "waiting")

    def __init__(
        self,
        waiting: Waiting,
        answer: Callable[[], None],
    ) -> None:
        super().__init__()
        self.waiting = waiting
        self._answer = answer

    @override
    def try_complete(self) -> bool:
        """Complete if every partition is committed, has failed or is gone."""
        self.waiting = _unsettled(self.waiting)
        return not self.waiting and self.complete()

    @override
    def on_complete(self, *, expired: bool) -> None:
        """Answer; partitions that still wait have timed out."""
        if expired:
            for _, _, response in self.waiting:
                response.error_code = ErrorCode.REQUEST_TIMED_OUT
                response.base_offset = -1
        self._answer()


class WrittenParts(DelayedOperation):
    """Parts of a Produce that have their offsets while others are still being prepared.

    Each is settled as soon as it is committed or lost: records queued for a disk that turns out
    full are dropped, others get their offsets, and would be mistaken for them later.
    """

    __slots__ = ("_waiting",)

    def __init__(self, waiting: Waiting) -> None:
        """Watch `waiting`, as `DelayedProduce` does."""
        super().__init__()
        self._waiting: Waiting = []
        for item in waiting:
            self.add(item)

    def add(self, item: "tuple[Partition, int, ProducePartitionResponse]") -> None:
        """Watch one more part."""
        self._waiting.append(item)
        item[0].watch_produce().add(self)

    def end(self) -> Waiting:
        """Return the parts that are not settled yet; the last one has been written."""
        self.try_complete()
        self.abandon()
        return self._waiting

    @override
    def try_complete(self) -> bool:
        """Never satisfied: more may come."""
        self._waiting = _unsettled(self._waiting)
        return False


class DelayedCommit(DelayedOperation):
    """A coordinator's append that is not committed yet."""

    __slots__ = ("_code", "_end_offset", "_first_offset", "_on_committed", "_partition")

    def __init__(
        self,
        partition: "Partition",
        first_offset: int,
        end_offset: int,
        on_committed: Callable[[ErrorCode, int], None],
    ) -> None:
        super().__init__()
        self._partition = partition
        self._first_offset = first_offset
        self._end_offset = end_offset
        self._on_committed = on_committed
        self._code = ErrorCode.NONE

    @override
    def try_complete(self) -> bool:
        """Satisfied when committed, or when the log has failed or gone."""
        self._code = _failure(self._partition, self._end_offset)
        if self._code or self._partition.is_committed(self._end_offset):
            return self.complete()
        return False

    @override
    def on_complete(self, *, expired: bool) -> None:
        """Call back the coordinator."""
        code = ErrorCode.REQUEST_TIMED_OUT if expired else self._code
        self._on_committed(code, -1 if code else self._first_offset)


def _unsettled(waiting: Waiting) -> Waiting:
    """Parts that may still be committed; those that will not be get their error."""
    still = []
    for item in waiting:
        partition, end_offset, response = item
        code = _failure(partition, end_offset)
        if code:
            response.error_code = code
            response.base_offset = -1
        elif not partition.is_committed(end_offset):
            still.append(item)
    return still


def _failure(partition: "Partition", end_offset: int) -> ErrorCode:
    """Why records below `end_offset` will not be committed here; NONE while they may."""
    if partition.commit.failed:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if partition.lost_from is not None and end_offset > partition.lost_from:
        return ErrorCode.KAFKA_STORAGE_ERROR
    return partition.gone
