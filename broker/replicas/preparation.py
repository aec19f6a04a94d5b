"""Validation and compression of batches in a thread, before they are appended.

Topics that validate every record (`record.validation=full`, compacted ones) or recompress batches
(`compression.type` other than the producer's) cost CPU by the record, up to hundreds of
milliseconds for a large batch: the loop does not wait for that.

    submit ──> [ queue of one partition ] ──one at a time──> thread: validate, recompress
                                                                │
               done(info or error) <── append on the loop <─────┘

When the broker stops, what is queued is refused, and what a thread has is not appended: the log is
about to be marked as whole up to its end.

A partition's batches are appended in the order of arrival, because one is prepared at a time, and
because later ones join the queue while it is not empty, however small they are.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode
from storage.log.write_behind import OWNED

if TYPE_CHECKING:
    from broker.runtime.disk import Disk
    from storage.environment.clock import Clock
    from storage.log.log import Log
    from storage.log.write_queue import BorrowedMemory
    from storage.producers.verification import TransactionTerms
    from storage.types.append_info import AppendInfo
    from storage.types.append_origin import AppendOrigin

INLINE_SIZE_MAX: Final = 4 * 1024
"""Batches up to this many bytes are prepared in place: a hop to a thread costs more."""

QUEUED_BYTES_MAX = 64 * 1024 * 1024
"""Most bytes of all partitions that wait; a client above that gets a retriable error."""

Done = Callable[["AppendInfo | None", Exception | None], None]


class AppendedTo(Protocol):
    """The partition that prepared batches are appended to: `broker.replicas.partition.Partition`.

    Attributes:
        gone: Why it is no longer served here, or NONE.
    """

    log: "Log"
    gone: ErrorCode

    def append(
        self,
        records: memoryview,
        now_ms: int,
        origin: "AppendOrigin" = ...,
        *,
        prepared: bool = False,
        terms: "TransactionTerms | None" = None,
        memory: "BorrowedMemory | None" = None,
        acks_all: bool = False,
    ) -> "AppendInfo":
        """Append batches."""
        ...


class PreparationBudget:
    """Bytes that wait, over all partitions of a broker."""

    __slots__ = ("queued_bytes", "refused")

    def __init__(self) -> None:
        self.queued_bytes = 0
        self.refused = 0


class Preparation:
    """The queue of one partition; created when it is first needed."""

    __slots__ = ("_budget", "_clock", "_disk", "_ended", "_partition", "_queue", "_running")

    def __init__(
        self, partition: AppendedTo, disk: "Disk", clock: "Clock", budget: PreparationBudget
    ) -> None:
        self._partition = partition
        self._disk = disk
        self._clock = clock
        self._budget = budget
        self._queue: deque[tuple[bytearray, Done, TransactionTerms | None, bool]] = deque()
        self._running = False
        # Set once nothing is appended any more.
        self._ended: asyncio.Future[None] | None = None

    @property
    def busy(self) -> bool:
        """Whether a new batch must wait for others."""
        return self._running

    def submit(
        self,
        records: memoryview,
        done: Done,
        terms: "TransactionTerms | None" = None,
        *,
        acks_all: bool = False,
    ) -> bool:
        """Copy a batch and queue it; False when too much waits already, or there is no memory.

        Args:
            records: The batch.
            done: Called once, with what `Partition.append` has returned or raised.
            terms: The batch's transaction, as verified.
            acks_all: As `Partition.append` has it.
        """
        if self._budget.queued_bytes + len(records) > QUEUED_BYTES_MAX:
            self._budget.refused += 1
            return False
        try:
            copy = bytearray(records)
        except MemoryError:
            self._budget.refused += 1
            return False
        self._budget.queued_bytes += len(records)
        self._queue.append((copy, done, terms, acks_all))
        if not self._running:
            self._next()
        return True

    async def end(self) -> None:
        """Append nothing any more: refuse what is queued, wait for the batch a thread has."""
        ended = self._ended = asyncio.get_running_loop().create_future()
        while self._queue:
            records, done, _terms, _acks_all = self._queue.popleft()
            self._budget.queued_bytes -= len(records)
            done(None, ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        if self._running:
            await ended

    def _next(self) -> None:
        if not self._queue:
            self._running = False
            if self._ended is not None and not self._ended.done():
                self._ended.set_result(None)
            return
        self._running = True
        records, done, terms, acks_all = self._queue.popleft()
        prepare = self._partition.log.writer.preparation()
        now_ms = self._clock.now_ms()

        def finish(prepared: memoryview | None, failure: BaseException | None) -> None:
            self._budget.queued_bytes -= len(records)
            info: AppendInfo | None = None
            error: Exception | None = None
            if failure is not None:
                if not isinstance(failure, Exception):
                    raise failure
                error = failure
                if isinstance(failure, MemoryError):
                    # Nothing was written: it may come again when there is some.
                    error = ApiError(ErrorCode.REQUEST_TIMED_OUT, "no memory for the batch")
            else:
                assert prepared is not None
                try:
                    if self._ended is not None:
                        raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
                    if self._partition.gone:
                        # Deleted, or its disk failed, while the thread ran.
                        raise ApiError(self._partition.gone)
                    info = self._partition.append(
                        prepared,
                        now_ms,
                        prepared=True,
                        terms=terms,
                        memory=OWNED,
                        acks_all=acks_all,
                    )
                except Exception as raised:  # noqa: BLE001  because it is handed on to the answer
                    error = raised
            done(info, error)
            self._next()

        self._disk.submit(lambda: prepare(memoryview(records), now_ms), finish)
