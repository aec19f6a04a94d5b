"""Appends that wait: for the high watermark (acks=all), or the leader's own end (acks=1)."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from typing_extensions import override

from broker.replicas.purgatory import DelayedOperation
from protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from broker.replicas.offset_waits import OffsetWaits
    from protocol.hot.produce import ProducePartitionResponse


class DelayedProduce(DelayedOperation):
    """A Produce some partitions of which have not got so far as its acks ask for.

        appended, one by one ──wait_for──> settled, one by one ──sealed and all settled──> answered

    A part that is not settled in time answers REQUEST_TIMED_OUT: the records are in the log and
    may still be committed, so an idempotent producer retries and finds a duplicate. Parts may be
    settled while others are still being prepared.
    """

    __slots__ = ("_answer", "_unsettled")

    is_internal = False

    def __init__(self) -> None:
        super().__init__()
        self._answer: Callable[[], None] | None = None
        # By identity; in order.
        self._unsettled: dict[ProducePartitionResponse, None] = {}

    def wait_for(
        self, waits: "OffsetWaits", end_offset: int, response: "ProducePartitionResponse"
    ) -> None:
        """Wait until `end_offset` is reached; `response` is that partition's part."""
        self._unsettled[response] = None
        waits.add(end_offset, self, response)

    def seal(self, answer: Callable[[], None]) -> bool:
        """No part is added any more; `answer` is called when the last is settled.

        Returns:
            Whether some are not. Else nothing is called.
        """
        if self._unsettled:
            self._answer = answer
            return True
        self.completed = True
        return False

    def settle(self, part: "ProducePartitionResponse", code: ErrorCode) -> None:
        """See `Waits`."""
        del self._unsettled[part]
        if code:
            part.error_code = code
            part.base_offset = -1
        if not self._unsettled and self._answer is not None:
            self.complete()

    @override
    def on_complete(self, *, expired: bool) -> None:
        """Answer; parts that are not settled have timed out."""
        for response in self._unsettled:
            response.error_code = ErrorCode.REQUEST_TIMED_OUT
            response.base_offset = -1
        assert self._answer is not None
        self._answer()


class DelayedCommit(DelayedOperation):
    """A coordinator's append that is not committed yet.

    It does not outlive the leader epoch: the coordinator loads its state again in the next one.
    """

    __slots__ = ("_code", "_first_offset", "_on_committed")

    is_internal = True

    def __init__(self, first_offset: int, on_committed: Callable[[ErrorCode, int], None]) -> None:
        """`on_committed`: called with NONE and `first_offset`, or with an error and -1."""
        super().__init__()
        self._first_offset = first_offset
        self._on_committed = on_committed
        self._code = ErrorCode.NONE

    def settle(self, _part: None, code: ErrorCode) -> None:
        """See `Waits`."""
        self._code = code
        self.complete()

    @override
    def on_complete(self, *, expired: bool) -> None:
        """Call back the coordinator."""
        code = ErrorCode.REQUEST_TIMED_OUT if expired else self._code
        self._on_committed(code, -1 if code else self._first_offset)
